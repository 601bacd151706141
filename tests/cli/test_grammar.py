"""The command line as people meet it first: help, typos, versions."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from squidbot import __version__
from squidbot.cli.app import root
from tests.cli.conftest import Squidbot


def all_commands(group: click.Group = root, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command there is, by its words."""
    context = click.Context(group)
    found = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        found += all_commands(command, (*path, name)) if isinstance(command, click.Group) else [(*path, name)]
    return found


COMMANDS = all_commands()


@pytest.mark.requirement("G-03")
def test_the_commands_of_the_surface_are_there() -> None:
    """Names are promises: scripts hold them."""
    assert {" ".join(command) for command in COMMANDS} >= {
        "init",
        "config check",
        "config schema",
        "config show",
        "doctor",
        *(f"servers {name}" for name in ("list", "get", "add", "remove", "test", "import", "login", "logout")),
        *(f"tools {name}" for name in ("list", "show", "call")),
        *(f"prompts {name}" for name in ("list", "render")),
        *(f"resources {name}" for name in ("list", "read")),
        *(
            f"roles {name}"
            for name in ("list", "show", "check", "explain", "diff", "simulate", "flows", "grant", "revoke")
        ),
        *(f"tokens {name}" for name in ("create", "list", "revoke")),
        *(f"audit {name}" for name in ("tail", "show", "stats", "verify", "export", "prune")),
        "alerts list",
        "status",
    }


@pytest.mark.requirement("G-03")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example_and_the_common_options(
    command: tuple[str, ...], squidbot: Squidbot
) -> None:
    """Help without an example leaves the reader to guess."""
    ran = squidbot(*command, "--help")
    assert ran.code == 0
    assert "Example:\n  squidbot " in ran.out
    for option in ("--config", "--json", "--verbose"):
        assert option in ran.out


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["serverz"], "'servers'"),
        (["tool", "list"], "'tools'"),
        (["tools", "cal"], "'call'"),
        (["tools", "list", "--sever", "x"], "--server"),
    ],
)
def test_a_typo_is_answered_with_what_was_meant(arguments: list[str], meant: str, squidbot: Squidbot) -> None:
    """The program knows its own words better than anybody else."""
    ran = squidbot(*arguments)
    assert ran.code == 2
    assert "Did you mean" in ran.err
    assert meant in ran.err
    assert ran.out == ""


@pytest.mark.requirement("G-03")
def test_with_json_a_usage_error_is_json_on_stdout(squidbot: Squidbot) -> None:
    """A program that asked for JSON must not have to read prose, whatever went wrong."""
    ran = squidbot("tools", "cal", "--json")
    assert ran.code == 2
    assert ran.error["code"] == "usage"
    assert "call" in ran.error["message"]
    assert squidbot("--json", "tools", "call").error["code"] == "usage"
    assert squidbot("servers", "add", "--", "--json").out == ""


def test_no_command_at_all_is_answered_with_help(squidbot: Squidbot) -> None:
    """Whoever types only the name wants to know what there is; a script must notice that it did nothing."""
    ran = squidbot()
    assert ran.code == 2
    assert "Commands:" in ran.err


@pytest.mark.parametrize("arguments", [["--version"], ["-v", "--version"]])
def test_the_version_is_told(arguments: list[str], program: Squidbot) -> None:
    """Both ways in: before any library, and beside other options."""
    assert program(*arguments).out == f"squidbot {__version__}\n"


def loaded(*arguments: str) -> set[str]:
    """The top-level packages that a run of the program imports."""
    code = (
        "import sys\nsys.argv = ['squidbot', *sys.argv[1:]]\nfrom squidbot.__main__ import main\n"
        "main()\nprint('\\nLOADED', *{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("LOADED")[2].split())


def test_telling_the_version_loads_no_library() -> None:
    """Prompts and scripts ask for it all the time; it costs what Python costs."""
    assert not loaded("--version") & {"click", "rich", "mcp", "pydantic", "loguru", "dependency_injector"}


@pytest.mark.parametrize("arguments", [["--help"], ["tools", "--help"], ["tools", "call", "--help"], ["doctor", "-h"]])
def test_help_loads_neither_protocol_nor_settings(arguments: list[str]) -> None:
    """Help is read while thinking; half a second of imports would be noticed."""
    assert not loaded(*arguments) & {"mcp", "pydantic", "rich", "loguru", "dependency_injector"}


@pytest.mark.usefixtures("plain")
def test_a_call_over_a_pipe_loads_no_library_that_it_does_not_use() -> None:
    """Nearly all the time of a short command is loading, and the protocol's library alone takes as long as all else."""
    call = ("tools", "call", "mcp_plain_echo", "text=hello")
    unused = {"mcp", "mcp_types", "httpx2", "websockets", "jsonschema", "prometheus_client", "opentelemetry", "alembic"}
    loaded(*call)  # makes the tables, for which Alembic is needed
    assert loaded(*call) & unused == set()
    assert loaded("tools", "list") & {*unused, "sqlalchemy"} == set()


def test_shells_complete_the_names_of_servers(plain: Path, program: Squidbot) -> None:
    """From the settings in force; a broken file completes nothing and says nothing."""

    def completed(words: str) -> list[str]:
        count = str(len(words.split()))
        ran = program(_SQUIDBOT_COMPLETE="bash_complete", COMP_WORDS=f"squidbot {words}", COMP_CWORD=count)
        assert ran.err == ""
        return ran.out.split()

    assert completed("servers get p") == ["plain,plain"]
    assert completed("tools list --server p") == ["plain,plain"]
    plain.write_text("{")
    assert completed("servers get p") == []
    plain.unlink()
    assert completed("servers get f") == ["plain,filesystem"]


def test_shells_can_complete_commands_and_options(program: Squidbot) -> None:
    """Completion is how people find what there is."""
    ran = program(_SQUIDBOT_COMPLETE="bash_complete", COMP_WORDS="squidbot servers l", COMP_CWORD="2")
    assert ran.out.split() == ["plain,list", "plain,login", "plain,logout"]
    assert "complete" in program(_SQUIDBOT_COMPLETE="zsh_source").out
