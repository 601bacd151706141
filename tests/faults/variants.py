"""Which transports can have which faults, and how variants of one fault are shared out among them."""

from typing import Any

from tests.faults.case import TRANSPORTS, Case, Transport

STREAMS: tuple[Transport, ...] = ("stdio", "sse", "websocket")
"""Those with one lasting connection."""
NETWORK: tuple[Transport, ...] = ("sse", "websocket", "http", "json")
EVENTS: tuple[Transport, ...] = ("stdio", "sse", "websocket", "http")
"""Those that can carry more than one message at a time."""
HTTP: tuple[Transport, ...] = ("http", "json")
STDIO: tuple[Transport, ...] = ("stdio",)
SSE: tuple[Transport, ...] = ("sse",)
WEBSOCKET: tuple[Transport, ...] = ("websocket",)
ONE_HTTP: tuple[Transport, ...] = ("http",)
PATIENT = {"request_timeout": 6.0}
"""For faults that need time to be made."""


def each(fault: str, variants: str, *, over: tuple[Transport, ...] = TRANSPORTS, **fields: Any) -> list[Case]:
    """Variants of one fault; each is sampled over one or two transports, in turn, so that together they see all."""
    given = variants.split()
    share = 1 if len(given) >= len(over) else 2
    return [
        Case(fault=fault, argument=argument, over=over, sampled=_in_turn(over, turn * share, share), **fields)
        for turn, argument in enumerate(given)
    ]


def _in_turn(over: tuple[Transport, ...], first: int, share: int) -> tuple[Transport, ...]:
    return tuple(dict.fromkeys(over[(first + step) % len(over)] for step in range(share)))
