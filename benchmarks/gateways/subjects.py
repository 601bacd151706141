"""The gateways that are measured: how each is installed, started, and spoken to."""

import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.peers.install import Environment, node_program, python_program

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
UPSTREAM = [sys.executable, "-I", "-S", str(ROOT / "benchmarks/echo.py")]
"""One trivial echo server, the same for all."""

ENVIRONMENTS = (
    Environment("bench-mcp-proxy", "python", ("mcp-proxy==0.13.0",)),
    Environment("bench-fastmcp", "python", ("fastmcp==4.1.2",)),
    Environment("bench-node", "node", ("mcp-proxy@6.7.19", "supergateway@4.0.0")),
)
_PATIENCE = 30.0
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


@dataclass(frozen=True)
class Running:
    """A gateway that answers: where, under which headers, and what its echo tool is called."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)
    tool: str = "echo"
    pid: int = 0


@dataclass(frozen=True)
class Subject:
    """A gateway by name, and what it does beside passing calls on."""

    name: str
    does: str
    start: Callable[[int, Path], list[str]]
    """The command, for a port and a folder of its own."""
    path: str = "/mcp"
    prepare: Callable[[Path], Running] | None = None
    """For a gateway that says itself where it listens."""

    @contextmanager
    def running(self) -> Iterator[Running]:
        """Run it until it answers, and end it with all of its children."""
        port = _free_port()
        with tempfile.TemporaryDirectory() as place, Path(place, "log").open("w+b") as log:
            folder = Path(place)
            process = subprocess.Popen(
                self.start(port, folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, "SQUIDBOT_HOME": str(folder / "state"), "PYTHONPATH": str(ROOT)},
                start_new_session=True,
            )
            try:
                found = Running(f"http://127.0.0.1:{port}{self.path}")
                if self.prepare is not None:
                    found = _until(lambda: self.prepare(folder) if self.prepare else None, process, log.name)
                session = _until(lambda: _session(found), process, log.name)
                yield Running(found.url, {**found.headers, **session}, found.tool, process.pid)
            finally:
                _end(process)


ECHO = {"echo": {"command": UPSTREAM[0], "args": UPSTREAM[1:]}}


def squidbot(servers: Mapping[str, Any] = ECHO, *, workers: int = 1) -> Subject:
    """Ours, with everything on, over these servers."""

    def start(port: int, folder: Path) -> list[str]:
        settings: dict[str, Any] = {
            "tools": {"mcp_servers": servers},
            "roles": {"bench": {"tools": {name: ["*"] for name in servers}}},
            "limits": [{"role": "bench", "rate": "100000000/m", "burst": 1_000_000, "concurrency": 100_000}],
            "alerts": {"rules": {"burst": {"enabled": False}}},
        }
        file = folder / "squidbot.json"
        command = [sys.executable, "-m", "squidbot", "gateway", "-c", str(file), "--port", str(port), "--json"]
        if workers > 1:
            redis = _free_port()
            settings["redis"] = f"redis://127.0.0.1:{redis}/0"
            counts = [str(Path(sys.executable).with_name("redis-server")), "--port", str(redis), "--bind", "127.0.0.1"]
            beside = shlex.join([*counts, "--save", "", "--daemonize", "no"])
            command = ["sh", "-c", f'{beside} >/dev/null & exec "$@"', "--", *command, "--workers", str(workers)]
        file.write_text(json.dumps(settings))
        return command

    name = "squidbot" if workers == 1 else f"squidbot --workers {workers}"
    return Subject(name, "token, role, limit, schema, durable audit, metrics", start, prepare=_squidbot_ready)


def _squidbot_ready(folder: Path) -> Running:
    ready = json.loads(Path(folder, "log").read_text().splitlines()[0])
    command = [sys.executable, "-m", "squidbot", "tokens", "create", "-c", str(folder / "squidbot.json")]
    env = {**os.environ, "SQUIDBOT_HOME": str(folder / "state")}
    made = subprocess.run(
        [*command, "--role", "bench", "--name", "bench", "--json"], env=env, capture_output=True, check=True
    )
    token = json.loads(made.stdout)["token"]
    return Running(ready["mcp"], {"Authorization": f"Bearer {token}"}, "mcp_echo_echo")


SUBJECTS = (
    Subject(
        "floor",
        "nothing at all",
        lambda port, _: [sys.executable, "-m", "benchmarks.gateways.floor", str(port), *UPSTREAM],
    ),
    squidbot(),
    squidbot(workers=2),
    Subject(
        "mcp-proxy (npm)",
        "passes on",
        lambda port, _: [
            *node_program("mcp-proxy", environment="bench-node"),
            "--port",
            str(port),
            "--server",
            "stream",
            "--",
            *UPSTREAM,
        ],
    ),
    Subject(
        "supergateway --stateful",
        "passes on",
        lambda port, _: [
            *node_program("supergateway", environment="bench-node"),
            *("--stdio", " ".join(UPSTREAM), "--outputTransport", "streamableHttp", "--stateful", "--port", str(port)),
            *("--logLevel", "none"),
        ],
    ),
    Subject(
        "mcp-proxy (PyPI)",
        "passes on",
        lambda port, _: [
            *python_program("bench-mcp-proxy", "mcp-proxy"),
            "--port",
            str(port),
            "--log-level",
            "ERROR",
            "--",
            *UPSTREAM,
        ],
    ),
    Subject(
        "plain SDK, both sides",
        "passes on",
        lambda port, _: [sys.executable, "-m", "benchmarks.gateways.plain_sdk", str(port), *UPSTREAM],
    ),
    Subject(
        "FastMCP proxy",
        "passes on",
        lambda port, _: [
            *python_program("bench-fastmcp", "python"),
            str(HERE / "fastmcp_proxy.py"),
            str(port),
            *UPSTREAM,
        ],
    ),
)


def _session(found: Running) -> dict[str, str]:
    """Shake hands; the header of the session, if there is one. Raises OSError while nobody answers."""
    response = _post(found, _HELLO)
    with response:
        response.read()
        session = response.headers.get("mcp-session-id")
    headers = {"MCP-Protocol-Version": "2025-06-18"} | ({"Mcp-Session-Id": session} if session else {})
    asking = Running(found.url, {**found.headers, **headers})
    _post(asking, {"jsonrpc": "2.0", "method": "notifications/initialized"}).close()
    call = {"name": found.tool, "arguments": {"text": "ready"}}
    with _post(asking, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}) as answer:
        if b"ready" not in answer.read():
            raise OSError("its echo does not answer yet")
    return headers


def _post(found: Running, message: dict[str, Any]) -> Any:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **found.headers}
    request = urllib.request.Request(found.url, json.dumps(message).encode(), headers)
    return urllib.request.urlopen(request, timeout=5)


def _until(look: Callable[[], Any], process: "subprocess.Popen[bytes]", log: str) -> Any:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return look()
        except (OSError, ValueError, IndexError, subprocess.SubprocessError, urllib.error.URLError) as error:
            if process.poll() is not None or time.monotonic() > deadline:
                said = Path(log).read_text(errors="replace")[-2_000:]
                raise RuntimeError(f"it did not start ({error!r}); it said:\n{said}") from None
            time.sleep(0.1)


def _end(process: "subprocess.Popen[bytes]") -> None:
    for signal in (15, 9):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal)
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
            return


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
