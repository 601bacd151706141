"""Starts the filesystem server: `python -m squidbot.servers.filesystem [FOLDER] [--http PORT]`."""

import argparse
import contextlib
import gc
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from squidbot.servers.filesystem.sandbox import Sandbox

_MAX_BODY = 16_000_000
"""Bytes of a request: the largest file that may be written, in base64 or escaped."""


def main() -> int:
    """Serve one folder until the client is gone or a signal comes."""
    options = _options()
    try:
        folder = options.folder or _default_folder()
        sandbox = Sandbox.open(folder)
    except OSError as error:
        print(f"filesystem: cannot use the folder {error.filename!r}: {error.strerror}", file=sys.stderr)
        if options.folder:
            print("Name a folder that exists; without a name, one is made for you.", file=sys.stderr)
        return 2
    _forget_start()
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    try:
        return _serve_stdio(sandbox) if options.http is None else _serve_http(sandbox, options.http)
    finally:
        sandbox.closing.set()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m squidbot.servers.filesystem",
        description="An MCP server for the files of one folder, over stdio, or over HTTP for all programs of this machine.",
        epilog="Example: python -m squidbot.servers.filesystem ./notes --http 8080",
    )
    parser.add_argument("folder", nargs="?", type=Path, help="the folder; default: one in squidbot's state folder")
    parser.add_argument("--http", type=_port, metavar="PORT", help="serve http://127.0.0.1:PORT/mcp; 0 for any port")
    return parser.parse_args()


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 0 to 65535")
    return int(text)


def _default_folder() -> Path:
    """`workspace` in the state folder, made for its owner alone."""
    home = os.environ.get("SQUIDBOT_HOME")
    if home:
        state = Path(home).expanduser().absolute()
    else:
        import platformdirs

        state = platformdirs.user_state_path("squidbot")
    folder = state / "workspace"
    for missing in [path for path in (folder, *folder.parents) if not path.exists()][::-1]:
        missing.mkdir(mode=0o700, exist_ok=True)
    return folder


def _forget_start() -> None:
    """Import nothing from where we were started: that may be the folder, and a client writes there."""
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


def _serve_stdio(sandbox: Sandbox) -> int:
    with _quick_imports():
        import anyio
        from anyio import to_thread
        from mcp.server.stdio import stdio_server

        from squidbot.servers.filesystem.server import build_server

    async def leave_on_signal() -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                # No change is left half done. The thread that waits for stdin cannot be interrupted, hence this exit.
                await to_thread.run_sync(sandbox.changing.acquire)
                os._exit(0)

    async def serve() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(leave_on_signal)
            server = build_server(sandbox)
            async with stdio_server() as (read, write):
                await server.run(read, write, server.create_initialization_options())
            tasks.cancel_scope.cancel()

    anyio.run(serve)
    return 0


def _serve_http(sandbox: Sandbox, port: int) -> int:
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        print(f"filesystem: cannot listen on port {port}: {error.strerror}", file=sys.stderr)
        return 1
    with _quick_imports():
        import anyio
        import uvicorn

        from squidbot.servers.filesystem.server import build_server

    app = build_server(sandbox).streamable_http_app(host="127.0.0.1", max_request_body_size=_MAX_BODY)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))

    async def serve() -> None:
        print(f"filesystem: http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
        await server.serve(sockets=[listener])

    anyio.run(serve)
    return 0


if __name__ == "__main__":
    sys.exit(main())
