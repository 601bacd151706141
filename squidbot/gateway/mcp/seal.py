"""What a client keeps for us and must not change: JSON with a signature, in characters that fit into a header."""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

_LONGEST = 65_536


class Seal:
    """Signs and verifies with one key; what was sealed for one purpose is worth nothing for another."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def close(self, purpose: str, content: Mapping[str, Any]) -> str:
        """The content as text that only we can have written."""
        body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        return f"{_text(body)}.{_text(self._mark(purpose, body))}"

    def open(self, purpose: str, text: str) -> dict[str, Any] | None:
        """What was sealed, or None for anything else."""
        if len(text) > _LONGEST or not text.isascii():
            return None
        head, _, tail = text.partition(".")
        try:
            body, mark = _bytes(head), _bytes(tail)
        except (binascii.Error, ValueError):
            return None
        # The text itself, not only its meaning: base64 has several spellings of the same bytes.
        if text != f"{_text(body)}.{_text(mark)}" or not hmac.compare_digest(mark, self._mark(purpose, body)):
            return None
        content = json.loads(body)
        return content if isinstance(content, dict) else None

    def _mark(self, purpose: str, body: bytes) -> bytes:
        return hmac.digest(self._key, purpose.encode() + b"\0" + body, hashlib.sha256)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
