"""What each request must know of the protocol: revisions, codes, keys, and the error that a peer answers with.

All of it is the SDK's too, which takes longer to load than a command takes; a contract test holds this page to it.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypedDict

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions that a connection agrees on with `initialize`, oldest first."""
MODERN_VERSIONS = ("2026-07-28",)
"""Revisions that each request states in its envelope."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
CONNECTION_CLOSED = -32000
REQUEST_TIMEOUT = -32001
UNSUPPORTED_PROTOCOL_VERSION = -32022

PROTOCOL_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_KEY = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"

VERSION_HEADER = "mcp-protocol-version"
METHOD_HEADER = "mcp-method"
NAME_HEADER = "mcp-name"
PARAM_HEADER_KEY = "x-mcp-header"
"""In a tool's schema: which of its arguments travel as headers too."""

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ErrorData:
    """The `error` of a JSON-RPC answer."""

    code: int
    message: str
    data: Any = None

    def wire(self) -> dict[str, Any]:
        """As it is written."""
        found = {"code": self.code, "message": self.message}
        return found if self.data is None else {**found, "data": self.data}


class MCPError(Exception):
    """A request that was answered with an error, or that failed on this side of the wire."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.error = ErrorData(code, message, data)

    @property
    def code(self) -> int:
        return self.error.code

    def __str__(self) -> str:
        return self.error.message


class ProgressFn(Protocol):
    """Hears of a request's progress."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


class CallOptions(TypedDict, total=False):
    """What may be said of one request beside its method and params."""

    request_id: int | str
    timeout: float
    cancel_on_abandon: bool
    """Whether the peer is told when nobody waits any more; opening must not be cancelled."""
    on_progress: ProgressFn
    headers: dict[str, str]
    """For transports that have some."""


OnRequest: TypeAlias = Callable[[Any, str, Mapping[str, Any] | None], Awaitable[dict[str, Any]]]
"""Answers a server's request (context, method, params). Raises MCPError."""
OnNotify: TypeAlias = Callable[[Any, str, Mapping[str, Any] | None], Awaitable[None]]
OnNotifyIntercept: TypeAlias = Callable[[str, Mapping[str, Any] | None], bool]
"""Sees each notification in the order received; what it takes goes no further. Must not block."""


def run_notify_intercept(intercept: OnNotifyIntercept | None, method: str, params: Mapping[str, Any] | None) -> bool:
    """Whether `intercept` took the notification; its fault costs that one, never the connection."""
    if intercept is None:
        return False
    try:
        return intercept(method, params)
    except Exception:  # noqa: BLE001 - it has nobody to tell
        _log.exception("taking notification %r failed; it is passed on", method)
        return False
