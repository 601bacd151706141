"""The API's own description, made from the table of its operations."""

from typing import Any

from squidbot.gateway.api.operations import Operation
from squidbot.gateway.api.schemas import SHAPES, Schema, name, ref
from squidbot.gateway.api.table import OPERATIONS

_REFUSALS = {
    400: "The body is no JSON, or two readers could understand it in two ways",
    401: "No token, or none that is good",
    403: "The token has not this right, or the page not this origin",
    404: "There is no such thing, or the role may not use it",
    413: "The request is too large",
    415: "The body is not JSON",
    421: "The gateway does not answer by this name",
    422: "The request does not fit; all problems are listed",
    429: "A limit was reached; Retry-After says for how long",
    503: "A server, or the record, is not available; nothing was done",
}
_ALWAYS = (401, 403, 421, 422, 503)
_WITH_BODY = (400, 413, 415)
_HEADERS: dict[int, dict[str, Any]] = {
    401: {"WWW-Authenticate": {"schema": {"type": "string"}, "required": True}},
    429: {"Retry-After": {"schema": {"type": "string"}, "required": True}},
}


def document(version: str) -> dict[str, Any]:
    """OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(f"/api/v1{operation.path}", {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "squidbot",
            "version": version,
            "description": "What a gateway shows and does: an auditor's token may look, an admin's may change, "
            "a role's token sees and calls the tools of its role.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": SHAPES,
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": operation.id,
        "summary": operation.summary,
        "description": f"For {operation.needs}.",
        "parameters": [
            *(_parameter(part, "path", name(), required=True) for part in operation.parts),
            *(
                _parameter(key, "query", schema, required=key in operation.needed)
                for key, schema in operation.query.items()
            ),
        ],
        "responses": _responses(operation),
    }
    if operation.body:
        needed = any(key in operation.needed for key in operation.body)
        content = {"application/json": {"schema": operation.body_schema}}
        found["requestBody"] = {"required": needed, "content": content}
    return found


def _responses(operation: Operation) -> dict[str, Any]:
    kind = "text/event-stream" if operation.stream else "application/json"
    found: dict[str, Any] = {
        str(operation.status): {"description": operation.summary, "content": {kind: {"schema": operation.answer}}}
    }
    refusals = {*_ALWAYS, *operation.refusals, *(_WITH_BODY if operation.body else ())}
    for status in sorted(refusals):
        content = {"application/json": {"schema": ref("Error")}}
        found[str(status)] = {"description": _REFUSALS[status], "content": content}
        if status in _HEADERS:
            found[str(status)]["headers"] = _HEADERS[status]
    return found


def _parameter(key: str, place: str, schema: Schema, *, required: bool) -> dict[str, Any]:
    return {"name": key, "in": place, "required": required, "schema": schema}
