"""Points in time on the command line."""

from squidbot.cli.errors import CommandError
from squidbot.core.domain import moments


def moment(text: str) -> str:
    """The timestamp that `text` means. Raises CommandError."""
    found = moments.moment(text)
    if found is None:
        raise CommandError(f"{text!r} is no point in time", code="usage", hint=moments.MOMENTS)
    return found
