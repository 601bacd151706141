"""What HTTP knew of a failed call, for those who only read it: without HTTP itself, which takes long to load."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

HINTS: Mapping[int, str] = {
    400: "Check the url: the server did not understand the request.",
    401: "Check the token in `headers`, or sign in with `squidbot servers login`.",
    403: "The server knows the token but does not allow this: check its rights.",
    404: "Check the path of the url.",
    405: "Check `transport`: the url may speak another one (http, sse).",
    407: "A proxy stands in between and wants a sign-in.",
    429: "The server asks for fewer requests.",
    500: "The fault is the server's own: its log may say more.",
    502: "Something before the server answers in its place: is the server itself running?",
    503: "The server is up and cannot serve now: try again later.",
    504: "Something before the server waited for it in vain: is the server itself running?",
}


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
