"""A server that dies: its calls end at once, its tools come back by themselves, and no call is sent twice."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
import pytest

from squidbot import MCPClient, ToolResult
from squidbot.core.domain.servers import ServerEvent
from tests.fixtures.meeting import ERAS, Era, meeting
from tests.fixtures.running import Entry, entry_for, port_of, program, running, until, world_command
from tests.fixtures.serve import TransportOnNetwork
from tests.interaction.conftest import NETWORK

pytestmark = pytest.mark.anyio

BOUND = 10.0
"""Seconds within which every call of a dead server has ended."""


@contextmanager
def restartable(transport: TransportOnNetwork) -> Iterator[tuple[Entry, Callable[[], None], Callable[[], None]]]:
    """A world on the network with a way to kill it and a way to start it again on the same port."""
    with ExitStack() as lives, tempfile.TemporaryDirectory() as folder:
        processes: list[subprocess.Popen[bytes]] = []

        def start(port: int = 0) -> int:
            port_file = Path(folder, f"port-{len(processes)}")
            command = world_command(transport, "--port-file", str(port_file), "--port", str(port))
            process = lives.enter_context(program(command))
            processes.append(process)
            return port_of(process, port_file)

        port = start()

        def kill() -> None:
            processes[-1].kill()
            processes[-1].wait(timeout=10)

        def start_again() -> None:
            start(port)

        yield entry_for(transport, port), kill, start_again


async def _fifty_and_then(client: MCPClient, kill: Callable[[], None]) -> tuple[list[ToolResult], float]:
    """Fifty calls that would take a minute, killed as soon as the server has all of them; and how long they took."""
    results: list[ToolResult] = []

    async def one(number: int) -> None:
        arguments = {"seconds": 60, "token": f"doomed {number}"}
        results.append(await client.call_tool("world", "slow", arguments, timeout=120))

    async def all_started() -> bool:
        seen = (await client.call_tool("world", "witness")).structured
        return len(seen["started"]) == 50

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(one, number)
        await until(all_started, what="fifty calls at the server")
        killed = time.monotonic()
        kill()
    return results, time.monotonic() - killed


async def _back(client: MCPClient) -> None:
    """Wait until the server answers again and its status says so."""

    async def answers() -> bool:
        answer = await client.call_tool("world", "echo", {"text": "again"}, timeout=5)
        return answer.text == "again" and client.status("world").state == "ready"

    await until(answers, what="the server to answer again", within=30)


@pytest.mark.requirement("B-08")
@pytest.mark.parametrize("era", ERAS)
async def test_killing_a_stdio_server_ends_its_fifty_calls_and_its_tools_come_back(era: Era) -> None:
    """A crash must cost the calls that were under way, and nothing else."""
    with running("stdio") as entry:
        async with meeting({**entry, "protocol": era}) as client:
            before = {tool.tool for tool in client.get_available_tools("world")}
            first = int((await client.call_tool("world", "pid")).text)
            results, seconds = await _fifty_and_then(client, lambda: os.kill(first, signal.SIGKILL))
            assert len(results) == 50
            assert all(result.is_error and result.failure for result in results)
            assert seconds < BOUND
            await _back(client)
            assert {tool.tool for tool in client.get_available_tools("world")} == before
            assert int((await client.call_tool("world", "pid")).text) != first
            witness = await client.call_tool("world", "witness")
            assert witness.structured["started"] == [], "a call was sent again by itself"


@pytest.mark.requirement("B-08")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", NETWORK)
async def test_killing_a_server_on_the_network_ends_its_fifty_calls_and_its_tools_come_back(
    transport: TransportOnNetwork, era: Era
) -> None:
    """A restarted service must be found again without anybody's help."""
    with restartable(transport) as (entry, kill, start):
        async with meeting({**entry, "protocol": era}) as client:
            before = {tool.tool for tool in client.get_available_tools("world")}
            results, seconds = await _fifty_and_then(client, kill)
            assert len(results) == 50
            assert all(result.is_error and result.failure for result in results)
            assert seconds < BOUND
            while_away = await client.call_tool("world", "echo", {"text": "anybody there?"}, timeout=5)
            assert while_away.is_error
            start()
            await _back(client)
            assert {tool.tool for tool in client.get_available_tools("world")} == before
            witness = await client.call_tool("world", "witness")
            assert witness.structured["started"] == [], "a call was sent again by itself"


@pytest.mark.requirement("B-08")
async def test_a_call_that_kills_its_server_is_an_error_and_the_next_one_works() -> None:
    """A tool that crashes its process is a failed tool, not a failed agent."""
    with running("stdio") as entry:
        async with meeting(entry) as client:
            died = await client.call_tool("world", "die")
            assert died.is_error
            assert died.failure is not None
            assert "17" in died.text, "the exit code tells people where to look"
            await _back(client)


@pytest.mark.requirement("B-08", "C-08")
@pytest.mark.parametrize("era", ERAS)
async def test_subscriptions_outlive_the_server_that_took_them(era: Era) -> None:
    """A client of ours does not know that a server behind us died, and waits for news of what it subscribed to."""
    uri, heard = "world://note", list[str]()

    def hear(event: ServerEvent) -> None:
        if event.kind == "resource_updated":
            heard.append(str(event.params["uri"]))

    with running("stdio") as entry:
        async with meeting({**entry, "protocol": era}, on_event=hear) as client:
            await client.subscribe_resource("world", uri)
            await client.call_tool("world", "die")
            await until(lambda: client.status("world").state == "ready", what="the server to come back")

            async def told() -> bool:
                await client.call_tool("world", "touch", {"uri": uri})
                return uri in heard

            await until(told, what="news of the resource")
            await client.subscribe_resource("world", uri, wanted=False)
