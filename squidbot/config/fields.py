"""The parts of a server entry, and the rules that hold over several of its fields, one function per transport."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator
from pydantic_core import InitErrorDetails

from squidbot.config import checks
from squidbot.config.strict import Glob, Positive, Strict, broken, joined

TransportName: TypeAlias = Literal["stdio", "sse", "websocket", "http"]

_OWN_FIELDS: Mapping[str, frozenset[str]] = {
    "stdio": frozenset({"command", "args", "env", "cwd", "encoding"}),
    "sse": frozenset({"url", "headers", "auth", "sse_read_timeout"}),
    "websocket": frozenset({"url", "headers"}),
    "http": frozenset({"url", "headers", "auth", "sse_read_timeout", "terminate_on_close"}),
}
_OWNED = frozenset[str]().union(*_OWN_FIELDS.values())


class BoundsConfig(Strict):
    """How much one server may send; each has a default that serves well."""

    bytes: Positive = 10_000_000
    blocks: Positive = 10_000
    objects: Positive = 100_000
    depth: Annotated[int, Field(gt=0, le=1_000)] = 200
    tools: Positive = 2_000
    pages: Positive = 100
    notifications: Positive = 1_000


class ToolOverride(Strict):
    """One tool as squidbot shows it: under another name, in other words, with arguments that are set already."""

    tool: Glob | None = None
    """What the server calls it; without it, the key is the server's own name."""
    description: Glob | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)
    keep: bool | None = None
    """Whether the tool stays there under its own name too: it does if arguments are set, else not."""


class FlowLabels(Strict):
    """What a server's tools (globs) do with data: a role that has all three kinds is a way out for it."""

    untrusted: list[Glob] = Field(default_factory=list)
    """They read what strangers may have written."""
    private: list[Glob] = Field(default_factory=list)
    """They read what is not for everybody."""
    egress: list[Glob] = Field(default_factory=list)
    """They write where others read."""


class SamplingSettings(Strict):
    """How much a server may ask of the agent's model in one run; a server without it may ask nothing."""

    requests: Positive = 10
    tokens: Positive = 20_000


class AuthConfig(Strict):
    """How squidbot signs in at a remote server by OAuth: a person in a browser, or a program by itself."""

    type: Literal["oauth", "client_credentials"] = "oauth"
    client_id: str | None = None
    client_secret: str | None = None
    scopes: list[str] = Field(default_factory=list)
    issuer: str | None = None
    token_endpoint_auth_method: Literal["client_secret_basic", "client_secret_post", "none"] | None = None
    redirect_port: Annotated[int, Field(ge=0, le=65_535)] | None = None
    client_metadata_url: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> "AuthConfig":
        more = []
        if self.type == "client_credentials":
            more += [
                broken(f"client_credentials need a {key!r}", key, hint="It comes from whoever runs the sign-in server")
                for key in ("client_id", "client_secret")
                if not getattr(self, key)
            ]
            if self.token_endpoint_auth_method == "none":  # noqa: S105  # a method, not a password
                more.append(broken("client_credentials cannot go without a secret", "token_endpoint_auth_method"))
        urls = {"issuer": ("https", "http"), "client_metadata_url": ("https",)}
        for key, schemes in urls.items():
            url = getattr(self, key)
            fault = checks.url_fault(url, schemes) if url is not None else None
            if fault:
                more.append(broken(fault, key))
        if more:
            raise joined("auth", more)
        return self


def infer_transport(given: Mapping[str, Any]) -> TransportName:
    """What an entry without a `transport` means: a command is stdio, ws:// and wss:// websocket, another url http."""
    url = given.get("url")
    if given.get("command") is not None or not isinstance(url, str):
        return "stdio"
    return "websocket" if url.lower().startswith(("ws://", "wss://")) else "http"


def faults(given: Mapping[str, Any], *, inferred: bool) -> Iterator[InitErrorDetails]:
    """What is wrong with an entry beyond the type of each field. Fields of the wrong type are left to their models."""
    transport = given["transport"]
    if not isinstance(transport, str) or transport not in _OWN_FIELDS:
        # The field's own type refuses it; what it was probably meant to be still tells the rest of the report.
        transport, inferred = infer_transport(given), True
    if inferred and given.get("command") is None and given.get("url") is None:
        yield broken(
            "nothing to start or to reach: it has neither a 'command' nor a 'url'",
            hint="Give it a 'command' (a program on this machine) or a 'url' (a server elsewhere)",
        )
        return
    match transport:
        case "stdio":
            yield from _stdio(given)
        case "websocket":
            yield from _remote(given, transport, schemes=("ws", "wss"))
        case _:
            yield from _remote(given, transport, schemes=("http", "https"))
    yield from _foreign_fields(given, transport, inferred=inferred)


def _stdio(given: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    command = given.get("command")
    if command is None:
        yield broken("a stdio server needs a 'command'", "command")
    elif isinstance(command, str) and (fault := checks.command_fault(command)):
        yield broken(fault, "command", value=command)
    for index, argument in enumerate(_list(given.get("args"))):
        if isinstance(argument, str) and "\0" in argument:
            yield broken("an argument has no NUL character", "args", index)
    for name, value in _texts(given.get("env")):
        if fault := checks.variable_fault(name, value):
            yield broken(fault, "env", name)
    encoding = given.get("encoding")
    if isinstance(encoding, str) and (fault := checks.encoding_fault(encoding)):
        yield broken(fault, "encoding", value=encoding, hint="Most servers speak 'utf-8'")


def _remote(given: Mapping[str, Any], transport: str, *, schemes: Sequence[str]) -> Iterator[InitErrorDetails]:
    url = given.get("url")
    if url is None:
        yield broken(f"a server over {transport} needs a 'url'", "url")
    elif isinstance(url, str) and (fault := checks.url_fault(url, schemes)):
        yield broken(fault, "url")
    for name, value in _texts(given.get("headers")):
        if fault := checks.header_fault(name, value):
            yield broken(fault, "headers", name)


def _foreign_fields(given: Mapping[str, Any], transport: str, *, inferred: bool) -> Iterator[InitErrorDetails]:
    for key in sorted(given.keys() & (_OWNED - _OWN_FIELDS[transport])):
        owners = ", ".join(name for name, fields in _OWN_FIELDS.items() if key in fields)
        why = ("because it has a 'command'" if transport == "stdio" else "because of its 'url'") if inferred else ""
        yield broken(
            f"belongs to {owners}; this entry is {transport} {why}".rstrip(), key, hint="Remove one of the two"
        )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        yield from ((name, text) for name, text in value.items() if isinstance(name, str) and isinstance(text, str))
