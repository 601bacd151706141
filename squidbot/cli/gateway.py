"""`squidbot gateway`: one door for every MCP client and a window for people, until it is told to end."""

import json
import os
import shlex
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from squidbot.cli.binding import address_of, bound, one_each
from squidbot.cli.exits import DONE, INTERRUPTED
from squidbot.cli.grammar import Command
from squidbot.cli.invocation import Invocation
from squidbot.config.files import display

if TYPE_CHECKING:
    from squidbot.config.schema import Settings


@click.command(
    cls=Command, example="squidbot gateway\nsquidbot gateway --port 0 --json\nsquidbot -c team.json gateway --workers 4"
)
@click.option("--host", help="Where to listen; else gateway.host of the settings, else this machine only.")
@click.option("--port", type=click.IntRange(0, 65_535), help="0 for any; else gateway.port of the settings, else 8765.")
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes; several need Redis."
)
@click.option("--worker", type=(int, int, int), hidden=True, help="What a worker inherits.")
@click.pass_obj
def gateway(
    call: Invocation, *, host: str | None, port: int | None, workers: int, worker: tuple[int, int, int] | None
) -> int:
    """Serve the tools of every server to any MCP client, each role its own, and a dashboard to people."""
    began = _process_started()
    call.lazy, call.converses = False, True
    settings = _settings(call)
    if worker is not None:
        from squidbot.cli.workers import inherited

        listener, ready = inherited(worker)
        return _run(call, listener, ready)
    from squidbot.cli.workers import check_shared, run_workers
    from squidbot.config.running import only_gateway

    check_shared(settings, workers)
    call.container.host.override(host)
    with ExitStack() as stack:
        announce = stack.enter_context(only_gateway(call.container.state()))
        listener = stack.enter_context(
            bound(
                host or settings.gateway.host,
                settings.gateway.port if port is None else port,
                allowed_hosts=settings.gateway.allowed_hosts,
            )
        )
        url = address_of(listener)

        def ready(link: str | None) -> None:
            announce(url)
            _greet(call, url, link=link, seconds=time.time() - began)

        if workers > 1:
            listeners = [stack.enter_context(each) for each in one_each(listener, workers)]
            return run_workers(call, listeners, ready)
        return _run(call, listener, ready)


def _run(call: Invocation, listener: socket.socket, ready: Callable[[str | None], None]) -> int:
    container = call.container
    container.say.override(call.output.note)
    process, url = container.gateway(), address_of(listener)

    async def serve() -> int:
        return await process.run(listener, url=url, ready=ready)

    number: int = anyio.run(serve, backend_options={"use_uvloop": True})
    return INTERRUPTED if number == signal.SIGINT else DONE


def _settings(call: Invocation) -> "Settings":
    """The settings in force; without any, those of the practice world."""
    from squidbot.config.load import find_settings

    if find_settings(call.config) is None:
        call.practise()
    return call.settings


def _greet(call: Invocation, url: str, *, link: str | None, seconds: float) -> None:
    if call.json:
        # One line, for programs that wait for it.
        line = {"url": url, "mcp": f"{url}/mcp", "dashboard": f"{url}/", "pid": os.getpid()}
        call.output.write(json.dumps(line))
        return
    note = call.output.note
    note(f"squidbot gateway is ready after {seconds:.1f} s; Ctrl-C ends it.")
    note(f"  dashboard  {url}/")
    if link is not None:
        note(f"  sign in    {link}")
        note("             (once, within five minutes; later with the token in the file below)")
    note(f"  admin      {call.container.state() / 'admin-token'}")
    note(f"  MCP        {url}/mcp")
    note(f"  token      {_typed(call)} tokens create --role backend_developer --name NAME")
    note(f"  client     {_typed(call)} connect claude-code --role backend_developer --write")


def _typed(call: Invocation) -> str:
    """What a person types from here to reach this very gateway: the same program, settings and state folder."""
    program = Path(sys.executable).with_name("squidbot")
    found = shutil.which("squidbot")
    words = [display(program) if program.exists() and found != str(program) else "squidbot"]
    home = os.environ.get("SQUIDBOT_HOME")
    if home:
        words.insert(0, f"SQUIDBOT_HOME={shlex.quote(display(Path(home)))}")
    if call.config:
        words += ["--config", shlex.quote(str(call.config))]
    return " ".join(words)


def _process_started() -> float:
    """When this process began, as a date: what a person waited for includes the loading of everything."""
    with suppress(OSError, ValueError, IndexError):
        ticks = int(Path("/proc/self/stat").read_text("ascii").rsplit(")", 1)[1].split()[19])
        up = float(Path("/proc/uptime").read_text("ascii").split()[0])
        return time.time() - (up - ticks / os.sysconf("SC_CLK_TCK"))
    return time.time()
