"""Walls that know whom they have let through: what makes the short way of a request as safe as the long one.

A request passes all walls on its way to the endpoint. Each that lets it through leaves a `Wall` behind, which can tell at
once whether it would let through the same again. As long as all of them would, the next request with the same head need not
be looked at from the beginning.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

import anyio
from starlette.types import Scope

LEAVING: Final = "squidbot.leaving"
"""In a request's scope: callbacks for when its client hangs up, so that nobody has to wait for that meanwhile."""
LEARN: Final = "squidbot.learn"
"""In a request's scope: takes a `ShortWay` for the next requests of its connection that have the same head."""
WALLS: Final = "squidbot.walls"
"""In a request's scope: the walls that it has passed, where somebody wants to know."""


class Wall(Protocol):
    """What one wall thinks of requests with the head of the one that it let through."""

    def still(self) -> bool:
        """Whether it would let through another one now. Never waits; what it cannot tell at once is a no."""
        ...

    def enter(self, work: anyio.CancelScope) -> None:
        """Another one is under way; the wall may cancel it."""
        ...

    def leave(self, work: anyio.CancelScope) -> None:
        """It has been answered."""
        ...


class ShortPost(Protocol):
    """A request that came the short way, with its whole body."""

    leaving: set[Callable[[], object]]

    async def send(self, message: Any) -> None:
        """As an application does, for what is more than one answer."""
        ...

    async def receive(self) -> Any:
        """As an application does, to hear that the client hangs up."""
        ...

    async def finish(self, body: bytes) -> None:
        """Answer with JSON."""
        ...


class ShortWay(Protocol):
    """Deals with requests whose head is known."""

    async def serve(self, body: bytes, post: ShortPost) -> bool:
        """Answer a request; False, and nothing was done, for what has to go the long way."""
        ...


def passed(scope: Scope, wall: Wall | None) -> None:
    """Remember that a wall was passed; with None that this request is like no other, and every wall has to be asked again."""
    walls: Any = scope.get(WALLS)
    if wall is None:
        scope.pop(WALLS, None)
    elif walls is not None:
        walls.append(wall)
