"""One agreed conversation with a server: raw requests, in the envelope that its era wants.

Every request of ours is a raw one, so that one bad item among a thousand costs that item.
"""

import asyncio
import math
from collections.abc import Mapping
from typing import Any

from loguru import logger
from pydantic import ValidationError

from squidbot.adapters.mcp.attribution import NOBODY, Call, concerning
from squidbot.adapters.mcp.channel import Bounds
from squidbot.adapters.mcp.conversation import Conversation
from squidbot.adapters.mcp.dispatcher import HeaderMap, WireError, fresh_id
from squidbot.adapters.mcp.eras import Era, envelope
from squidbot.adapters.mcp.frames import HEAVY
from squidbot.adapters.mcp.introduction import Introduction
from squidbot.adapters.mcp.protocol import (
    CLIENT_CAPABILITIES_KEY,
    INVALID_PARAMS,
    INVALID_REQUEST,
    VERSION_HEADER,
    CallOptions,
    MCPError,
)
from squidbot.core.domain.weight import weight
from squidbot.core.ports import OnProgress

_ROUNDS = 10
"""How often a server may ask for more input before one request is answered."""
_PAUSE = 0.1
_PER_OBJECT = 3
"""How many values all pages of a list may have for each object that one message may have."""


class Session:
    """What a connection talks through once both sides have agreed on an era."""

    def __init__(self, conversation: Conversation, said: Introduction, era: Era, *, log_level: str | None) -> None:
        self.conversation = conversation
        self.wire = conversation.wire
        self.said = said
        """How the server introduced itself."""
        self.offers = said.offers
        self.protocol = said.protocol
        self.era = era
        self._log_level = log_level
        meta = envelope(said.protocol, conversation.capabilities, log_level or "info")
        self._meta = meta if era == "modern" else None

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float,
        on_progress: OnProgress | None = None,
        headers: HeaderMap | None = None,
        call: Call | None = None,
    ) -> dict[str, Any]:
        """One raw request. Raises MCPError."""
        outgoing = dict(params) if params else {}
        opts: CallOptions = {"timeout": timeout, "headers": {VERSION_HEADER: self.protocol}}
        if on_progress is not None:
            opts["on_progress"] = on_progress
        if self._meta is not None:
            outgoing["_meta"] = {**self._meta, **outgoing.get("_meta", {})}
            if self.wire.routing is not None:
                opts["headers"].update(self.wire.routing(method, outgoing, headers))
        request_id = opts["request_id"] = fresh_id()
        is_somebodys = call is not None and call.counterpart is not None
        if call is not None and is_somebodys:
            call.asks(request_id)
        try:
            return await self.wire.send_raw_request(method, outgoing, opts)
        except (TypeError, ValueError, RecursionError) as error:
            reason = f"it cannot be written as JSON: {str(error)[:200]}"
            raise WireError(INVALID_PARAMS, f"the request was not sent, {reason}", "tool") from None
        finally:
            if call is not None and is_somebodys:
                call.answered(request_id)

    async def interactive(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        timeout: float,
        on_progress: OnProgress | None = None,
        headers: HeaderMap | None = None,
        call: Call | None = None,
    ) -> dict[str, Any]:
        """A request that may come back for input first. The deadline counts the server's time, not a person's."""
        said = call.counterpart.envelope if call is not None and call.counterpart is not None else None
        if said is not None and self._meta is not None:
            # Client and server are of one era: what the server asks for is the answer, and the client comes back.
            meta = {CLIENT_CAPABILITIES_KEY: dict(said.capabilities)}
            passed = {**params, **said.given, "_meta": meta}
            return await self.request(
                method, passed, timeout=timeout, on_progress=on_progress, headers=headers, call=call
            )
        loop = asyncio.get_running_loop()
        left = timeout
        more: dict[str, Any] = {}
        for _ in range(_ROUNDS + 1):
            started = loop.time()
            raw = await self.request(
                method, {**params, **more}, timeout=max(left, 0.0), on_progress=on_progress, headers=headers, call=call
            )
            if self._meta is None or raw.get("resultType") != "input_required":
                return raw
            left -= loop.time() - started
            with concerning(call.own if call is not None else NOBODY):
                more = await self._provide(raw)
        raise WireError(INVALID_REQUEST, f"the server asked for input more than {_ROUNDS} times", "protocol")

    async def _provide(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Answer what an `input_required` result asks, through the same callbacks as a request would: for the one who called."""
        if weight(raw.get("inputRequests"), HEAVY) > HEAVY:
            raise WireError(INVALID_REQUEST, f"the server asked for more than {HEAVY} values of input", "protocol")
        try:
            state, responses = await (await self.conversation.sdk()).provide(raw)
        except ValidationError:
            raise WireError(INVALID_REQUEST, "the server asked for input in no valid way", "protocol") from None
        more: dict[str, Any] = {} if state is None else {"requestState": state}
        if not raw.get("inputRequests"):
            await asyncio.sleep(_PAUSE)
            return more
        return {**more, "inputResponses": responses}

    async def pages(
        self, method: str, key: str, *, bounds: Bounds, timeout: float, server: str, within: float = math.inf
    ) -> list[Any]:
        """Everything that a list has, across its pages, within bounds. Raises MCPError if the first page fails.

        `timeout` is for one page, `within` for all of them.
        """
        clock = asyncio.get_running_loop().time
        end = clock() + within
        items: list[Any] = []
        room = bounds.objects * _PER_OBJECT
        cursors: set[str | None] = {None}
        params: dict[str, Any] = {}
        for _ in range(bounds.pages):
            try:
                page = await self.request(method, params, timeout=max(min(timeout, end - clock()), 0.0))
            except MCPError as error:
                if not params:
                    raise
                stopped = f"a page failed: {error.error.message}"
                break
            found, cursor = page.get(key), page.get("nextCursor")
            found = found if isinstance(found, list) else []
            items.extend(found)
            if len(items) > bounds.tools:
                stopped = f"it has more than {bounds.tools} items"
                break
            if not isinstance(cursor, str) or not cursor:
                return items
            if cursor in cursors:
                stopped = "its pages repeat themselves"
                break
            room -= weight(found, room)
            if room < 0:
                stopped = "its pages are together as large as one message may be"
                break
            cursors.add(cursor)
            params = {"cursor": cursor}
        else:
            stopped = f"it has more than {bounds.pages} pages"
        del items[bounds.tools :]
        logger.bind(server=server).warning(
            "server {!r}: {} was cut short, {}; {} items are kept", server, method, stopped, len(items)
        )
        return items

    async def set_log_level(self, *, timeout: float) -> None:
        """Tell a server of the handshake era which log messages are wanted, if the settings say so."""
        if self.era == "legacy" and self._log_level is not None and self.offers.logging is not None:
            try:
                await self.request("logging/setLevel", {"level": self._log_level}, timeout=timeout)
            except MCPError as error:
                logger.warning("the log level was not accepted: {}", error.error.message)
