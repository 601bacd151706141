"""What HTTP knew of a failed call, and how that travels inside of a JSON-RPC error.

`error.data["squidbot"]` is an `HTTPFailure`'s fields, beside whatever the server itself put into the data
(under `"data"` if that was no object); `failure_of` reads it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND

from squidbot.adapters.mcp.channel import Bounds
from squidbot.adapters.mcp.frames import Noise, Unreadable, read_frame, write_frame
from squidbot.adapters.mcp.network import retry_after, status_text

RequestId: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class HTTPFailure:
    """Why a call over HTTP failed; without a `status` there was no answer at all."""

    status: int | None
    retry_after: float | None = None
    session_lost: bool = False
    """The server no longer knows the session, so it did not run the call: open it again and send it once more."""
    cause: str = ""
    unreachable: bool = False
    """There was not even a connection: the server is down, not only this call."""
    hint: str = ""
    """What to try, where more is known than the status."""
    permanent: bool = False
    """It would fail in the same way a moment later."""


def failure_of(data: Any) -> HTTPFailure | None:
    """What HTTP knew of an error with this `data`, if it came that way."""
    match data:
        case {
            "squidbot": {
                "status": int() | None as status,
                "retry_after": float() | int() | None as seconds,
                "session_lost": bool(lost),
                "cause": str(cause),
                "unreachable": bool(unreachable),
                "hint": str(hint),
                "permanent": bool(permanent),
            }
        }:
            return HTTPFailure(
                status,
                seconds,
                session_lost=lost,
                cause=cause,
                unreachable=unreachable,
                hint=hint,
                permanent=permanent,
            )
        case _:
            return None


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
