"""The settings beside the servers: roles, limits, gateway, audit, model, agent, alerts."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, GetJsonSchemaHandler, StringConstraints, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from squidbot.config import checks
from squidbot.config.strict import Glob, Positive, Seconds, ServerName, Strict, broken, joined, rule
from squidbot.core.domain.callers import RESERVED_ROLES


def _url(*schemes: str) -> AfterValidator:
    def check(url: str) -> str:
        if fault := checks.url_fault(url, schemes):
            raise rule(fault)
        return url

    return AfterValidator(check)


WebUrl = Annotated[str, _url("http", "https")]
RedisUrl = Annotated[str, _url("redis", "rediss")]


def _free_role(name: str) -> str:
    if name in RESERVED_ROLES:
        raise rule(f"{name!r} is no role that settings can define", f"Reserved: {', '.join(sorted(RESERVED_ROLES))}")
    return name


RoleName = Annotated[ServerName, AfterValidator(_free_role)]


class ToolGrant(Strict):
    """Tools of one server that a role may use, under conditions on their arguments where there are any."""

    tool: Glob
    when: dict[Glob, Annotated[list[Glob], Field(min_length=1)]] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, data: Any) -> Any:
        return {"tool": data} if isinstance(data, str) else data

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        whole = handler.resolve_ref_schema(handler(core))
        return {"anyOf": [{"type": "string", "minLength": 1}, dict(whole)]}


class RoleSettings(Strict):
    """A role: what it is for, and which tools of which server it may use."""

    description: str = ""
    replace: bool = False
    tools: dict[ServerName, list[ToolGrant]] = Field(default_factory=dict)


class LimitSettings(Strict):
    """How often, and how many at a time; the globs say for whom."""

    role: Glob = "*"
    server: Glob = "*"
    tool: Glob = "*"
    rate: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,8}/(s|m|h|d)$")] | None = None
    burst: Positive | None = None
    concurrency: Positive | None = None

    @model_validator(mode="after")
    def _limits_something(self) -> "LimitSettings":
        more = []
        if self.rate is None and self.concurrency is None:
            more.append(broken("limits nothing", hint="Give it a 'rate' such as '3000/m', or a 'concurrency'"))
        if self.burst is not None and self.rate is None:
            more.append(broken("means nothing without a 'rate'", "burst"))
        if more:
            raise joined("limit", more)
        return self


class OidcSettings(Strict):
    """Whose sign-ins the gateway accepts beside its own tokens."""

    issuer: WebUrl
    audience: Glob
    role_claim: Glob = "role"


class GatewaySettings(Strict):
    """Where the gateway listens, and whom it listens to."""

    host: Glob = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8765
    allowed_hosts: list[Glob] = Field(default_factory=list)
    allowed_origins: list[Glob] = Field(default_factory=list)
    oidc: OidcSettings | None = None


class AuditSettings(Strict):
    """Where the record of all calls is kept, and for how long."""

    url: Annotated[str, _url("sqlite", "postgresql", "postgres")] | None = None
    retention: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,5}(h|d|w|y)$")] | None = None


class PriceSettings(Strict):
    """What a model costs, in US dollars for a million tokens."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]


class FallbackModel(Strict):
    """A language model, and how it is reached."""

    provider: Literal["openai", "anthropic", "scripted"] = "openai"
    name: Glob
    base_url: WebUrl | None = None
    api_key: str | None = None
    inputs: list[Literal["image", "audio"]] | None = None
    """What it takes beside text; without it, pictures where the provider's own models take them."""
    price: PriceSettings | None = None
    max_output: Positive | None = None
    """Tokens of one turn."""


class ModelSettings(FallbackModel):
    """The language model of the agent, and those to turn to when it fails."""

    fallback: list[FallbackModel] = Field(default_factory=list)


class AgentSettings(Strict):
    """Who the agent is, how much it may spend on one request, and what it is shown."""

    role: Glob | None = None
    max_steps: Positive = 25
    max_seconds: Seconds = 600.0
    max_tokens: Positive | None = None
    max_tools: Positive = 64
    """With more tools than this, the model is given a search for them."""
    max_result: Annotated[int, Field(ge=1_000, le=1_000_000)] = 20_000
    """Characters of a result that the model is shown; the whole is kept for it to read on."""
    flows: Literal["ask", "block", "allow"] = "ask"
    """What becomes of a call by which data could walk out: a person at the terminal is asked, it is blocked, or made."""


class BurstRule(Strict):
    """A role makes more calls than usual in a short time."""

    enabled: bool = True
    calls: Positive = 300
    seconds: Seconds = 60.0


class RefusalsRule(Strict):
    """A role is refused again and again."""

    enabled: bool = True
    refusals: Positive = 5
    seconds: Seconds = 300.0


class FirstUseRule(Strict):
    """A role uses a tool that it has never used before."""

    enabled: bool = True


class ErrorRateRule(Strict):
    """Too large a part of a server's calls fails."""

    enabled: bool = True
    rate: Annotated[float, Field(gt=0, le=1)] = 0.5
    calls: Positive = 20
    seconds: Seconds = 300.0


class AlertRules(Strict):
    """The four patterns that are watched for; all are on unless they are switched off."""

    burst: BurstRule = Field(default_factory=BurstRule)
    refusals: RefusalsRule = Field(default_factory=RefusalsRule)
    first_use: FirstUseRule = Field(default_factory=FirstUseRule)
    error_rate: ErrorRateRule = Field(default_factory=ErrorRateRule)


class AlertSettings(Strict):
    """What is unusual, and who is told."""

    webhook: WebUrl | None = None
    rules: AlertRules = Field(default_factory=AlertRules)
