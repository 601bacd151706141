"""The SDK's own dispatcher, for streams of the SDK's (streamable HTTP, servers in memory), with what it lacks."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import anyio
import mcp.shared.exceptions as sdk
from loguru import logger
from mcp.shared.inbound import NAME_BEARING_METHODS, encode_header_value, mcp_param_headers
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext

from squidbot.adapters.mcp.attribution import LOG, QUESTIONS, UnderWay, concerning
from squidbot.adapters.mcp.channel import ChannelClosed
from squidbot.adapters.mcp.deadlines import Deadlines
from squidbot.adapters.mcp.dispatcher import HeaderMap, WireError, bearable, fresh_id, peer_error
from squidbot.adapters.mcp.frames import write_frame
from squidbot.adapters.mcp.protocol import (
    CONNECTION_CLOSED,
    METHOD_HEADER,
    NAME_HEADER,
    REQUEST_TIMEOUT,
    CallOptions,
    MCPError,
)
from squidbot.adapters.mcp.shelf import Shelf


class StreamDispatcher(JSONRPCDispatcher[TransportContext]):
    """The SDK's, with unguessable ids, one deadline for the whole request, errors of ours, and an end that can be awaited."""

    def __init__(self, read: Any, write: Any, shelf: Shelf | None = None, *, under_way: UnderWay | None = None) -> None:
        super().__init__(read, write)
        self._under_way = under_way or UnderWay()
        self._deadlines = Deadlines()
        self._shelf = shelf or Shelf()
        self._shelf.whose = self._under_way.whose
        self.ended = anyio.Event()
        self.counters: Counter[str] = Counter()
        self.end: ChannelClosed | None = None

    @property
    def busy(self) -> bool:
        """Unknown here, and of no interest: over HTTP each request has a connection of its own."""
        return True

    def routing(self, method: str, params: Mapping[str, Any], headers: HeaderMap | None) -> dict[str, str]:
        """The headers by which the stateless era lets others see what a request is."""
        routed = {METHOD_HEADER: method}
        key = NAME_BEARING_METHODS.get(method)
        if key is not None and isinstance(name := params.get(key), str):
            routed[NAME_HEADER] = encode_header_value(name)
        if headers:
            routed.update(mcp_param_headers(headers, params.get("arguments") or {}))
        return routed

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **related: Any
    ) -> dict[str, Any]:
        """As the SDK's, under one deadline. Raises MCPError, and WireError where it failed on this side."""
        options: CallOptions = {"request_id": fresh_id(), **(opts or {})}
        limit = options.pop("timeout", None)
        write_frame(params or {})  # what is no JSON must fail here: in the SDK's writer it would end every other call
        try:
            with self._deadlines.within(limit) as deadline:
                self._under_way.limit(options["request_id"], deadline)
                return bearable(method, await self._answer(method, params, options, **related))
        except TimeoutError:
            raise WireError(REQUEST_TIMEOUT, f"no answer to {method} in {limit:g} s", "timeout") from None
        except sdk.MCPError as error:
            # A server may use this code for errors of its own; only these words are the SDK's.
            if error.code == CONNECTION_CLOSED and error.error.message == "Connection closed":
                raise WireError(CONNECTION_CLOSED, str(self.end or "the connection is closed"), "unavailable") from None
            raise MCPError(error.code, error.message, error.data) from None

    async def _answer(
        self, method: str, params: Mapping[str, Any] | None, options: CallOptions, **related: Any
    ) -> dict[str, Any]:
        with self._shelf.place(options["request_id"]) as place:
            try:
                result = await super().send_raw_request(method, params, options, **related)  # type: ignore[arg-type]
            except sdk.MCPError:
                if not place or "error" not in place[0]:
                    raise
                raise peer_error(place[0]["error"]) from None
            return place[0]["result"] if place else result

    def _attributed(self, handle: Any) -> Any:
        """The handler, which then knows for whom each message is, and whose errors the SDK knows."""

        async def handled(context: Any, method: str, params: Mapping[str, Any] | None) -> Any:
            if method not in QUESTIONS and method != LOG:
                return await answered(context, method, params)
            bare, addressee = self._shelf.unmarked(params)
            with concerning(self._under_way.whose(is_log=method == LOG) if addressee is None else addressee):
                return await answered(context, method, bare)

        async def answered(context: Any, method: str, params: Mapping[str, Any] | None) -> Any:
            try:
                return await handle(context, method, params)
            except MCPError as error:
                raise sdk.MCPError(error.code, error.error.message, error.error.data) from None

        return handled

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: Any = None, **related: Any) -> None:
        """As the SDK's."""
        await super().notify(method, params, opts, **related)

    async def run(self, on_request: Any, on_notify: Any, *others: Any, **status: Any) -> None:
        """As the SDK's; afterwards `ended` is set."""
        try:
            await super().run(self._attributed(on_request), self._attributed(on_notify), *others, **status)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            logger.trace("the server's streams closed")
        else:
            self.end = ChannelClosed("the server closed the connection")
        finally:
            self.ended.set()
