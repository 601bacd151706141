"""What a failed command says and exits with: one table from errors to codes, hints and exit codes."""

import click

from squidbot.cli.exits import FAILED, INTERRUPTED, REFUSED, UNAVAILABLE, USAGE
from squidbot.core.domain.errors import (
    ConfigError,
    InvalidArguments,
    MCPConnectionError,
    MCPProtocolError,
    MCPRequestRefused,
    ModelError,
    NotAllowed,
    NotFound,
    NotRecorded,
    RateLimited,
    SquidbotError,
    ToolNotPermitted,
    UnknownTool,
)


class CommandError(SquidbotError):
    """A command cannot go on: `code` for programs, `exit_code` for shells."""

    def __init__(self, message: str, *, code: str, exit_code: int = USAGE, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.exit_code = exit_code
        self.hint = hint


_KINDS: tuple[tuple[type[SquidbotError], str, int], ...] = (
    (ConfigError, "settings", USAGE),
    (UnknownTool, "unknown_tool", USAGE),
    (InvalidArguments, "invalid_arguments", USAGE),
    (ToolNotPermitted, "not_permitted", REFUSED),
    (NotAllowed, "not_allowed", REFUSED),
    (NotFound, "unknown", USAGE),
    (RateLimited, "limited", REFUSED),
    (NotRecorded, "not_recorded", FAILED),
    (MCPConnectionError, "unavailable", UNAVAILABLE),
    (MCPRequestRefused, "request_refused", FAILED),
    (MCPProtocolError, "protocol", FAILED),
    (SquidbotError, "failed", FAILED),
)


_MODEL_USAGE = frozenset({"missing", "auth", "unknown_model", "no_tools"})
"""What is wrong with the settings of a model, rather than with the model."""


def explained(error: BaseException) -> CommandError:
    """`error` in the words and with the codes of the outer surface."""
    match error:
        case CommandError():
            return error
        case ModelError(kind=kind):
            exit_code = USAGE if kind in _MODEL_USAGE else FAILED
            return CommandError(str(error), code="model", exit_code=exit_code, hint=error.hint)
        case SquidbotError():
            code, exit_code = next((code, exit_code) for kind, code, exit_code in _KINDS if isinstance(error, kind))
            if isinstance(error, NotFound):
                code = f"unknown_{error.kind}"
            return CommandError(str(error), code=code, exit_code=exit_code, hint=error.hint)
        case click.UsageError(ctx=context):
            hint = f"See '{context.command_path} --help'." if context else None
            return CommandError(error.format_message(), code="usage", hint=hint)
        case click.ClickException():
            return CommandError(error.format_message(), code="usage")
        case KeyboardInterrupt() | click.Abort():
            return CommandError("interrupted", code="interrupted", exit_code=INTERRUPTED)
        case OSError():
            reason = error.strerror or str(error)
            message = f"{str(error.filename)!r}: {reason}" if error.filename else reason
            return CommandError(message, code="failed", exit_code=FAILED)
        case _:
            return CommandError(
                f"internal error: {type(error).__name__}: {error}",
                code="internal",
                exit_code=FAILED,
                hint="This is a fault of squidbot. Run it again with -vv to see where, and report it.",
            )
