"""JSON as it comes in and as it goes out: one meaning for everybody who reads it, within bounds."""

import json
import math
from collections.abc import Mapping
from typing import Any

from mcp_types import INVALID_REQUEST, PARSE_ERROR

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False)
DEEPEST = 100
MOST_KEYS = 20_000


class Malformed(Exception):
    """A body that is no message; `code` is the protocol's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class _Strict:
    """Reads objects that have each key once, and not too many keys altogether. Made once: making it takes longer than using it."""

    def __init__(self) -> None:
        self._keys = 0
        self._decoder = json.JSONDecoder(object_pairs_hook=self._whole, parse_constant=_no_number, parse_float=_finite)

    def read(self, text: str) -> Any:
        """Raises ValueError, RecursionError, Malformed."""
        self._keys = 0
        return self._decoder.decode(text)

    def _whole(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        self._keys += len(pairs)
        if self._keys > MOST_KEYS:
            raise Malformed(INVALID_REQUEST, f"The body has more than {MOST_KEYS} keys")
        found = dict(pairs)
        if len(found) != len(pairs):
            raise Malformed(PARSE_ERROR, "Parse error: an object has the same key twice")
        return found


def decoded(body: bytes) -> Any:
    """What a body says. Raises Malformed for what two readers could understand in two ways, and for what is too much."""
    try:
        value = _STRICT.read(body.decode("utf-8"))
    except RecursionError:
        raise Malformed(INVALID_REQUEST, f"The body is nested deeper than {DEEPEST} levels") from None
    except ValueError:
        raise Malformed(PARSE_ERROR, "Parse error") from None
    # As many brackets as levels are allowed cannot nest too deep: usually nobody has to look.
    if body.count(b"{") + body.count(b"[") > DEEPEST and _is_deep(value):
        raise Malformed(INVALID_REQUEST, f"The body is nested deeper than {DEEPEST} levels")
    if b"\\u" in body and _has_half_a_character(value):
        raise Malformed(PARSE_ERROR, "Parse error: a string holds half a surrogate pair")
    return value


class Written(dict[str, Any]):
    """A JSON object beside its text: for what is said again and again, and takes long to write. It is not changed any more."""

    def __init__(self, value: Mapping[str, Any], text: bytes | None = None) -> None:
        super().__init__(value)
        self.text = encoded(dict(value)) if text is None else text

    def extended(self, more: Mapping[str, Any]) -> "Written":
        """The same object with these at its end, of which it has none."""
        if not (self and more):
            return Written(self or more, self.text if self else None)
        return Written({**self, **more}, self.text[:-1] + b"," + encoded(dict(more))[1:])


def encoded(value: Any) -> bytes:
    """JSON that every reader takes: what a server said and JSON cannot is replaced."""
    if type(value) is dict and isinstance(result := value.get("result"), Written) and len(value) > 1:
        around = {name: part for name, part in value.items() if name != "result"}
        return encoded(around)[:-1] + b',"result":' + result.text + b"}"
    try:
        return _ENCODER.encode(value).encode("utf-8")
    except ValueError:
        return _ENCODER.encode(_sayable(value)).encode("utf-8", "replace")


def event(message: Any, *, name: str | None = None) -> bytes:
    """A message as a server-sent event."""
    head = f"id: {name}\r\n".encode("ascii") if name is not None else b""
    return b"event: message\r\n" + head + b"data: " + encoded(message) + b"\r\n\r\n"


def _no_number(word: str) -> Any:
    raise ValueError(word)


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(digits[:40])
    return number


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST + 1):
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                deeper.extend(item.values())
            elif isinstance(item, list):
                deeper.extend(item)
        if not deeper:
            return False
        level = deeper
    return True


def _has_half_a_character(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _sayable(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): _sayable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(item) for item in value]
    return value


_STRICT = _Strict()
