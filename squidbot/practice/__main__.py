"""Starts the practice world: `python -m squidbot.practice --dir FOLDER [--port PORT] [--reset]`."""

import argparse
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import uvicorn
from anyio import to_thread

from squidbot.practice.app import build_app
from squidbot.practice.git import GitFailed
from squidbot.practice.world import World, WorldInUse

DEFAULT_PORT = 8766


async def serve(
    folder: Path, port: int = DEFAULT_PORT, on_ready: Callable[[str], None] | None = None, *, reset: bool = False
) -> None:
    """Serve the world in `folder` on this machine alone until cancelled; 0 is any free port.

    `on_ready` is told the world's address once it answers; by then practice.json is written.
    Raises WorldInUse, OSError (the port, the folder) and GitFailed. No signal handler is installed, so
    that it can live in a program that has its own.
    """
    world = World(folder)
    with socket.create_server(("127.0.0.1", port)) as listener, contextlib.ExitStack() as leaving:
        # Connections inherit it. asyncio would set it, but does not see that a socket of create_server is TCP's,
        # and every answer would wait 40 ms for the client to acknowledge its headers.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        leaving.enter_context(await to_thread.run_sync(_opened, world, reset))
        server = _EmbeddedServer(
            # Its log is the program's that it lives in: uvicorn's own set-up would be that of the whole process.
            uvicorn.Config(
                build_app(world),
                log_config=None,
                log_level="error",
                access_log=False,
                timeout_graceful_shutdown=1,
                ws="none",
            )
        )

        async def run() -> None:
            # Asked to end, not cancelled: open answers are finished first.
            with anyio.CancelScope(shield=True):
                await server.serve(sockets=[listener])
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            try:
                await server.ready.wait()
                world.announce(url)
                if on_ready is not None:
                    on_ready(url)
                await anyio.sleep_forever()
            finally:
                server.should_exit = True


class _EmbeddedServer(uvicorn.Server):
    """uvicorn without its hands on the program's signals, and with a word when it is ready."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = anyio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


def _opened(world: World, reset: bool) -> World:
    """The world, open: blocking, and closed by whoever leaves its context."""
    world.open()
    if reset:
        world.reset()
    return world


def main() -> int:
    """Serve until a signal comes."""
    options = _options()
    problems: list[str] = []

    async def run() -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with anyio.create_task_group() as tasks:

                async def work() -> None:
                    try:
                        await serve(options.dir, options.port, _announce, reset=options.reset)
                    except (WorldInUse, GitFailed) as error:
                        problems.append(str(error))
                    except OSError as error:
                        if error.filename:
                            problems.append(f"cannot use the folder {error.filename!r}: {error.strerror}")
                        else:
                            problems.append(f"cannot use port {options.port}: {os.strerror(error.errno or 0)}")
                    tasks.cancel_scope.cancel()

                tasks.start_soon(work)
                async for _ in signals:
                    tasks.cancel_scope.cancel()
                    break

    anyio.run(run)
    for problem in problems:
        print(f"practice: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _announce(url: str) -> None:
    print(f"practice: {url}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m squidbot.practice",
        description="A local forge and tracker for practice, that speak the GitHub and Jira REST APIs. Loopback only.",
        epilog="Example: python -m squidbot.practice --dir ./practice --port 8766",
    )
    parser.add_argument("--dir", type=Path, required=True, metavar="FOLDER", help="where the world is kept")
    parser.add_argument("--port", type=_port, default=DEFAULT_PORT, help=f"0 for any port; default {DEFAULT_PORT}")
    parser.add_argument("--reset", action="store_true", help="throw away what is in the world, and begin anew")
    return parser.parse_args()


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 0 to 65535")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
