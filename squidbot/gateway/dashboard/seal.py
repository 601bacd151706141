"""Values that a browser carries and cannot change: sealed with a key that all gateways of one database share."""

import base64
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

_LONGEST = 4_096


class Seal:
    """Closes and opens small values; each purpose has a key of its own. The key is asked for at first use."""

    def __init__(self, key: Callable[[], Awaitable[bytes]]) -> None:
        self._ask = key
        self._key: bytes | None = None

    async def close(self, purpose: str, value: Mapping[str, Any]) -> str:
        """`value` as text that `open` takes for the same purpose only. Raises NotRecorded."""
        body = _encoded(json.dumps(value, separators=(",", ":")).encode())
        return f"{body}.{_encoded(await self._mark(purpose, body))}"

    async def open(self, purpose: str, text: str) -> dict[str, Any] | None:
        """The value, None if the text is not one that was closed for this purpose. Raises NotRecorded."""
        body, dot, mark = text.partition(".")
        if not dot or len(text) > _LONGEST or not text.isascii():
            return None
        if not hmac.compare_digest(mark, _encoded(await self._mark(purpose, body))):
            return None
        found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return found

    async def word(self, purpose: str, text: str) -> str:
        """A word that nobody without the key can say of `text`. Raises NotRecorded."""
        return _encoded(await self._mark(purpose, text))

    async def _mark(self, purpose: str, body: str) -> bytes:
        if self._key is None:
            self._key = await self._ask()
        key = hmac.digest(self._key, purpose.encode(), hashlib.sha256)
        return hmac.digest(key, body.encode(), hashlib.sha256)


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")
