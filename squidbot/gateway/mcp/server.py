"""The SDK's server for one part of the door: every request ends at the door, in the name of whoever sent it.

Lists, calls, prompts and resources are answered ahead of the SDK's own handling of results, which knows only the fields
of its own day: what a server said is to arrive whole.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types import methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from squidbot.gateway.mcp.lists import Kind
from squidbot.gateway.mcp.reception import Reception
from squidbot.gateway.mcp.visit import Visit
from squidbot.gateway.mcp.wire import Written

Context: TypeAlias = ServerRequestContext[Any, Any]
Answer: TypeAlias = Callable[[Visit, Mapping[str, Any]], Awaitable[dict[str, Any]]]
VisitOf: TypeAlias = Callable[[Context], Visit]

_LISTS: Mapping[str, tuple[Kind, str]] = {
    "tools/list": ("tools", "tools"),
    "prompts/list": ("prompts", "prompts"),
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("templates", "resourceTemplates"),
}
_PARAMS: Mapping[str, type[types.RequestParams]] = {
    "tools/call": types.CallToolRequestParams,
    "prompts/get": types.GetPromptRequestParams,
    "resources/read": types.ReadResourceRequestParams,
}


class DoorServer(Server[Any]):
    """One part of the door: all servers, or the one that is named."""

    def __init__(self, reception: Reception, server: str | None, visit_of: VisitOf, *, version: str) -> None:
        super().__init__(server or "squidbot", version=version)
        self._reception = reception
        self._visit_of = visit_of
        self._passed: dict[str, Answer] = {"tools/call": reception.call, "prompts/get": reception.prompt}
        if server is not None:
            self._passed["resources/read"] = reception.read
        for method, (kind, key) in _LISTS.items():
            if server is not None or kind in ("tools", "prompts"):
                self._passed[method] = partial(reception.list, kind, key)
        for method in self._passed:
            self.add_request_handler(method, _PARAMS.get(method, types.PaginatedRequestParams), self._never)
        # Not by the constructor, which warns that the handshake era's logging is deprecated.
        self.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        self.add_request_handler("completion/complete", types.CompleteRequestParams, self._complete)
        self.add_request_handler("server/discover", types.RequestParams, self._discover)
        self.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, self._listen)
        if server is not None:
            self.add_request_handler("resources/subscribe", types.SubscribeRequestParams, self._subscribe)
            self.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, self._unsubscribe)
        # The door has a span of its own for each call; the SDK's would be a second one.
        self.middleware[:] = [self._carry]

    def opening(self, visit: Visit) -> InitializationOptions:
        """What a client of the handshake era is told at first."""
        changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        options = self.create_initialization_options(changes)
        return options.model_copy(
            update={"instructions": self._reception.lists.instructions(visit.caller, visit.server)}
        )

    def passes(self, method: str) -> bool:
        """Whether a request ends at the door without the SDK, by `answer`."""
        return method in self._passed

    async def answer(self, visit: Visit, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """The result of a request that `passes`. Raises MCPError, and ValidationError for params that are none."""
        if method != "tools/call":  # whose params the reception looks at itself: there it is a matter of record
            methods.validate_client_request(method, visit.version, params)
        wire = await self._passed[method](visit, params or {})
        await visit.line.settled()
        if visit.is_modern:
            meta = {**(wire.get("_meta") or {}), types.SERVER_INFO_META_KEY: self.server_info_stamp}
            if isinstance(wire, Written):
                return wire.extended({"resultType": "complete", "_meta": meta})
            wire.setdefault("resultType", "complete")
            wire["_meta"] = meta
        return wire

    async def _carry(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.request_id is None or not self.passes(ctx.method):
            return await call_next(ctx)
        return await self.answer(self._visit_of(ctx), ctx.method, ctx.params)

    async def _never(self, ctx: Context, params: Any) -> HandlerResult:
        del params
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found", ctx.method)

    async def _discover(self, ctx: Context, params: types.RequestParams) -> types.DiscoverResult:
        del params
        visit = self._visit_of(ctx)
        return types.DiscoverResult(
            supported_versions=list(MODERN_PROTOCOL_VERSIONS),
            capabilities=self.get_capabilities(protocol_version=ctx.protocol_version),
            instructions=self._reception.lists.instructions(visit.caller, visit.server),
        )

    async def _set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        self._reception.set_level(self._visit_of(ctx), params.level)
        return types.EmptyResult()

    async def _subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        await self._reception.subscribe(self._visit_of(ctx), str(params.uri), wanted=True)
        return types.EmptyResult()

    async def _unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        await self._reception.subscribe(self._visit_of(ctx), str(params.uri), wanted=False)
        return types.EmptyResult()

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> dict[str, Any]:
        del params
        return await self._reception.complete(self._visit_of(ctx), ctx.params or {})

    async def _listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        if ctx.request_id is None:
            raise MCPError(types.INVALID_REQUEST, "subscriptions/listen requires a request id")
        meta: dict[str, Any] = {"io.modelcontextprotocol/subscriptionId": ctx.request_id}
        await self._reception.listen(self._visit_of(ctx), params.notifications, meta)
        return types.SubscriptionsListenResult(_meta=meta)
