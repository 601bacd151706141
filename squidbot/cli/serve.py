"""`squidbot serve`: the guarded door over stdio, for clients that only start commands."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import anyio
import click
from anyio import to_thread

from squidbot.cli.grammar import Command, RoleName
from squidbot.cli.invocation import Invocation
from squidbot.core.domain.callers import Caller

_CHUNK = 65_536
_AHEAD = 16
"""Chunks that may wait."""
_PATIENCE = 5.0
"""Seconds for servers that were never listed before to be."""
_TOKEN_LIFE = 3_600.0
"""Seconds for which a token of ours is good; then another is made."""


@click.command(cls=Command, example="squidbot serve --role backend_developer")
@click.option("--role", type=RoleName(), required=True, metavar="ROLE", help="In which role the client works.")
@click.pass_obj
def serve(call: Invocation, *, role: str) -> None:
    """Serve a role's tools over stdio: through the running gateway, or by itself if none runs."""
    from squidbot.config.running import running_gateway
    from squidbot.config.state import state_folder

    call.converses = True
    running = running_gateway(state_folder())
    if running is None:
        call.run(lambda: _alone(call, role))
    else:
        url = f"{running.url}/mcp"
        call.run(lambda: _beside(call, role, url))


async def _beside(call: Invocation, role: str, url: str) -> None:
    """Everything is done by the gateway; here lines are passed on."""
    made: list[str] = []
    lock = anyio.Lock()

    async def token() -> str:
        fresh = await call.new_token(role, name=f"serve-{os.getpid()}", expires=time.time() + _TOKEN_LIFE)
        made.append(fresh["id"])
        return fresh["token"]

    async def say(line: bytes) -> None:
        async with lock:
            await to_thread.run_sync(_write, line)

    try:
        await call.container.passing(url, token=token, say=say).run(_lines())
    finally:
        with anyio.CancelScope(shield=True):
            await call.revoke_tokens(made)


async def _alone(call: Invocation, role: str) -> None:
    """The whole way from here: the door, and the servers, which start at first use."""
    client = call.container.client()
    known = anyio.Event()

    async def prepare() -> None:
        await client.prepare()
        known.set()

    async with call.door(start=False):
        await call.check_role(role)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prepare)
            # A client that lists once must see what there is; a server that hangs must not keep it from the others.
            with anyio.move_on_after(_PATIENCE):
                await known.wait()
            caller = Caller(role, member=call.caller(role).member, origin="mcp")
            await call.container.serve_stdio(caller=caller, lines=_lines())
            tasks.cancel_scope.cancel()


async def _lines() -> AsyncIterator[bytes]:
    """What comes on stdin, line by line, from a thread that nobody has to wait for at the end."""
    loop = asyncio.get_running_loop()
    send, receive = anyio.create_memory_object_stream[bytes](_AHEAD)

    def read() -> None:
        # Not from sys.stdin: whoever ends while another thread holds its lock, crashes.
        with suppress(RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while chunk := os.read(0, _CHUNK):
                asyncio.run_coroutine_threadsafe(send.send(chunk), loop).result()
            loop.call_soon_threadsafe(send.close)

    threading.Thread(target=read, daemon=True, name="stdin").start()
    buffer = b""
    async with receive:
        async for chunk in receive:
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                yield line
    if buffer:
        yield buffer


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
