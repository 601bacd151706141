"""Every error that squidbot raises on purpose, in one tree.

    SquidbotError
    ├── ConfigError          (ValueError)       the settings are wrong; `problems` lists all of it
    ├── ToolNotPermitted     (PermissionError)  the role may not use the tool
    ├── NotAllowed           (PermissionError)  whoever asks has no right to this on the gateway itself
    ├── NotFound             (ValueError)       no such server, role, record or token
    ├── RateLimited                             a limit was reached; `retry_after` in seconds
    ├── UnknownTool          (ValueError)       no such tool; `nearest` names what was perhaps meant
    ├── NotRecorded                             the record cannot be written, so nothing was done
    ├── InvalidArguments     (ValueError)       arguments do not fit the tool's schema; `problems` lists all
    ├── MCPConnectionError   (RuntimeError)     a server cannot be reached, or was lost
    ├── MCPRequestRefused                       a server refused a request, in words of its own
    ├── MCPProtocolError                        a server answered with something that is no valid answer
    ├── Declined                                a server's question is not answered, for a reason that it may know
    └── ModelError                              a language model could not be reached, or did not answer

A tool's own failure is no exception: it is a `ToolResult` with `is_error`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias


class SquidbotError(Exception):
    """The root; `hint` says what to do about it, where that can be said."""

    hint: str | None = None
    record: str | None = None
    """The id of the record of the refused attempt, where there is one."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a document or a set of arguments."""

    path: str
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.path else self.message
        return f"{text}. {self.hint}" if self.hint else text


class ConfigError(SquidbotError, ValueError):
    """The settings cannot be used; every problem is listed, not only the first."""

    def __init__(self, message: str, problems: Sequence[Problem] = (), *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.problems = tuple(problems)
        self.hint = hint

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"  {problem}" for problem in self.problems)])


class ToolNotPermitted(SquidbotError, PermissionError):
    """The caller's role does not include this tool."""


class NotAllowed(SquidbotError, PermissionError):
    """Whoever asks may not do this on the gateway: looking and changing are rights of their own."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class NotFound(SquidbotError, ValueError):
    """Nothing has this name; `kind` says what was looked for."""

    def __init__(self, kind: str, name: str, *, known: Sequence[str] = ()) -> None:
        super().__init__(f"there is no {kind} {name!r}")
        self.kind = kind
        self.hint = f"There are: {', '.join(known)}." if known else None


class RateLimited(SquidbotError):
    """A limit was reached; after `retry_after` seconds the same call passes."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NotRecorded(SquidbotError):
    """The audit log cannot be written or read; what would have to be recorded is not done."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class UnknownTool(SquidbotError, ValueError):
    """No connected server has this tool."""

    def __init__(self, message: str, *, nearest: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.nearest = tuple(nearest)
        self.hint = f"Did you mean {' or '.join(repr(name) for name in self.nearest)}?" if self.nearest else None


class InvalidArguments(SquidbotError, ValueError):
    """The arguments do not fit the tool's schema; nothing was sent."""

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"  {problem}" for problem in self.problems)])


class MCPConnectionError(SquidbotError, RuntimeError):
    """A server could not be reached or was lost."""

    def __init__(
        self,
        message: str,
        *,
        server: str = "",
        reason: str | None = None,
        hint: str | None = None,
        status: int | None = None,
        retry_after: float | None = None,
        permanent: bool = False,
    ) -> None:
        super().__init__(message)
        self.server = server
        self.reason = reason or message
        """The cause in short, without paths or a server's last words: fit for a model."""
        self.hint = hint
        self.status = status
        self.retry_after = retry_after
        self.permanent = permanent
        """Trying again at once cannot help: a missing command, a refused token, a malformed url."""


class MCPRequestRefused(SquidbotError):
    """A server refused a request (a prompt, a resource); the text has its words."""

    def __init__(self, message: str, *, error: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.error = error
        """The protocol's own error: `code`, `message`, perhaps `data`."""


class MCPProtocolError(SquidbotError):
    """A server sent something that is no valid answer."""


class Declined(SquidbotError):
    """What a server asked is not answered; the text says why, and may be told to the server."""


class NotOffered(Declined):
    """Whoever is asked never said that they answer such questions: somebody else may."""


ModelFault: TypeAlias = Literal[
    "missing", "auth", "unknown_model", "refused", "no_tools", "limited", "busy", "unreachable", "broken"
]
"""What is wrong with a model: none is set up, its key, its name, the request, no tools, too many requests, a server's
failure, no connection, an answer that broke off or makes no sense."""


class ModelError(SquidbotError):
    """A language model did not answer; `kind` says whose fault that is, `retry_after` when it may be asked again."""

    def __init__(
        self, message: str, *, kind: ModelFault, hint: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.hint = hint
        self.retry_after = retry_after

    @property
    def is_passing(self) -> bool:
        """Whether the same request may be answered a little later."""
        return self.kind in ("limited", "busy", "unreachable", "broken")
