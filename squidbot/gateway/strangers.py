"""Records who comes by a foreign name, or from a foreign page: before any token is asked for, so within bounds."""

from typing import Literal, TypeAlias

from starlette.types import Scope

from squidbot.core.domain.callers import Caller, Origin
from squidbot.core.services.recording import Recorder
from squidbot.core.services.refusals import Refusals

Foreign: TypeAlias = Literal["host", "origin"]
_REASONS: dict[Foreign, str] = {
    "host": "this gateway does not answer by that name",
    "origin": "pages of that origin may not speak to this gateway",
}
_LONGEST = 253
"""Characters of a name; what is longer is none, and may be anything."""


class Strangers:
    """Each kind has room of its own: a monitor that knows us by another name hides no page that tries to get in."""

    def __init__(self, recorder: Recorder) -> None:
        self._refusals = {which: Refusals(recorder, "request") for which in _REASONS}

    async def note(self, which: Foreign, scope: Scope, said: str) -> None:
        """Put one on record, unless there are too many. Raises nothing. `said` is what the header said, of which the name is kept."""
        # What stands before an @ is for whoever it was meant for.
        name = said.rpartition("@")[2]
        what = {
            which: name if len(name) <= _LONGEST else f"({len(name)} characters)",
            "address": (scope.get("client") or (None,))[0],
        }
        await self._refusals[which].note(Caller("", origin=_way(scope["path"])), _REASONS[which], what)


def _way(path: str) -> Origin:
    """What was asked for; no more of it is kept, since anything may stand in a path."""
    match path.split("/")[1] if path.startswith("/") else "":
        case "mcp":
            return "mcp"
        case "api" | "metrics":
            return "api"
        case _:
            return "dashboard"
