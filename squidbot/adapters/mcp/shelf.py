"""What goes past the SDK's streams: answers, read once by us, and on whose stream a server's own messages came.

Over streamable HTTP the SDK would read again what was checked already: an answer of 9 MB then stands in memory five
times over, and the loop waits for it. So the SDK is given an empty one in its place.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from squidbot.adapters.mcp.attribution import LOG, QUESTIONS, Addressee, RequestId, UnderWay

_MARK = "squidbot/arrival"
_MOST_MARKED = 2_000


class Shelf:
    """One place for each request that waits; nothing stays on it longer than somebody does."""

    def __init__(self) -> None:
        self._places: dict[RequestId, list[Mapping[str, Any]]] = {}
        self._addressees: dict[str, Addressee] = {}
        self.whose: Callable[..., Addressee] = UnderWay().whose
        """Decides whom a message concerns, when it arrives."""

    @contextmanager
    def place(self, request_id: RequestId) -> Iterator[list[Mapping[str, Any]]]:
        """Where the answer to a request will be, if it comes by this way."""
        place = self._places[request_id] = []
        try:
            yield place
        finally:
            if self._places.get(request_id) is place:
                del self._places[request_id]

    def put(self, request_id: RequestId | None, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Keep the answer `message`, which was checked, for its request; gives back what the SDK needs to see of it."""
        if "method" in message:
            return self._marked(request_id, message)
        place = self._places.get(request_id) if request_id is not None else None
        if place is None:
            return message
        place[:] = [message]
        if "result" in message:
            return {**message, "result": {}}
        return {**message, "error": {"code": message["error"]["code"], "message": ""}}

    def _marked(self, request_id: RequestId | None, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """A server's own message, with a mark by which its addressee is found again behind the SDK."""
        method, params = message["method"], message.get("params")
        if not isinstance(params, dict) or (method not in QUESTIONS and method != LOG):
            return message
        mark = secrets.token_hex(8)
        if len(self._addressees) >= _MOST_MARKED:
            del self._addressees[next(iter(self._addressees))]
        self._addressees[mark] = self.whose(request_id, is_log=method == LOG)
        meta = params.get("_meta")
        return {**message, "params": {**params, "_meta": {**(meta if isinstance(meta, dict) else {}), _MARK: mark}}}

    def unmarked(self, params: Mapping[str, Any] | None) -> tuple[Mapping[str, Any] | None, Addressee | None]:
        """The params without their mark, and the addressee, if there was one."""
        meta = (params or {}).get("_meta")
        if params is None or not isinstance(meta, Mapping) or _MARK not in meta:
            return params, None
        rest = {key: value for key, value in meta.items() if key != _MARK}
        bare = {key: value for key, value in params.items() if key != "_meta"}
        return {**bare, "_meta": rest} if rest else bare, self._addressees.pop(str(meta[_MARK]), None)
