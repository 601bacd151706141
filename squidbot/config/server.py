"""What the settings say of one server: `MCPServerConfig`, flat, with the rules of each transport."""

import hashlib
import json
import logging
import os
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)

from squidbot.config.fields import (
    AuthConfig,
    BoundsConfig,
    FlowLabels,
    SamplingSettings,
    ToolOverride,
    TransportName,
    faults,
    infer_transport,
)
from squidbot.config.files import read_env_file, read_secret, under
from squidbot.config.report import problems_of
from squidbot.config.secrets import hide, public, secrets_in, secrets_of_arguments, shown, worth_hiding
from squidbot.config.strict import Count, Glob, Seconds, Strict, joined, rule
from squidbot.config.variables import Filler, join_path, surroundings, without_references
from squidbot.core.domain.errors import ConfigError, Problem

Protocol: TypeAlias = Literal["auto", "legacy", "modern"]
Revision: TypeAlias = Literal["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
LogLevel: TypeAlias = Annotated[
    Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"],
    # Two literals of the same values are equal, and `typing` caches by that: without a mark of its own this one would
    # take its order from whichever library came first.
    "squidbot",
]

MINIMAL_ENVIRONMENT = frozenset(
    {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"}
)
"""What every server may know of the machine; anything else of our environment it must be given by name."""
PUBLIC_VARIABLES = MINIMAL_ENVIRONMENT | {"PWD"}
"""Variables that hold no secret, though some sound like it."""

_FILLED = ("command", "args", "env", "cwd", "url", "headers", "auth", "config")
_OUTSIDE_DIGEST = frozenset(
    {
        "name",
        "description",
        "enabled",
        "lazy",
        "required",
        "read_only",
        "overrides",
        "flows",
        "sampling",
        "log_level",
        "max_retries",
    }
    | {"timeout", "sse_read_timeout", "request_timeout", "startup_timeout", "terminate_on_close"}
)
"""How patient we are with a server and what we say of it: changing this must not forget what is known of it."""

_GENTLE = frozenset(
    {
        "description",
        "lazy",
        "required",
        "read_only",
        "overrides",
        "flows",
        "max_retries",
        "timeout",
        "request_timeout",
        "startup_timeout",
    }
)
"""What can change while a server stays connected."""

_log = logging.getLogger("squidbot.config")


def _number_as_text(value: Any) -> Any:
    """A bare number is as good as its text where text is wanted; true and false are spelt in too many ways."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Text: TypeAlias = Annotated[str, BeforeValidator(_number_as_text)]


@dataclass(frozen=True, slots=True)
class ServerOrigin:
    """Where an entry comes from; it travels with the entry and is no part of it."""

    folder: Path | None = None
    """The settings file's, from which relative paths start."""
    optional: bool = False
    """A built-in definition that nobody named."""
    definition: "MCPServerConfig | None" = None
    """The entry as written, if this is its resolved copy."""
    taken: frozenset[str] = frozenset()
    """What variables and files put into the resolved copy."""
    file_env: Mapping[str, str] = field(default_factory=dict)
    """The variables of its env file."""


class MCPServerConfig(Strict):
    """One server: how it is started or reached, how long it may take, and what of it is used.

    As written, it still has its references such as `${VAR}`; `resolved()` gives a copy that can be connected.
    """

    name: str = ""
    transport: TransportName = "stdio"
    command: str | None = None
    args: list[Text] = Field(default_factory=list)
    env: dict[str, Text] = Field(default_factory=dict)
    env_file: str | None = None
    cwd: str | None = None
    encoding: str = "utf-8"
    url: str | None = None
    headers: dict[str, Text] = Field(default_factory=dict)
    auth: AuthConfig | None = None
    timeout: Seconds | None = None
    sse_read_timeout: Seconds = 300.0
    terminate_on_close: bool = True
    request_timeout: Seconds = 60.0
    startup_timeout: Seconds = 30.0
    max_retries: Count = 3
    protocol: Protocol = "auto"
    min_protocol: Revision | None = None
    read_only: list[Glob] = Field(default_factory=list)
    lazy: bool = False
    required: bool = False
    load_tools: bool = True
    load_prompts: bool = True
    allow: list[Glob] | None = None
    deny: list[Glob] = Field(default_factory=list)
    overrides: dict[Glob, ToolOverride] = Field(default_factory=dict)
    flows: FlowLabels = Field(default_factory=FlowLabels)
    sampling: SamplingSettings | None = None
    bounds: BoundsConfig = Field(default_factory=BoundsConfig)
    config: dict[str, Any] | None = None
    log_level: LogLevel | None = None
    description: str = ""
    enabled: bool = True

    _origin: ServerOrigin = PrivateAttr(default_factory=ServerOrigin)

    @model_validator(mode="wrap")
    @classmethod
    def _whole(cls, data: Any, handler: ModelWrapValidatorHandler["MCPServerConfig"]) -> "MCPServerConfig":
        """Infer the transport, and report the rules over several fields together with those of each."""
        if not isinstance(data, dict):
            return handler(data)
        given = {("env_file" if key == "envFile" and "env_file" not in data else key): data[key] for key in data}
        inferred = given.get("transport") is None
        if inferred:
            given["transport"] = infer_transport(given)
        more = list(faults(given, inferred=inferred))
        try:
            config = handler(given)
        except ValidationError as error:
            raise joined(cls.__name__, more, error) from None
        if more:
            raise joined(cls.__name__, more)
        if inferred:
            config.model_fields_set.discard("transport")  # nobody wrote it: a filled url may mean another
        return config

    @field_validator("config")
    @classmethod
    def _plain_json(cls, config: dict[str, Any] | None) -> dict[str, Any] | None:
        try:
            json.dumps(config, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError):
            raise rule("it goes to the server as JSON, and holds something that JSON has no word for") from None
        return config

    def model_post_init(self, context: Any, /) -> None:
        """Take from whoever validates where this comes from."""
        if isinstance(context, Mapping) and "server" in context:
            self._origin = context["server"]

    @property
    def is_resolved(self) -> bool:
        """Whether all references have been filled."""
        return self._origin.definition is not None

    @property
    def is_optional(self) -> bool:
        """Whether it is a built-in definition that nobody named: one that cannot be resolved is left out."""
        return self._origin.optional

    @property
    def written(self) -> "MCPServerConfig":
        """The definition as it stands in the settings, its references unfilled."""
        return self._origin.definition or self

    @property
    def digest(self) -> str:
        """A fingerprint of the definition as written, without what the environment put into it."""
        definition = self.written.model_dump(exclude=set(_OUTSIDE_DIGEST))
        text = json.dumps({**definition, "name": self.name}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def runs_as(self, other: "MCPServerConfig") -> bool:
        """Whether a server that was started by this definition is what `other` wants too."""
        return (
            self.digest == other.digest
            and self._origin.file_env == other._origin.file_env  # noqa: SLF001 - of its own kind
            and self.model_dump(exclude=set(_GENTLE)) == other.model_dump(exclude=set(_GENTLE))
        )

    @property
    def secrets(self) -> frozenset[str]:
        """Values to blank wherever text about this server is shown."""
        found = [*self._origin.taken, *secrets_of_arguments(self.args)]
        for part in (self.env, self.headers, self.config, self.url, *self.args):
            found += secrets_in(part)
        if self.auth is not None:
            found += secrets_in({"client_secret": self.auth.client_secret})
        return worth_hiding(found)

    def shown(self) -> dict[str, Any]:
        """The definition as written, fit to be shown: references stand, secrets are blanked."""
        definition = self.written
        given = definition.model_dump(mode="json", exclude_unset=True, exclude={"name"})
        return {key: shown(value, key, secrets=definition.secrets) for key, value in given.items()}

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        secrets = self.secrets
        for name, value in super().__repr_args__():
            yield name, shown(value, secrets=secrets)

    def resolved(self, environ: Mapping[str, str] | None = None) -> "MCPServerConfig":
        """A copy with every reference filled, itself if it is one. Raises ConfigError that names all that is missing."""
        config, problems = self.resolve(environ)
        if problems:
            raise ConfigError(f"The server {self.name!r} cannot be used as it is defined:", problems)
        return config

    def resolve(
        self, environ: Mapping[str, str] | None = None, *, at: str = ""
    ) -> "tuple[MCPServerConfig, list[Problem]]":
        """The resolved copy, or itself and what stands in the way; `at` is the entry's path in the settings."""
        if self.is_resolved:
            return self, []
        filler, file_env = self._filler(environ, at=at)
        given = self.model_dump(exclude_unset=True)
        for key in _FILLED:
            if key in given:
                given[key] = filler.tree(given[key], join_path(at, key))
        if filler.problems:
            return self, filler.problems
        if self.cwd is not None:
            given["cwd"] = str(under(self._origin.folder, given["cwd"]))
        if self.command is not None and given["command"].startswith("~/"):
            given["command"] = str(under(None, given["command"]))
        taken = frozenset(filler.taken).union(file_env.values())
        origin = replace(self._origin, definition=self, taken=taken, file_env=file_env)
        try:
            return MCPServerConfig.model_validate(given, context={"server": origin}), []
        except ValidationError as error:
            return self, problems_of(error, MCPServerConfig, at=at, show_values=False)

    def resolve_env(self) -> dict[str, str]:
        """`env` with its references filled; what is missing becomes an empty string, with a warning."""
        if self.is_resolved:
            return dict(self.env)
        filler, _ = self._filler(None, at=self.name, lenient=True)
        env = {name: filler.text(value, join_path(self.name, "env", name)) for name, value in self.env.items()}
        for problem in filler.problems:
            _log.warning("%s; it is left empty", hide(f"{problem.path}: {problem.message}", filler.taken))
        return env

    def child_environment(self, environ: Mapping[str, str] | None = None) -> dict[str, str]:
        """All that a stdio server's process gets to know: little of ours, and what its entry gives it."""
        ours = os.environ if environ is None else environ
        if not self.is_resolved:
            return self.resolved(environ).child_environment(ours)
        given = {name: ours[name] for name in sorted(MINIMAL_ENVIRONMENT & ours.keys())}
        given |= {**self._origin.file_env, **self.env}
        if self.config is not None:
            given["MCP_CONFIG"] = json.dumps(self.config, ensure_ascii=False)
        return given

    def public_config(self) -> dict[str, Any] | None:
        """`config` without anything that came from a variable or has a secret's name: it goes over the wire."""
        definition = self.written
        if definition.config is None:
            return None
        cleaned: dict[str, Any] = public(without_references(definition.config), secrets=self.secrets)
        return cleaned

    def _filler(
        self, environ: Mapping[str, str] | None, *, at: str, lenient: bool = False
    ) -> tuple[Filler, dict[str, str]]:
        """What fills this entry's references, and the variables of its env file, which come before ours."""
        ours = surroundings() if environ is None else environ

        def read(path: str) -> str:
            return read_secret(under(self._origin.folder, path))

        outer = Filler(ours, read, lenient=lenient)
        file_env: dict[str, str] = {}
        if self.env_file is not None:
            place = join_path(at, "env_file")
            path = outer.text(self.env_file, place)
            try:
                file_env = read_env_file(under(self._origin.folder, path)) if not outer.problems else {}
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                outer.problems.append(Problem(place, f"the file {self.env_file!r} cannot be read: {reason}"))
        public_names = PUBLIC_VARIABLES - file_env.keys()
        filler = Filler(ChainMap(file_env, dict(ours)), read, public=public_names, lenient=lenient)
        filler.problems.extend(outer.problems)
        return filler, file_env
