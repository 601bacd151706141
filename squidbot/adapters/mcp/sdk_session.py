"""The SDK's session, for the parts of the protocol that it knows best: what servers ask, and subscriptions.

It is given a dispatcher that only keeps its handlers, and sends on our wire what the session wants to send.
Nothing but this is loaded late, and only for servers that ask or tell something out of the ordinary.
"""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeAlias, cast

import anyio
import anyio.abc
import mcp.shared.exceptions as sdk
import mcp_types as types
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    Subscription,
    SubscriptionLost,
    ToolsListChanged,
    listen,
)
from pydantic import BaseModel

from squidbot.adapters.mcp.asking import session_callbacks
from squidbot.adapters.mcp.attribution import UnderWay
from squidbot.adapters.mcp.callbacks import Callbacks
from squidbot.adapters.mcp.dispatcher import Wire
from squidbot.adapters.mcp.protocol import (
    CLIENT_CAPABILITIES_KEY,
    CONNECTION_CLOSED,
    MODERN_VERSIONS,
    CallOptions,
    MCPError,
)

Change: TypeAlias = tuple[Literal["tools", "prompts", "resources"], str] | tuple[Literal["resource"], str]
"""A list that changed, or a resource with its uri."""


class _NotOurs(logging.Filter):
    """The session logs a traceback for each notification that it cannot read; those are counted elsewhere."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.levelno <= logging.WARNING and record.module == "session")


logging.getLogger("client").addFilter(_NotOurs())


class _Relay:
    """The SDK's `Dispatcher`: keeps the session's handlers, and sends on a wire that others hear."""

    def __init__(self, wire: Wire, capabilities: Mapping[str, Any]) -> None:
        self._wire = wire
        self._capabilities = capabilities
        self.handlers: tuple[Any, Any, Any] = (None, None, None)

    async def run(self, *handlers: Any, task_status: anyio.abc.TaskStatus[None]) -> None:
        self.handlers = handlers
        task_status.started()
        await anyio.sleep_forever()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """The session offers what it knows of; we know better."""
        outgoing = dict(params or {})
        if CLIENT_CAPABILITIES_KEY in (outgoing.get("_meta") or {}):
            outgoing["_meta"] = {**outgoing["_meta"], CLIENT_CAPABILITIES_KEY: self._capabilities}
        try:
            return await self._wire.send_raw_request(method, outgoing, opts)
        except MCPError as error:
            raise sdk.MCPError(error.code, error.error.message, error.error.data) from None

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        await self._wire.notify(method, params, opts)


class SDKSession:
    """The session with its handlers, in our terms."""

    def __init__(self, session: ClientSession, relay: _Relay) -> None:
        self._session = session
        self._relay = relay

    async def on_request(self, context: Any, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Answer a server's request. Raises MCPError, or ValidationError for what is none."""
        try:
            answer: dict[str, Any] = await self._relay.handlers[0](context, method, params)
        except sdk.MCPError as error:
            raise _ours(error) from None
        return answer

    async def on_notify(self, context: Any, method: str, params: Mapping[str, Any] | None) -> None:
        await self._relay.handlers[1](context, method, params)

    def intercept(self, method: str, params: Mapping[str, Any] | None) -> bool:
        return bool(self._relay.handlers[2](method, params))

    async def provide(self, raw: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
        """The state and the answers to what an `input_required` result asks. Raises MCPError, or ValidationError."""
        required = types.InputRequiredResult.model_validate(raw)
        responses: dict[str, Any] = {}
        for key, asked in (required.input_requests or {}).items():
            answer: BaseModel = await self._session.dispatch_input_request(
                ClientRequestContext(session=self._session, request_id=key), asked
            )
            if isinstance(answer, types.ErrorData):
                raise MCPError(answer.code, answer.message, answer.data)
            responses[key] = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
        return required.request_state, responses

    @asynccontextmanager
    async def listening(
        self, *, tools: bool, prompts: bool, resources: bool, uris: Sequence[str]
    ) -> AsyncIterator[AsyncIterator[Change]]:
        """One stream of changes, open once the server has acknowledged it. Raises MCPError when it is lost."""
        try:
            async with listen(
                self._session,
                tools_list_changed=tools,
                prompts_list_changed=prompts,
                resources_list_changed=resources,
                resource_subscriptions=uris,
            ) as events:
                yield _changes(events)
        except sdk.MCPError as error:
            raise _ours(error) from None
        except SubscriptionLost as lost:
            raise MCPError(CONNECTION_CLOSED, str(lost)) from None


async def _changes(events: Subscription) -> AsyncIterator[Change]:
    async for event in events:
        match event:
            case ToolsListChanged():
                yield "tools", ""
            case PromptsListChanged():
                yield "prompts", ""
            case ResourcesListChanged():
                yield "resources", ""
            case ResourceUpdated(uri=uri):
                yield "resource", uri


async def live(
    wire: Wire,
    callbacks: Callbacks,
    server: str,
    under_way: UnderWay,
    capabilities: Mapping[str, Any],
    version: str | None,
    *,
    task_status: anyio.abc.TaskStatus[SDKSession],
) -> None:
    """Keep a session until cancelled. What was agreed on is known: it is told the revision, and no more."""
    relay = _Relay(wire, capabilities)
    callbacks_of_ours = session_callbacks(callbacks, server, under_way)
    async with ClientSession(dispatcher=cast("Any", relay), **callbacks_of_ours) as session:
        if version in MODERN_VERSIONS:
            session.adopt(types.DiscoverResult(supported_versions=[version], capabilities=types.ServerCapabilities()))
        elif version is not None:
            session.adopt(
                types.InitializeResult(
                    protocol_version=version,
                    capabilities=types.ServerCapabilities(),
                    server_info=types.Implementation(name=server, version=""),
                )
            )
        task_status.started(SDKSession(session, relay))
        await anyio.sleep_forever()


def _ours(error: sdk.MCPError) -> MCPError:
    return MCPError(error.code, error.message, error.data)
