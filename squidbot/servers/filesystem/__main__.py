"""Starts the filesystem server: `python -m squidbot.servers.filesystem [FOLDER] [--http PORT]`."""

import argparse
import os
import signal
import socket
import sys
from pathlib import Path

from squidbot.servers.filesystem.sandbox import Sandbox


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
    _forget_folder(folder.resolve())
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    return _serve_stdio(sandbox) if options.http is None else _serve_http(sandbox, options.http)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m squidbot.servers.filesystem",
        description="An MCP server for the files of one folder, over stdio or HTTP.",
        epilog="Example: python -m squidbot.servers.filesystem ./notes --http 8080",
    )
    parser.add_argument("folder", nargs="?", type=Path, help="the folder; default: one in squidbot's state folder")
    parser.add_argument("--http", type=_port, metavar="PORT", help="serve http://127.0.0.1:PORT/mcp; 0 for any port")
    return parser.parse_args()


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 0 to 65535")
    return port


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


def _forget_folder(folder: Path) -> None:
    """What a client writes into the folder must never be imported by us, wherever we were started."""
    sys.path[:] = [path for path in sys.path if not Path(path).resolve().is_relative_to(folder)]


def _leave(_signal: int, _frame: object) -> None:
    raise SystemExit(0)


def _serve_stdio(sandbox: Sandbox) -> int:
    import anyio
    from mcp.server.stdio import stdio_server

    from squidbot.servers.filesystem.server import AT_ONCE, build_server

    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def leave_on_signal() -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                # Nothing half done: every place is taken, so whoever was at work has finished. The thread
                # that waits for stdin cannot be interrupted, hence no way out but this one.
                for place in range(AT_ONCE):
                    await limiter.acquire_on_behalf_of(place)
                os._exit(0)

    async def serve() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(leave_on_signal)
            server = build_server(sandbox, limiter)
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
    import anyio
    import uvicorn

    from squidbot.servers.filesystem.server import AT_ONCE, build_server

    app = build_server(sandbox, anyio.CapacityLimiter(AT_ONCE)).streamable_http_app(host="127.0.0.1")
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
    print(f"filesystem: http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    server.run(sockets=[listener])
    return 0


if __name__ == "__main__":
    sys.exit(main())
