"""What an operation of the API is: how it is asked for, what it answers, and who does it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

from starlette.responses import Response

from squidbot.core.domain.members import Principal
from squidbot.core.services.desk import Desk
from squidbot.gateway.answers import JSON
from squidbot.gateway.api.schemas import Schema, name, whole

Handler: TypeAlias = Callable[[Desk, Principal, Mapping[str, Any]], Awaitable[Any]]
"""From what was asked (path, query and body together) to the answer: a JSON value, or a response of its own."""
Method: TypeAlias = Literal["GET", "POST", "DELETE"]
_LONGEST_PART = 256


@dataclass(frozen=True)
class Operation:
    """One method on one path. `query` and `body` are JSON Schemas by name; those in `needed` must be given."""

    id: str
    method: Method
    path: str
    summary: str
    handler: Handler
    answer: Schema
    query: Mapping[str, Schema] = field(default_factory=dict)
    body: Mapping[str, Schema] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    status: int = 200
    needs: str = "an auditor or an admin"
    refusals: tuple[int, ...] = ()
    """Beside those that any operation may have."""
    stream: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """The names in the path."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    @cached_property
    def query_schema(self) -> Schema:
        """What the query and the parts of the path have to fit."""
        given = {**{part: name(_LONGEST_PART) for part in self.parts}, **self.query}
        optional = tuple(key for key in given if key not in (*self.parts, *self.needed))
        return whole(given, optional=optional)

    @cached_property
    def body_schema(self) -> Schema:
        """What the body has to fit."""
        return whole(dict(self.body), optional=tuple(key for key in self.body if key not in self.needed))

    def answered(self, found: Any) -> Response:
        """The answer as it goes out."""
        return found if isinstance(found, Response) else JSON(found, self.status)
