"""Every error that squidbot raises on purpose, in one tree.

    SquidbotError
    ├── ConfigError          (ValueError)       the settings are wrong; `problems` lists all of it
    ├── ToolNotPermitted     (PermissionError)  the role may not use the tool
    ├── RateLimited                             a limit was reached; `retry_after` in seconds
    ├── UnknownTool          (ValueError)       no such tool; `nearest` names what was perhaps meant
    ├── InvalidArguments     (ValueError)       arguments do not fit the tool's schema; `problems` lists all
    ├── MCPConnectionError   (RuntimeError)     a server cannot be reached, or was lost
    ├── MCPRequestRefused                       a server refused a request, in words of its own
    └── MCPProtocolError                        a server answered with something that is no valid answer

A tool's own failure is no exception: it is a `ToolResult` with `is_error`.
"""

from collections.abc import Sequence
from dataclasses import dataclass


class SquidbotError(Exception):
    """The root; `hint` says what to do about it, where that can be said."""

    hint: str | None = None


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


class RateLimited(SquidbotError):
    """A limit was reached; after `retry_after` seconds the same call passes."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


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


class MCPProtocolError(SquidbotError):
    """A server sent something that is no valid answer."""
