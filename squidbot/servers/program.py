"""A bundled server as a program: its options and variables, its start, both transports, its end.

How a new server, here `notes`, is made:

1. `notes/models.py`: for each tool what it takes and gives, subclasses of `Arguments` and `Result` of
   `squidbot.servers.tools`. Every field has a description for the model that reads the schema.
2. `notes/catalogue.py`: `TOOLS`, a tuple of `Tool`s, with `reading()` or `changing(...)` as hints. `run` is given the
   world (whatever the tools work on) and the arguments, and returns `said(result, text)`. An `async def` runs in the
   loop, a plain function in a thread. A call that changes something is finished even if the client is gone, so
   every wait in it needs a deadline.
3. To say no, raise `squidbot.servers.refusal.Refused` with what to do instead. `OSError` and every other exception
   become an answer without details; those go to stderr.
4. `notes/__main__.py`, which imports nothing heavy, so that `--help` and mistakes are answered at once:

       def main() -> int:
           options = program.parser("notes", "An MCP server for notes.", "--http 8080").parse_args()
           known = program.variables("notes", {"NOTES_URL": "where the notes are", "NOTES_TOKEN": "who asks"})

           @contextlib.asynccontextmanager
           async def build() -> AsyncIterator[Server[Any]]:
               from squidbot.servers.notes.catalogue import INSTRUCTIONS, TOOLS
               from squidbot.servers.notes.client import Notes
               from squidbot.servers.protocol import build_server

               async with Notes(known["NOTES_URL"], known["NOTES_TOKEN"]) as notes:
                   yield build_server("notes", instructions=INSTRUCTIONS, tools=TOOLS, world=notes)

           return program.serve("notes", build, http=options.http)

   What else cannot be used (a folder, an address) is told with `program.cannot_start`, which ends with 2.
5. A line in the contract `servers-rooms` of .importlinter: servers share these modules, and never each other's.
"""

import argparse
import contextlib
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from mcp.server import Server

_MAX_BODY = 16_000_000
"""Bytes of a request: the largest file that may be written, in base64 or escaped."""

Build: TypeAlias = "Callable[[], AbstractAsyncContextManager[Server[Any]]]"
"""Opens the world and gives the server of it; entered in the running loop, left at the end."""


def parser(name: str, description: str, example: str) -> argparse.ArgumentParser:
    """The options that every server has; a server adds its own."""
    options = argparse.ArgumentParser(
        prog=f"python -m squidbot.servers.{name}",
        description=f"{description} It speaks over stdio, or over HTTP to all programs of this machine.",
        epilog=f"Example: python -m squidbot.servers.{name} {example}",
    )
    options.add_argument("--http", type=_port, metavar="PORT", help="serve http://127.0.0.1:PORT/mcp; 0 for any port")
    return options


def variables(name: str, needed: Mapping[str, str]) -> dict[str, str]:
    """The environment variables in `needed`, or the end with 2, naming each that is missing and what it is."""
    # Without the line break that a value from a file so often ends in.
    values = {variable: os.environ.get(variable, "").strip() for variable in needed}
    missing = [f"  {variable}: {what}" for variable, what in needed.items() if not values[variable]]
    if missing:
        cannot_start(name, "these environment variables are not set:", *missing)
    return values


def token(name: str, variable: str, value: str) -> str:
    """A token as a header can carry it, or the end with 2; what cannot be one is not shown."""
    if not value.isascii() or not value.isprintable() or " " in value:
        cannot_start(
            name,
            f"{variable} is no token: it has spaces, line breaks or other characters that no token has; copy it again",
        )
    return value


def address(name: str, variable: str, value: str) -> str:
    """The http address that a variable holds, or the end with 2; one with a password in it is not shown."""
    value = value.strip()
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment:
        cannot_start(name, f"{variable} is no address of an API: it looks like https://example.com/path")
    if parts.username or parts.password:
        cannot_start(name, f"{variable} may not have a name or password in it: use the variables for those")
    return value.rstrip("/")


def cannot_start(name: str, problem: str, *more: str) -> NoReturn:
    """The end with 2, with the reason and what to do."""
    print("\n".join([f"{name}: {problem}", *more]), file=sys.stderr)
    raise SystemExit(2)


def serve(name: str, build: Build, *, http: int | None) -> int:
    """Serve until the client is gone or a signal comes; a change that has begun is finished before the end."""
    _forget_start()
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    return _serve_stdio(build) if http is None else _serve_http(name, build, http)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 0 to 65535")
    return int(text)


def _forget_start() -> None:
    """Import nothing from where we were started: that may be a folder in which a client writes."""
    start = Path.cwd()
    if not Path(__file__).is_relative_to(start):
        sys.path[:] = [path for path in sys.path if Path(path).resolve() != start]


def _leave(_signal: int, _frame: object) -> None:
    raise SystemExit(0)


@contextlib.contextmanager
def _quick_imports() -> Iterator[None]:
    """Nearly all of the start is importing mcp, a tenth of it in looking for garbage that is not there yet."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _serve_stdio(build: Build) -> int:
    with _quick_imports():
        import anyio
        from mcp.server.stdio import stdio_server

    async def stop_on_signal(talking: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                talking.cancel()

    async def talk() -> None:
        async with anyio.create_task_group() as tasks, stdio_server() as (read, write):
            with anyio.CancelScope() as talking:
                tasks.start_soon(stop_on_signal, talking)
                async with contextlib.AsyncExitStack() as stack:
                    with _quick_imports():
                        server = await stack.enter_async_context(build())
                    await server.run(read, write, server.create_initialization_options())
            if talking.cancelled_caught:
                # The thread that waits for stdin cannot be interrupted.
                os._exit(0)
            tasks.cancel_scope.cancel()

    anyio.run(talk)
    return 0


def _serve_http(name: str, build: Build, port: int) -> int:
    try:
        listener = socket.create_server(("127.0.0.1", port))
        # Connections inherit it; asyncio does not see that a socket of create_server is TCP's, and answers would wait 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        print(f"{name}: cannot listen on port {port}: {error.strerror}", file=sys.stderr)
        return 1
    with _quick_imports():
        import anyio
        import uvicorn

    async def listen() -> None:
        async with contextlib.AsyncExitStack() as stack:
            with _quick_imports():
                server = await stack.enter_async_context(build())
            app = server.streamable_http_app(host="127.0.0.1", max_request_body_size=_MAX_BODY)
            web = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
            print(f"{name}: http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
            await web.serve(sockets=[listener])

    anyio.run(listen)
    return 0
