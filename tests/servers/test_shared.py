"""What every bundled server has from the shared modules: variables, tools in threads and in the loop, problems in words."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import CallToolResult, TextContent
from pydantic import Field, field_validator

from squidbot.servers import program
from squidbot.servers.filesystem import catalogue as filesystem
from squidbot.servers.git import catalogue as git
from squidbot.servers.github import catalogue as github
from squidbot.servers.jira import catalogue as jira
from squidbot.servers.protocol import build_server
from squidbot.servers.refusal import Refused
from squidbot.servers.tools import Answer, Arguments, Result, Tool, changing, reading, said

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F-01", "F-02", "F-03", "F-04")]


class Asked(Arguments):
    number: int = Field(default=1, ge=1)

    @field_validator("number")
    @classmethod
    def _lucky(cls, number: int) -> int:
        if number == 13:
            raise ValueError("13 brings bad luck: take 12")
        return number


class Doubled(Result):
    number: int


def tool(run: Callable[[list[str], Any], Any], *, changes: bool = False) -> Tool[list[str]]:
    hints = changing(destructive=False, idempotent=True) if changes else reading(open_world=True)
    return Tool("double", "Double", "Double a number.", Asked, Doubled, hints, run)


@asynccontextmanager
async def served(
    run: Callable[[list[str], Any], Any], *, changes: bool = False
) -> AsyncIterator[tuple[Client, list[str]]]:
    world: list[str] = []
    server = build_server("test", instructions="Doubles.", tools=[tool(run, changes=changes)], world=world)
    async with Client(server, mode="legacy", read_timeout_seconds=10) as client:
        yield client, world


def text(result: CallToolResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


def plainly(_world: list[str], asked: Asked) -> Answer:
    return said(Doubled(number=asked.number * 2), "doubled")


async def waiting(_world: list[str], asked: Asked) -> Answer:
    await anyio.lowlevel.checkpoint()
    return plainly(_world, asked)


@pytest.mark.parametrize("run", [plainly, waiting])
async def test_a_tool_may_run_in_a_thread_or_in_the_loop(run: Any) -> None:
    """Files block and APIs are awaited, and a server should not have to pretend otherwise."""
    async with served(run) as (client, _):
        result = await client.call_tool("double", {"number": 4})
        assert (text(result), result.structured_content) == ("doubled", {"number": 8})


async def test_a_refusal_in_the_loop_is_an_answer_in_its_words() -> None:
    """Errors are part of the interface, on whichever way they come."""

    async def refusing(_world: list[str], _asked: Asked) -> Answer:
        raise Refused("no such thing: use another")

    async with served(refusing) as (client, _):
        result = await client.call_tool("double", {})
        assert (result.is_error, text(result)) == (True, "double: no such thing: use another")


@pytest.mark.parametrize("catalogue", [git, github, jira, filesystem], ids=lambda module: module.__name__.split(".")[2])
async def test_every_argument_is_described_to_whoever_fills_it_in(catalogue: ModuleType) -> None:
    """A model has nothing but the schema to go by."""
    async with Client(build_server("x", instructions="", tools=catalogue.TOOLS, world=None), mode="legacy") as client:
        listed = (await client.list_tools()).tools
    for tool in listed:
        for part in (tool.input_schema, *tool.input_schema.get("$defs", {}).values()):
            silent = [name for name, about in part["properties"].items() if not about.get("description")]
            assert not silent, f"{tool.name} says nothing of {silent}"


async def test_problems_of_arguments_are_all_told_in_words() -> None:
    """A model that is told one problem at a time needs as many turns."""
    async with served(plainly) as (client, _):
        words = text(await client.call_tool("double", {"number": 13, "numbr": 1}))
    assert "'number': 13 brings bad luck: take 12" in words
    assert "'numbr': no such argument, did you mean 'number'?" in words


@pytest.mark.parametrize("changes", [True, False])
async def test_a_change_is_finished_though_its_caller_gave_up_and_a_look_is_not(changes: bool) -> None:
    """Half a change is worse than one that nobody waits for any more."""
    begun, ended = anyio.Event(), anyio.Event()

    async def slow(world: list[str], _asked: Asked) -> Answer:
        begun.set()
        try:
            for _ in range(50):
                await anyio.lowlevel.checkpoint()
            world.append("finished")
        finally:
            ended.set()
        return said(Doubled(number=1), "late")

    async with served(slow, changes=changes) as (client, world):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "double", {})
            await begun.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(10):
            await ended.wait()
    assert world == (["finished"] if changes else [])


def test_missing_variables_are_named_with_what_they_are_and_end_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever sets up a server wants all that is missing at once, and no value in the log."""
    monkeypatch.setenv("NOTES_URL", "http://hidden")
    monkeypatch.setenv("NOTES_TOKEN", "")
    monkeypatch.delenv("NOTES_USER", raising=False)
    needed = {"NOTES_URL": "where", "NOTES_TOKEN": "a token of your account", "NOTES_USER": "who asks"}
    with pytest.raises(SystemExit) as ended:
        program.variables("notes", needed)
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "notes: these environment variables are not set:\n  NOTES_TOKEN: a token of your account\n  NOTES_USER: who asks\n"
    )
    monkeypatch.setenv("NOTES_TOKEN", "t\n")
    monkeypatch.setenv("NOTES_USER", "u")
    assert program.variables("notes", needed) == {"NOTES_URL": "http://hidden", "NOTES_TOKEN": "t", "NOTES_USER": "u"}


@pytest.mark.parametrize("server", ["github", "jira"])
@pytest.mark.parametrize("token", ["hid\nden", "hid den", "hidden\u2026"])
def test_a_token_that_no_header_can_carry_ends_with_2_and_is_not_shown(server: str, token: str) -> None:
    """It was copied badly; found out at the first call, the error of the library would show it."""
    variable = "GITHUB_TOKEN" if server == "github" else "JIRA_PERSONAL_TOKEN"
    ran = subprocess.run(
        [sys.executable, "-m", f"squidbot.servers.{server}"],
        env={**os.environ, "JIRA_URL": "http://127.0.0.1:9", variable: token},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"{server}: {variable} is no token")
    assert "hid" not in ran.stderr


def test_the_program_loads_no_protocol_before_it_must() -> None:
    """A mistake on the command line is told at once."""
    code = "import sys, squidbot.servers.program; print({'mcp', 'mcp_types', 'pydantic', 'anyio'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"
