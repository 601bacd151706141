"""The HTTP API as an ASGI application; who asks has been found out before."""

from collections.abc import Awaitable, Callable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from squidbot.core.domain.errors import SquidbotError
from squidbot.core.ports import SchemaCheck
from squidbot.core.services.desk import Desk
from squidbot.gateway.answers import JSON, error, refusal
from squidbot.gateway.api.asking import asked
from squidbot.gateway.api.openapi import document
from squidbot.gateway.api.operations import Operation
from squidbot.gateway.api.table import OPERATIONS

_PREFIX = "/api/v1"


class API:
    """Routes under `/api/v1`."""

    def __init__(self, desk: Desk, schemas: SchemaCheck) -> None:
        self._desk = desk
        self._schemas = schemas
        routes: dict[str, dict[str, Operation]] = {}
        for operation in OPERATIONS:
            routes.setdefault(operation.path, {})[operation.method] = operation
        self._router = Router(
            [Route(_PREFIX + path, self._endpoint(known), methods=[*known]) for path, known in routes.items()],
            redirect_slashes=False,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The router raises for what it does not know only inside of an application.
        scope["app"] = self
        try:
            await self._router(scope, receive, send)
        except HTTPException as problem:
            await _nothing(problem)(scope, receive, send)

    async def document(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The API's description, which everybody may read."""
        if scope["method"] in ("GET", "HEAD"):
            await JSON(document(self._desk.version))(scope, receive, send)
        else:
            await _nothing(HTTPException(405, headers={"Allow": "GET, HEAD"}))(scope, receive, send)

    def _endpoint(self, known: dict[str, Operation]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            operation = known["GET" if request.method == "HEAD" else request.method]
            try:
                values = await asked(request, operation, self._schemas)
                if isinstance(values, Response):
                    return values
                found = await operation.handler(self._desk, request.scope["state"]["principal"], values)
            except SquidbotError as problem:
                return refusal(problem)
            if isinstance(found, StreamingResponse) and request.method == "HEAD":
                return Response(media_type=found.media_type)
            return operation.answered(found)

        return answer


def _nothing(problem: HTTPException) -> Response:
    if problem.status_code == 405:
        return error(405, "not_allowed_here", "this path does not take this method", headers=problem.headers)
    return error(404, "not_found", "there is nothing here", hint=f"'{_PREFIX}/openapi.json' lists what there is.")
