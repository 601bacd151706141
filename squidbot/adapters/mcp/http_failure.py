"""A failed HTTP exchange as the JSON-RPC error of the one call that it belongs to.

`error.data["squidbot"]` is an `HTTPFailure`'s fields, beside whatever the server itself put into the data
(under `"data"` if that was no object); `http_outcome.failure_of` reads it.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

from squidbot.adapters.mcp.channel import Bounds
from squidbot.adapters.mcp.frames import Noise, Unreadable, read_frame, write_frame
from squidbot.adapters.mcp.http_outcome import HTTPFailure
from squidbot.adapters.mcp.network import retry_after, status_text
from squidbot.adapters.mcp.protocol import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND

RequestId: TypeAlias = int | str


def error_frame(
    request_id: RequestId | None, code: int, *, message: str, failure: HTTPFailure | None = None, data: Any = None
) -> bytes:
    """A JSON-RPC error as a server could have sent it."""
    error: dict[str, Any] = {"code": code, "message": message}
    if failure is not None:
        own = data if isinstance(data, Mapping) else {} if data is None else {"data": data}
        error["data"] = {**own, "squidbot": asdict(failure)}
    return write_frame({"jsonrpc": "2.0", "id": request_id, "error": error})


def lost_frame(
    request_id: RequestId | None,
    cause: str,
    *,
    status: int | None = None,
    unreachable: bool = False,
    hint: str = "",
    permanent: bool = False,
) -> bytes:
    """The error of a call whose answer never came, or (with a `status`) that was never sent."""
    failure = HTTPFailure(status, cause=cause, unreachable=unreachable, hint=hint, permanent=permanent)
    return error_frame(request_id, CONNECTION_CLOSED, message=cause, failure=failure)


def refused_frame(
    request_id: RequestId, status: int, *, headers: Mapping[str, str], body: bytes, bounds: Bounds, in_session: bool
) -> bytes:
    """The error of a call that was answered with `status`; the server's own JSON-RPC error is kept."""
    lost = in_session and status == 404
    said = status_text(status)
    failure = HTTPFailure(status, retry_after(headers), session_lost=lost, cause=said)
    try:
        answer = read_frame(body, bounds)
    except (Noise, Unreadable):
        answer = {}
    match answer.get("error"):
        case {"code": int(code), "message": str(words), **more}:
            # 400 and 404 are how the protocol itself spells its errors over HTTP: there the words say it all.
            message = words if status in (400, 404) else f"{said}: {words}"
            return error_frame(request_id, code, message=message, failure=failure, data=more.get("data"))
        case _:
            code = {404: INVALID_REQUEST if lost else METHOD_NOT_FOUND}.get(status, INTERNAL_ERROR)
            return error_frame(request_id, code, message=said, failure=failure)
