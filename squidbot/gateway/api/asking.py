"""Reads a request of the API: query and body as the types that the operation's schema names, or an error with all problems."""

from collections.abc import Mapping
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from squidbot.core.domain.errors import InvalidArguments, Problem
from squidbot.core.ports import SchemaCheck
from squidbot.gateway.answers import error
from squidbot.gateway.api.operations import Operation
from squidbot.gateway.api.schemas import Schema
from squidbot.gateway.mcp.wire import Malformed, decoded

_FLAGS = {"true": True, "false": False}


async def asked(request: Request, operation: Operation, schemas: SchemaCheck) -> dict[str, Any] | Response:
    """All that was given, by name. Raises InvalidArguments."""
    query = _typed(request.query_params, operation.query)
    given = {**query, **request.path_params}
    problems = [*await schemas.problems(operation.query_schema, given)]
    body: Any = {}
    if operation.body:
        found = await _body(request, needed=bool(set(operation.needed) & set(operation.body)))
        if isinstance(found, Response):
            return found
        body = found
        problems += await schemas.problems(operation.body_schema, body)
    if problems:
        raise InvalidArguments("the request does not fit:", problems)
    return {**given, **body}


async def _body(request: Request, *, needed: bool) -> Any:
    raw = await request.body()
    if not raw and not needed:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return error(415, "unsupported", "the body must be JSON", hint="Send 'Content-Type: application/json'.")
    try:
        return decoded(raw)
    except Malformed as problem:
        return error(400, "malformed", problem.message)


def _typed(given: QueryParams, known: Mapping[str, Schema]) -> dict[str, Any]:
    """Words of the query as numbers and flags where the schema has those. Raises InvalidArguments for one given twice."""
    repeated = {name for name, _ in given.multi_items() if len(given.getlist(name)) > 1}
    if repeated:
        problems = [Problem(name, "is given more than once") for name in sorted(repeated)]
        raise InvalidArguments("the request does not fit:", problems)
    return {name: _value(text, known.get(name, {})) for name, text in given.items()}


def _value(text: str, schema: Schema) -> Any:
    match schema.get("type"):
        case "integer" if _is_whole(text):
            return int(text)
        case "boolean":
            return _FLAGS.get(text, text)
        case _:
            return text


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 15
