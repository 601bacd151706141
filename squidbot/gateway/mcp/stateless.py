"""The stateless era over HTTP: every request says all that there is to know, and closing its stream cancels it."""

import secrets
from collections.abc import Mapping
from typing import Any

from mcp.server.connection import Connection
from mcp.server.runner import serve_one
from mcp.shared.inbound import (
    MCP_PARAM_HEADER_PREFIX,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundLadderRejection,
    InboundModernRoute,
    classify_inbound_request,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
from mcp.shared.message import ServerMessageMetadata
from mcp_types import HEADER_MISMATCH, INTERNAL_ERROR, INVALID_REQUEST, PROTOCOL_VERSION_META_KEY
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers

from squidbot.core.domain.endpoint import EndpointOptions
from squidbot.core.domain.errors import InvalidArguments
from squidbot.gateway.mcp.exchange import Dispatch, Exchange, Reply, reply
from squidbot.gateway.mcp.post import Arrival, failure, outcome, request_id
from squidbot.gateway.mcp.reception import Reception
from squidbot.gateway.mcp.streams import Streams
from squidbot.gateway.mcp.visit import Line, NoLine, Visit

_PARAM_PREFIX = MCP_PARAM_HEADER_PREFIX.lower()
_LATER = ((b"retry-after", b"5"),)


class Stateless:
    """Serves requests of 2026-07-28 and later."""

    def __init__(self, reception: Reception, streams: Streams, options: EndpointOptions) -> None:
        self._reception = reception
        self._streams = streams
        self._options = options

    def is_meant(self, arrival: Arrival, message: Mapping[str, Any] | None = None) -> bool:
        """Whether a request is of this era: by what its envelope says, or by a version that is not of the other."""
        params = (message or {}).get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        if isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta:
            return True
        version = arrival.headers.get(MCP_PROTOCOL_VERSION_HEADER)
        return version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS

    async def serve(self, arrival: Arrival, message: Mapping[str, Any]) -> None:
        """Answer one POST."""
        name = request_id(message)
        if "id" not in message:
            answer = self._notified(arrival, message)
            await (reply(arrival.send, answer) if answer.status == 202 else arrival.refuse(answer))
            return
        if name is None or not isinstance(message.get("method"), str) or not _is_object(message.get("params")):
            words = "The body must be a single JSON-RPC request or notification"
            await arrival.refuse(failure(400, INVALID_REQUEST, words, name=name))
            return
        verdict = self._classified(arrival, message)
        if isinstance(verdict, InboundLadderRejection):
            await self._refuse(arrival, message, verdict, name)
            return
        if message["method"] == "subscriptions/listen" and self._streams.is_full:
            await reply(
                arrival.send, failure(503, INTERNAL_ERROR, "Too many streams are open", name=name, headers=_LATER)
            )
            return
        await self._answer(arrival, message, name, verdict)

    async def _answer(
        self, arrival: Arrival, message: Mapping[str, Any], name: str | int, verdict: InboundModernRoute
    ) -> None:
        exchange = Exchange(arrival, arrival.company, patience=self._options.patience, ends_with_the_client=True)
        visit = self._visit(arrival, verdict, exchange)
        method, params = message["method"], message.get("params")
        if arrival.door.passes(method):
            served = arrival.door.answer(visit, method, params)
        else:
            envelope = verdict.protocol_version, verdict.client_info, verdict.client_capabilities
            served = serve_one(
                arrival.door,
                Dispatch(name, ServerMessageMetadata(request_context=visit)),
                method,
                params,
                connection=Connection.from_envelope(*envelope),
                lifespan_state={},
            )
        await exchange.answer(outcome(served, name, modern=True))

    def _visit(self, arrival: Arrival, verdict: InboundModernRoute, line: Line) -> Visit:
        principal, capabilities = arrival.principal, verdict.client_capabilities
        return Visit(
            caller=principal.caller("mcp"),
            server=arrival.server,
            version=verdict.protocol_version,
            capabilities=capabilities if isinstance(capabilities, Mapping) else {},
            line=line,
            owner=f"request {secrets.token_hex(8)}",
            identity=(principal.member, principal.role, principal.token),
            expires=principal.expires,
        )

    def _classified(self, arrival: Arrival, message: Mapping[str, Any]) -> InboundModernRoute | InboundLadderRejection:
        """What the request claims to be, if its headers say the same."""
        twice = find_duplicated_routing_header(arrival.lines)
        if twice is not None:
            return InboundLadderRejection(code=HEADER_MISMATCH, message=f"{twice} header appears more than once")
        verdict = classify_inbound_request(message, headers=arrival.headers)
        if isinstance(verdict, InboundModernRoute):
            return self._mismatch(arrival, message) or verdict
        return verdict

    async def _refuse(
        self, arrival: Arrival, message: Mapping[str, Any], verdict: InboundLadderRejection, name: str | int
    ) -> None:
        """Say what is wrong. A call is put on record under the name that its body has. Raises NotRecorded."""
        refusal = failure(400, verdict.code, verdict.message, data=verdict.data, name=name)
        params = message.get("params") or {}
        called = params.get("name") if message["method"] == "tools/call" else None
        if not isinstance(called, str):
            await arrival.refuse(refusal)
            return
        visit = self._visit(arrival, InboundModernRoute("", None, {}), NoLine())
        await self._reception.refuse(visit, called, InvalidArguments(verdict.message))
        await reply(arrival.send, refusal)

    def _mismatch(self, arrival: Arrival, message: Mapping[str, Any]) -> InboundLadderRejection | None:
        """Whether `Mcp-Param-*` headers say the same as the arguments, by the schema that the caller was shown."""
        params = message.get("params") or {}
        name, arguments = params.get("name"), params.get("arguments") or {}
        if message["method"] != "tools/call" or not isinstance(name, str) or not isinstance(arguments, dict):
            return None
        if not arguments and not any(header.startswith(_PARAM_PREFIX) for header in arrival.headers):
            return None
        schema = self._reception.lists.schema(arrival.principal.caller("mcp"), arrival.server, name)
        if schema is None:
            return None
        raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in arrival.lines]
        return validate_mcp_param_headers(schema, arguments, Headers(raw=raw))

    def _notified(self, arrival: Arrival, message: Mapping[str, Any]) -> Reply:
        """A notification is taken and means nothing: what it could concern is over with its own request."""
        if not isinstance(message.get("method"), str):
            return failure(400, INVALID_REQUEST, "The body must be a single JSON-RPC request or notification")
        wrong = unsupported_protocol_version_rejection(arrival.headers.get(MCP_PROTOCOL_VERSION_HEADER, ""))
        return Reply(202) if wrong is None else failure(400, wrong.code, wrong.message, data=wrong.data)


def _is_object(params: Any) -> bool:
    return params is None or isinstance(params, dict)
