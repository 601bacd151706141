"""Puts one faulty server beside a healthy one, with a trap for whoever is led astray, and cleans up after both."""

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from squidbot import MCPClient
from squidbot.adapters.mcp import network
from squidbot.core.domain.servers import ServerStatus
from squidbot.core.domain.tools import ToolResult
from tests.adapters.mcp.certificates import Authority
from tests.faults.case import REQUEST, STARTUP, Case, Cell, Transport
from tests.fixtures.running import plain_entry, port_of

ROOT = Path(__file__).resolve().parents[2]
CANARY = "canary-8f2b61c04d"
"""A secret that the faulty server knows, and that must not be seen anywhere."""
_PATHS = {"sse": "/sse", "websocket": "/ws", "http": "/mcp", "json": "/mcp"}


@dataclass
class Scene:
    """Everything that a check may want to look at."""

    cell: Cell
    folder: Path
    mark: str
    trap: "Trap"
    entry: dict[str, Any]
    client: MCPClient = field(init=False)
    connected: bool = False
    seconds: float = 0.0
    """How long the call took by the clock on the wall, which is the server's own."""
    result: ToolResult | None = None
    log: list[str] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)

    @property
    def settings(self) -> dict[str, Any]:
        healthy = plain_entry()
        return {"servers": {"healthy": {**healthy, "env": {"FAULT_MARK": self.mark}}, "faulty": self.entry}}

    @property
    def status(self) -> ServerStatus:
        return self.client.status("faulty")

    @property
    def notes(self) -> list[str]:
        """What the server wrote down."""
        path = self.folder / "notes"
        return path.read_text("utf-8").splitlines() if path.exists() else []

    def forget(self) -> None:
        """Let go of what only a caller would keep, so that memory can be looked at."""
        self.result = None
        self.events.clear()
        del self.client


class Trap:
    """A place on loopback that nobody may be led to; it counts who comes."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.hits: list[bytes] = []

    @classmethod
    @contextlib.asynccontextmanager
    async def set(cls) -> AsyncIterator["Trap"]:
        async def caught(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(1):
                    trap.hits.append(await reader.read(4096))
            writer.close()

        server = await asyncio.start_server(caught, "127.0.0.1", 0)
        trap = cls(server.sockets[0].getsockname()[1])
        async with server:
            yield trap


@contextlib.asynccontextmanager
async def staged(cell: Cell) -> AsyncIterator[Scene]:
    """The scene, its network server running; the client is the caller's to make."""
    async with Trap.set() as trap:
        with tempfile.TemporaryDirectory(prefix="fault-") as name, contextlib.ExitStack() as stack:
            folder = Path(name)
            mark = uuid.uuid4().hex
            scene = Scene(cell, folder, mark, trap, {})
            environment = _environment(cell.case, scene)
            if cell.case.fault == "plain_beneath_tls":
                environment["FAULT_CERTIFICATE"] = str(stack.enter_context(_certified(cell.case.argument, folder)))
            scene.entry = stack.enter_context(_entry(cell, environment, folder))
            yield scene


@contextlib.contextmanager
def _certified(kind: str, folder: Path) -> Iterator[Path]:
    """A certificate for the server, by an authority that is trusted meanwhile, unless that is what is wrong."""
    authority = Authority(folder)
    trusted = {} if kind == "untrusted" else {"SSL_CERT_FILE": str(authority.file)}
    before = os.environ.copy()
    os.environ.update(trusted)
    network.tls.cache_clear()
    try:
        yield authority.certificate(
            expired=kind == "expired",
            own_word=kind == "self_signed",
            address="127.0.0.2" if kind == "other_host" else "127.0.0.1",
        )
    finally:
        for name in trusted:
            os.environ.pop(name)
        os.environ.update(before)
        network.tls.cache_clear()


def _environment(case: Case, scene: Scene) -> dict[str, str]:
    given = {"FAULT_NOTES": str(scene.folder / "notes"), "FAULT_TRAP": scene.trap.url, "API_TOKEN": CANARY}
    if case.era == "modern":
        given["FAULT_ERA"] = "modern"
    given["FAULT_MARK"] = scene.mark
    return given


@contextlib.contextmanager
def _entry(cell: Cell, environment: dict[str, str], folder: Path) -> Iterator[dict[str, Any]]:
    case, transport = cell.case, cell.transport
    patience = {"startup_timeout": STARTUP, "request_timeout": REQUEST, "timeout": STARTUP, **case.settings}
    if case.entry is not None:
        yield {**case.entry(transport), **patience}
    elif transport == "stdio":
        yield {**stdio_entry(case.fault, case.argument, env=environment), **patience}
    else:
        command = command_of(case.fault, case.argument, transport=transport)
        with _running(command, {**environment, "FAULT_PORT": str(folder / "port")}, folder) as port:
            yield {"transport": _named(transport), "url": url_of(transport, port, secure=case.secure), **patience}


def stdio_entry(fault: str, argument: str = "", *, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The entry of a faulty server over stdio."""
    command = command_of(fault, argument, transport="stdio")
    return {"command": command[0], "args": command[1:], "cwd": str(ROOT), "env": dict(env or {})}


def command_of(fault: str, argument: str = "", *, transport: Transport) -> list[str]:
    """The command line of a faulty server."""
    given = [argument] if argument else []
    return [sys.executable, "-S", "-E", "-m", f"tests.faults.servers.{fault}", transport, *given]


def _named(transport: Transport) -> str:
    return "http" if transport == "json" else transport


def url_of(transport: Transport, port: int, *, secure: bool = False) -> str:
    """Where a server of ours is on this machine."""
    scheme = ("ws" if transport == "websocket" else "http") + ("s" if secure else "")
    return f"{scheme}://127.0.0.1:{port}{_PATHS[transport]}"


@contextlib.contextmanager
def _running(command: list[str], environment: dict[str, str], folder: Path) -> Iterator[int]:
    # Without the mark: this one is ours to end, not the client's.
    given = {name: value for name, value in {**os.environ, **environment}.items() if name != "FAULT_MARK"}
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(command, cwd=ROOT, env=given, stdin=subprocess.PIPE, stdout=said, stderr=said)
        try:
            yield port_of(process, Path(environment["FAULT_PORT"]))
        finally:
            process.kill()
            process.communicate()
