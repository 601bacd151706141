"""One frame of bytes to one JSON-RPC message and back, within bounds, with every oddity told apart.

Servers write banners, break their UTF-8, nest a thousand deep and repeat keys. Nothing here raises
anything but `Noise` (not meant for us) and `Unreadable` (meant for us, but no valid message).
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from itertools import accumulate
from typing import Any

from squidbot.adapters.mcp.allocator import uncollected
from squidbot.adapters.mcp.channel import Bounds

_ID = re.compile(rb'"id"\s*:\s*(?:"([^"\\]{1,64})"|(-?\d{1,20})\b)')
_QUOTED = re.compile(rb'"[^"]*"?')
_BUT_MARKS = bytes(set(range(256)) - set(b'[]{},"'))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_LONE = re.compile("[\ud800-\udfff]")
_DIGITS = 1_000
"""Characters of one number; the largest float, written out, has 309."""
HEAVY = 10_000
"""Values in a question or notification of a server's own, beyond which it is not passed on: whoever handles it takes many
times as long as reading it takes, and has no use for more."""
_PER_OBJECT = 3
"""How many values a message may have for each object or list that it may have."""
_EDGE = 65_536
_BLANKS = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


class Noise(Exception):
    """A line that does not begin like a message: a banner, a stray print."""


class Unreadable(Exception):
    """A frame that begins like a message and is none; `ids` are those it may be the answer to."""

    def __init__(self, reason: str, ids: tuple[int | str, ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.ids = ids


def read_frame(frame: bytes, bounds: Bounds, *, encoding: str = "utf-8") -> dict[str, Any]:
    """The message in `frame`. Raises Noise or Unreadable, nothing else."""
    frame = frame.strip(_BLANKS).removeprefix(_BOM).lstrip(_BLANKS)
    if not frame.startswith((b"{", b"[")):
        raise Noise
    if frame.startswith(b"["):
        raise Unreadable("a batch, which the protocol does not have", possible_ids(frame))
    if (reason := _excess(frame, bounds)) is not None:
        raise Unreadable(reason, possible_ids(frame))
    try:
        with uncollected() if len(frame) > _EDGE else nullcontext():
            message = _DECODER.decode(frame.decode(encoding, "replace"))
            if b"\\ud" in frame or b"\\uD" in frame:
                message = _without_lone_surrogates(message)
    except RecursionError:
        raise Unreadable("nested too deeply", possible_ids(frame)) from None
    except ValueError as error:
        raise Unreadable(f"no valid JSON: {_short(error)}", possible_ids(frame)) from None
    if message.get("jsonrpc") != "2.0":
        raise Unreadable("it does not say jsonrpc 2.0", possible_ids(frame))
    return message  # type: ignore[no-any-return]


def write_frame(message: Mapping[str, Any]) -> bytes:
    """`message` as one line of UTF-8 JSON, valid whatever strings and numbers it holds."""
    try:
        return _ENCODER.encode(message).encode()
    except (UnicodeEncodeError, ValueError):
        return _ENCODER.encode(_plain(message)).encode()


def possible_ids(*parts: bytes) -> tuple[int | str, ...]:
    """Every id that the ends of a broken message mention, for whoever knows which are awaited."""
    return tuple(dict.fromkeys(_ids(parts)))


def _ids(parts: tuple[bytes, ...]) -> Iterator[int | str]:
    for part in parts:
        for edge in (part[:_EDGE], part[-_EDGE:] if len(part) > _EDGE else b""):
            for text, number in _ID.findall(edge):
                yield int(number) if number else text.decode("utf-8", "replace")


def _excess(frame: bytes, bounds: Bounds) -> str | None:
    """What is too much about `frame`, told from its bytes alone, before anything is built from it."""
    most = bounds.objects * _PER_OBJECT
    if frame.count(b"{") + frame.count(b"[") <= bounds.depth and frame.count(b",") < most:
        return None
    marks = _marks(frame)
    skeleton = marks.replace(b",", b"")
    if (values := len(skeleton) // 2) > bounds.objects:
        return f"too many blocks: {values} JSON values where {bounds.objects} are allowed"
    if (values := len(marks) - len(skeleton)) >= most:
        return f"too many values: {values} where {most} are allowed"
    deepest = max(accumulate(map(_STEPS.__getitem__, skeleton)), default=0)
    return f"nested more than {bounds.depth} deep" if deepest > bounds.depth else None


def is_heavy(frame: bytes, most: int = HEAVY) -> bool:
    """Whether a message that was read has more than about `most` values, told without looking at each."""
    if frame.count(b",") + frame.count(b"{") + frame.count(b"[") <= most:
        return False
    return len(_marks(frame)) > 2 * most


def _marks(frame: bytes) -> bytes:
    """The brackets and commas of `frame` that stand outside of its strings, found without looking at each token."""
    marks = frame.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _BUT_MARKS).replace(b'""', b"")
    return _QUOTED.sub(b"", marks) if b'"' in marks else marks


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    merged = dict(pairs)
    if len(merged) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return merged


def _nothing(_constant: str) -> None:
    """NaN and the infinities have no place in JSON: like JavaScript, read them as null."""


def _finite(text: str) -> float | None:
    """A number that is too large for a float is as little JSON as an infinity."""
    number = float(_bearable(text))
    return number if math.isfinite(number) else None


def _whole(text: str) -> int:
    return int(_bearable(text))


def _bearable(text: str) -> str:
    """The digits of a number; reading a whole one takes time by the square of their count."""
    if len(text) > _DIGITS:
        raise ValueError(f"a number of {len(text)} characters")
    return text


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_nothing, parse_float=_finite, parse_int=_whole)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False)


def _without_lone_surrogates(value: Any) -> Any:
    """`value` as any JSON parser would take it; by a pattern, since a codec stumbles over each of a million."""
    match value:
        case str():
            return _LONE.sub("\ufffd", value)
        case dict():
            return _pairs([(_LONE.sub("\ufffd", key), _without_lone_surrogates(part)) for key, part in value.items()])
        case list():
            return [_without_lone_surrogates(part) for part in value]
        case _:
            return value


def _plain(value: Any) -> Any:
    """`value` with what JSON cannot carry replaced: lone surrogates by U+FFFD, NaN and infinities by null."""
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case float() if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN's own mark
            return None
        case Mapping():
            return {_plain(key): _plain(part) for key, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case _:
            return value


def _short(error: ValueError) -> str:
    return str(error).split("\n", 1)[0][:120]
