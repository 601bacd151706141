"""Passes JSON-RPC lines on to a running gateway and its answers back: `squidbot serve` beside a gateway.

Nothing is decided here. A client of the handshake era keeps its session through a gateway that was restarted; one of
the stateless era gets the headers that go with its envelope. Whoever speaks is a token's role, at the gateway as ever.
"""

import json
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeAlias

import anyio
import httpx2
from anyio.abc import TaskGroup
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types import PROTOCOL_VERSION_META_KEY
from mcp_types.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR

Line: TypeAlias = Callable[[bytes], Awaitable[None]]
_SESSION: Final = "mcp-session-id"
_ACCEPT: Final = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_CONNECTING: Final = 10.0
_AGAIN: Final = 1.0
"""Seconds before a lost stream is opened again."""
_FAREWELL: Final = 2.0
_LAST_ANSWERS: Final = 10.0
"""Seconds that calls under way are given when the client has closed its end."""
_ENDLESS: Final = "subscriptions/listen"
"""A request that is never answered of itself."""
_GONE: Final = "the gateway does not answer; 'squidbot gateway' starts it"


class Passing:
    """One client on one side, the gateway on the other."""

    def __init__(self, url: str, *, token: Callable[[], Awaitable[str]], say: Line) -> None:
        self._url = url
        self._new_token = token
        self._say = say
        self._token = ""
        self._session: str | None = None
        self._version: str | None = None
        self._opening: dict[str, Any] | None = None
        self._under_way: dict[Any, anyio.CancelScope] = {}
        self._mirrored: dict[str, Any] = {}
        self._renewing = anyio.Lock()

    async def run(self, lines: AsyncIterable[bytes]) -> None:
        """Pass on every line, until there are no more."""
        self._token = await self._new_token()
        timeout = httpx2.Timeout(_CONNECTING, read=None)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        async with (
            httpx2.AsyncClient(timeout=timeout, limits=limits, trust_env=False) as self._http,
            anyio.create_task_group() as tasks,
        ):
            async with anyio.create_task_group() as requests:
                async for line in lines:
                    if line.strip():
                        await self._take(line, requests=requests, streams=tasks)
                # What was asked is answered; only then is it the end.
                requests.cancel_scope.deadline = anyio.current_time() + _LAST_ANSWERS
            tasks.cancel_scope.cancel()
            with anyio.move_on_after(_FAREWELL, shield=True):
                await self._farewell()

    async def _take(self, line: bytes, *, requests: TaskGroup, streams: TaskGroup) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            await self._tell_error(None, PARSE_ERROR, "Parse error")
            return
        method = message.get("method") if isinstance(message, dict) else None
        if method == "notifications/cancelled" and self._version is None:
            # In the stateless era hanging up is what cancels.
            name = _object(message.get("params")).get("requestId")
            scope = self._under_way.get(name) if isinstance(name, str | int) else None
            if scope is not None:
                scope.cancel()
        elif isinstance(message, dict) and method is not None and "id" not in message:
            # In their order: what follows may rely on them.
            await self._exchange(message, None)
            if method == "notifications/initialized":
                streams.start_soon(self._listen)
        elif method == "initialize":
            # All that follows belongs to the session that this opens.
            await self._request(message)
        else:
            (streams if method == _ENDLESS else requests).start_soon(self._request, message)

    async def _request(self, message: Any) -> None:
        name = message.get("id") if isinstance(message, dict) else None
        with anyio.CancelScope() as scope:
            if isinstance(name, str | int):
                self._under_way[name] = scope
            try:
                await self._exchange(message, name)
            finally:
                if isinstance(name, str | int):
                    self._under_way.pop(name, None)

    async def _exchange(self, message: Any, name: Any) -> None:
        """One message and all that is said in answer; what goes wrong is said as the answer."""
        try:
            async with self._posted(message) as response:
                if response.status_code == 202:
                    return
                kind = response.headers.get("content-type", "")
                if kind.startswith("text/event-stream"):
                    async for data in _events(response):
                        await self._pass_back(message, data)
                elif kind.startswith("application/json"):
                    await self._pass_back(message, await response.aread(), status=response.status_code)
                else:
                    await self._tell_error(name, INTERNAL_ERROR, f"the gateway answered {response.status_code}")
        except RecursionError:
            await self._tell_error(name, INVALID_REQUEST, "The message is nested too deep")
        except (httpx2.HTTPError, httpx2.StreamError, OSError):
            if name is not None:
                await self._tell_error(name, INTERNAL_ERROR, _GONE)

    @asynccontextmanager
    async def _posted(self, message: Any) -> AsyncIterator[httpx2.Response]:
        response = await self._asked(message)
        try:
            yield response
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def _asked(self, message: Any) -> httpx2.Response:
        """The gateway's answer, not read yet; a token past its time and a lost session are made good once."""
        if isinstance(message, dict) and message.get("method") == "initialize":
            self._opening, self._session, self._version = message, None, None
        response = await self._send(message)
        if response.status_code == 401:
            await response.aclose()
            await self._renew(response.request.headers.get("authorization", ""))
            response = await self._send(message)
        if response.status_code == 404 and self._session is not None and await self._reopened():
            await response.aclose()
            response = await self._send(message)
        session = response.headers.get(_SESSION)
        if session is not None:
            self._session = session
        return response

    async def _send(self, message: Any) -> httpx2.Response:
        # Half a character goes on as it is: the gateway says what is wrong with it.
        body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        request = self._http.build_request("POST", self._url, content=body, headers=self._headers(message))
        return await self._http.send(request, stream=True)

    def _headers(self, message: Any) -> dict[str, str]:
        headers = {**_ACCEPT, "authorization": f"Bearer {self._token}"}
        params = _object(message.get("params") if isinstance(message, dict) else None)
        version = _object(params.get("_meta")).get(PROTOCOL_VERSION_META_KEY)
        if isinstance(version, str):
            method = str(message.get("method"))
            headers[MCP_PROTOCOL_VERSION_HEADER], headers[MCP_METHOD_HEADER] = version, method
            named = params.get(NAME_BEARING_METHODS.get(method, ""))
            if isinstance(named, str):
                headers[MCP_NAME_HEADER] = encode_header_value(named)
                if method == "tools/call" and named in self._mirrored:
                    headers.update(mcp_param_headers(self._mirrored[named], _object(params.get("arguments"))))
        elif self._session is not None:
            headers[_SESSION] = self._session
            if self._version is not None:
                headers[MCP_PROTOCOL_VERSION_HEADER] = self._version
        return headers

    async def _pass_back(self, message: Any, data: bytes, *, status: int = 200) -> None:
        try:
            answer = json.loads(data)
        except ValueError:
            return
        if not isinstance(answer, dict) or "jsonrpc" not in answer:
            # A refusal of the gateway itself, in its own words.
            words = (answer.get("error") or {}).get("message") if isinstance(answer, dict) else None
            name = message.get("id") if isinstance(message, dict) else None
            if name is not None:
                await self._tell_error(name, INTERNAL_ERROR, f"the gateway answered {status}: {words or 'no reason'}")
            return
        if isinstance(message, dict) and isinstance(result := answer.get("result"), dict):
            self._learn(message.get("method"), result)
        if "error" in answer and answer.get("id") is None and isinstance(message, dict):
            # Refused before anybody read whose it was: here that is known.
            if "id" not in message:
                return
            answer["id"] = message["id"] if isinstance(message["id"], str | int) else None
        # Written anew: one line, whatever the gateway's layout.
        await self._say(json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    def _learn(self, method: object, result: Mapping[str, Any]) -> None:
        if method == "initialize":
            self._version = str(result.get("protocolVersion"))
        elif method == "tools/list":
            for tool in result.get("tools") or ():
                if isinstance(tool, dict) and (mirrored := x_mcp_header_map(tool.get("inputSchema") or {})):
                    self._mirrored[str(tool.get("name"))] = mirrored

    async def _renew(self, shown: str) -> None:
        async with self._renewing:
            if shown == f"Bearer {self._token}":
                self._token = await self._new_token()

    async def _reopened(self) -> bool:
        """Open the session anew, as the client opened it; the client never hears of it."""
        lost = self._session
        async with self._renewing:
            if self._session != lost or self._opening is None:
                return self._session != lost
            self._session = None
            response = await self._send(self._opening)
            await response.aread()
            self._session = response.headers.get(_SESSION)
            if self._session is None:
                return False
            ready = await self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            await ready.aclose()
            return True

    async def _listen(self) -> None:
        """What the gateway says unasked, for as long as there is a session."""
        while True:
            with suppress(httpx2.HTTPError, httpx2.StreamError, OSError):
                await self._hear()
            await anyio.sleep(_AGAIN)

    async def _hear(self) -> None:
        headers = {**self._headers({}), "accept": "text/event-stream"}
        async with self._http.stream("GET", self._url, headers=headers) as response:
            if response.status_code == 404:
                await self._reopened()
            elif response.status_code == 401:
                await self._renew(headers["authorization"])
            elif response.status_code == 200:
                async for data in _events(response):
                    await self._pass_back(None, data)

    async def _farewell(self) -> None:
        if self._session is not None:
            with suppress(httpx2.HTTPError, OSError):
                await self._http.delete(self._url, headers=self._headers({}))

    async def _tell_error(self, name: Any, code: int, words: str) -> None:
        error = {"jsonrpc": "2.0", "id": name, "error": {"code": code, "message": words}}
        await self._say(json.dumps(error, separators=(",", ":")).encode() + b"\n")


def _object(value: Any) -> Mapping[str, Any]:
    """A part of a message that should be an object: what a client writes may be anything."""
    return value if isinstance(value, dict) else {}


async def _events(response: httpx2.Response) -> AsyncIterator[bytes]:
    """The data of each event of a stream. Only a newline ends a line: JSON may hold other separators."""
    buffer, data = b"", []
    async for chunk in response.aiter_bytes():
        *lines, buffer = (buffer + chunk).split(b"\n")
        for line in lines:
            field = line.removesuffix(b"\r")
            if field.startswith(b"data:"):
                data.append(field[5:].removeprefix(b" "))
            elif not field and data:
                yield b"\n".join(data)
                data = []
