"""`squidbot tools`, against real servers."""

import base64
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Squidbot, starts, write_settings
from tests.fixtures.running import heed_interrupts, plain_entry


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.requirement("G-03")
def test_tools_are_listed_with_the_keys_that_programs_rely_on(plain: Path, squidbot: Squidbot) -> None:
    """The shape of the outer surface, to the letter."""
    ran = squidbot("tools", "list", "--json")
    assert ran.code == 0
    assert ran.json[0] == {
        "name": "mcp_plain_echo",
        "server": "plain",
        "tool": "echo",
        "description": "Says the text again",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    }
    assert [tool["tool"] for tool in squidbot("tools", "list", "--server", "plain", "--json").json] == ["echo", "pid"]


@pytest.mark.requirement("B-07")
def test_a_second_list_starts_nothing(plain: Path, folder: Path, squidbot: Squidbot) -> None:
    """A one-shot run must not wait for servers that it knows already."""
    first = squidbot("tools", "list").out
    assert len(starts(folder)) == 1
    assert squidbot("tools", "list").out == first
    assert squidbot("tools", "show", "echo").code == 0
    assert squidbot("servers", "list").code == 0
    assert len(starts(folder)) == 1


@pytest.mark.requirement("E-07")
def test_commands_one_after_another_reach_the_limit_of_their_role(folder: Path, squidbot: Squidbot) -> None:
    """Each is a process of its own, and the limit is the role's: exit code 3, and the true time to wait."""
    write_settings(
        folder,
        {"plain": plain_entry()},
        roles={"writer": {"tools": {"plain": ["echo"]}}},
        limits=[{"role": "writer", "rate": "2/d", "burst": 2}],
    )
    call = ("tools", "call", "mcp_plain_echo", "text=x", "--role", "writer", "--json")
    assert [squidbot(*call).code for _ in range(2)] == [0, 0]
    third = squidbot(*call)
    assert third.code == 3
    assert third.json["error"]["code"] == "limited"
    assert re.search(r"may make 2 calls a day and 2 at once; try again in 43,\d{3} s", third.json["error"]["message"])
    assert [row["outcome"] for row in squidbot("audit", "tail", "--json").json] == ["ok", "ok", "limited"]


@pytest.mark.requirement("B-07")
def test_a_call_starts_only_the_server_it_needs(folder: Path, squidbot: Squidbot) -> None:
    """Twenty servers in the settings, one call: one process."""
    entries = {name: plain_entry("--starts", str(folder / name)) for name in ("one", "two")}
    write_settings(folder, entries)
    squidbot("tools", "list")
    assert squidbot("tools", "call", "mcp_two_echo", "text=x").out == "x\n"
    assert [len((folder / name).read_text().split()) for name in ("one", "two")] == [1, 2]


@pytest.mark.requirement("B-07", "B-06")
@pytest.mark.parametrize("name", ["mcp_good_echo", "good/echo"])
def test_a_call_does_not_wait_for_a_server_that_cannot_have_the_tool(
    name: str, folder: Path, squidbot: Squidbot
) -> None:
    """One that hangs at its start, and so was never listed, would cost half a minute each time."""
    hanging = {"command": sys.executable, "args": ["-c", "open('hung', 'a'); import time; time.sleep(60)"]}
    write_settings(folder, {"good": plain_entry(), "hanging": {**hanging, "cwd": str(folder)}})
    assert squidbot("tools", "call", name, "text=x").out == "x\n"
    assert squidbot("tools", "show", name).code == 0
    assert not (folder / "hung").exists()


@pytest.mark.requirement("B-06")
def test_a_call_fails_with_a_server_that_is_required(folder: Path, squidbot: Squidbot) -> None:
    """Whoever writes `required` wants nothing to be done without it, whichever server is asked."""
    broken = {"command": sys.executable, "args": ["-c", "raise SystemExit(3)"], "max_retries": 0, "required": True}
    write_settings(folder, {"good": plain_entry(), "broken": broken})
    ran = squidbot("tools", "call", "mcp_good_echo", "text=x", "--json")
    assert (ran.code, ran.error["code"]) == (4, "unavailable")


@pytest.mark.requirement("C-03")
def test_a_server_that_only_sounds_like_the_one_meant_may_fail(folder: Path, squidbot: Squidbot) -> None:
    """`mcp_a_b_echo` could be `b_echo` of server `a`; that it is away says nothing of server `a_b`."""
    broken = {"command": sys.executable, "args": ["-c", "raise SystemExit(3)"], "max_retries": 0}
    write_settings(folder, {"a": broken, "a_b": plain_entry()})
    assert squidbot("tools", "call", "mcp_a_b_echo", "text=x").out == "x\n"


@pytest.mark.parametrize("name", ["mcp_plain_echo", "plain/echo", "echo"])
def test_a_tool_answers_to_its_three_names(name: str, plain: Path, squidbot: Squidbot) -> None:
    """The name that agents see is exact; people type the short one."""
    assert squidbot("tools", "call", name, "text=hello").out == "hello\n"


@pytest.mark.requirement("C-03")
def test_a_short_name_that_two_tools_have_is_neither(folder: Path, squidbot: Squidbot) -> None:
    """Guessing would call the wrong one half of the time."""
    write_settings(folder, {"a": plain_entry(), "b": plain_entry()})
    ran = squidbot("tools", "call", "echo", "text=x", "--json")
    assert ran.code == 2
    assert ran.error["hint"] == "Say which: mcp_a_echo, mcp_b_echo."


@pytest.mark.requirement("G-03")
def test_a_result_has_the_keys_that_programs_rely_on(world: Path, squidbot: Squidbot) -> None:
    """Everything is in the document, bytes in base64, so that nothing has to be read from the terminal's form."""
    ran = squidbot("tools", "call", "mcp_world_kinds", "--json")
    assert ran.code == 0
    document = ran.json
    assert document.keys() == {
        *("name", "server", "tool", "is_error", "content", "structured", "duration_ms", "record"),
    }
    assert (document["name"], document["server"], document["tool"]) == ("mcp_world_kinds", "world", "kinds")
    assert document["is_error"] is False
    assert document["duration_ms"] > 0
    assert [block["type"] for block in document["content"]] == ["text", "image", "audio", "binary", "binary", "binary"]
    assert base64.b64decode(document["content"][1]["data"]) == b"\x89PNG"
    assert [block["kind"] for block in document["content"][3:]] == ["embedded", "embedded", "link"]
    shown = squidbot("tools", "call", "mcp_world_kinds").out
    files = re.findall(r"bytes: (.+)\]", shown)
    assert [Path(file).read_bytes() for file in files] == [b"\x89PNG", b"RIFF", b"\0\1\2\xff"]


def test_structured_content_is_there(world: Path, squidbot: Squidbot) -> None:
    """Numbers are typed by the schema on the way in and structured on the way out."""
    assert squidbot("tools", "call", "add", "a=1", "b=2", "--json").json["structured"] == {"sum": 3}


@pytest.mark.requirement("D-04", "G-03")
@pytest.mark.parametrize("tool", ["fail", "boom"])
def test_a_failed_tool_is_exit_code_one(tool: str, world: Path, squidbot: Squidbot) -> None:
    """The command worked, the tool did not: its words are the answer."""
    ran = squidbot("tools", "call", tool, "--json")
    assert ran.code == 1
    assert ran.json["is_error"] is True
    assert squidbot("tools", "call", "fail").out == "the disk is full\n"


@pytest.mark.requirement("G-03")
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["mcp_plain_ecko"], "unknown_tool", ["mcp_plain_ecko"]),
        (["zzz"], "unknown_tool", ["zzz"]),
        (["echo"], "invalid_arguments", ["text"]),
        (["echo", "text=x", "--args", "{"], "invalid_arguments", ["--args"]),
        (["echo", "text=@gone"], "invalid_arguments", ["gone"]),
        (["echo", "--args", '{"text": 3}'], "invalid_arguments", ["text"]),
    ],
)
def test_a_bad_call_is_exit_code_two_and_reaches_no_server(
    arguments: list[str], code: str, words: list[str], plain: Path, folder: Path, squidbot: Squidbot
) -> None:
    """Everything that can be found out before a server is asked is."""
    squidbot("tools", "list")
    before = len(starts(folder))
    ran = squidbot("tools", "call", *arguments, "--json")
    assert ran.code == 2
    assert ran.error["code"] == code
    for word in words:
        assert word in ran.error["message"]
    assert len(starts(folder)) == before


def test_all_misfits_are_named_at_once(world: Path, squidbot: Squidbot) -> None:
    """Two mistakes, one round."""
    ran = squidbot("tools", "call", "add", "a=one", "c=3")
    assert ran.code == 2
    assert re.search(r"\ba\b", ran.err)
    assert re.search(r"\bb\b", ran.err)


def test_a_misspelt_tool_is_answered_with_the_nearest(plain: Path, squidbot: Squidbot) -> None:
    """The right name is one letter away."""
    assert "'mcp_plain_echo'" in squidbot("tools", "call", "mcp_plain_ecko").err


@pytest.mark.parametrize("text", ["Grüße", "a\nb", "\x1b[31m", "x" * 100_000])
def test_piped_answers_are_exact(text: str, plain: Path, squidbot: Squidbot) -> None:
    """What was said is what the next program gets."""
    assert squidbot("tools", "call", "echo", "--args", json.dumps({"text": text})).out == text + "\n"


@pytest.mark.requirement("B-06", "G-03")
def test_a_server_that_cannot_start_is_a_warning_and_its_tools_are_unavailable(
    folder: Path, squidbot: Squidbot
) -> None:
    """The others go on; whoever needs the broken one is told why, with exit code 4."""
    broken = {"command": "no-such-command-anywhere", "max_retries": 0}
    write_settings(folder, {"good": plain_entry(), "bad": broken})
    listed = squidbot("tools", "list")
    assert listed.code == 0
    assert "mcp_good_echo" in listed.out
    assert "no-such-command-anywhere" in listed.err
    for command in (["list", "--server", "bad"], ["call", "mcp_bad_x"], ["call", "bad/x"], ["show", "mcp_bad_x"]):
        ran = squidbot("tools", *command, "--json")
        assert (ran.code, ran.error["code"]) == (4, "unavailable")
        assert "no-such-command-anywhere" in ran.error["message"]
    write_settings(folder, {"good": plain_entry(), "bad": {**broken, "required": True}})
    assert squidbot("tools", "list").code == 4
    write_settings(folder, {"bad": broken})
    assert squidbot("tools", "list").code == 4
    write_settings(folder, {"bad": {**broken, "enabled": False}})
    assert squidbot("tools", "list", "--json").json == []
    assert squidbot("tools", "list").code == 0


def test_a_server_that_is_gone_since_the_last_list_is_unavailable(folder: Path, squidbot: Squidbot) -> None:
    """Its tools are known from last time; that it cannot be started is learnt at the call."""
    script = folder / "server.py"
    script.write_text(Path(plain_entry()["args"][2]).read_text())
    write_settings(folder, {"s": {"command": sys.executable, "args": [str(script)], "max_retries": 0}})
    assert squidbot("tools", "list").code == 0
    script.unlink()
    ran = squidbot("tools", "call", "mcp_s_echo", "text=x", "--json")
    assert (ran.code, ran.error["code"]) == (4, "unavailable")


@pytest.mark.requirement("G-08")
def test_progress_goes_to_stderr(world: Path, squidbot: Squidbot) -> None:
    """The answer is the answer; how far it is is for whoever waits."""
    ran = squidbot("tools", "call", "progress", "steps=3")
    assert ran.out == "3 steps\n"
    assert "mcp_world_progress: 3/3 step 3" in ran.err


def test_a_tool_is_shown_with_its_arguments(world: Path, squidbot: Squidbot) -> None:
    """What a person needs before the first call."""
    ran = squidbot("tools", "show", "add")
    assert ran.out.startswith("mcp_world_add  'add' of server 'world'\n\nAdds two numbers\n\n")
    assert re.search(r"^a +number +yes", ran.out, re.MULTILINE)
    shown = squidbot("tools", "show", "add", "--json").json
    assert shown["output_schema"]["required"] == ["sum"]
    assert "takes no arguments" in squidbot("tools", "show", "kinds").err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_call_leaves_no_process_and_no_traceback(number: signal.Signals, world: Path) -> None:
    """Ctrl-C is an everyday thing: it ends what was begun, servers included, and says nothing more than needed."""
    command = [sys.executable, "-m", "squidbot", "-v", "tools", "call", "slow", "seconds=50", "token=t"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,  # noqa: PLW1509
    ) as process:
        try:
            children = wait_for_server(process)
            process.send_signal(number)
            out, err = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert err.endswith("error: interrupted\n")
    deadline = time.monotonic() + 10
    while any(alive(child) for child in children):
        assert time.monotonic() < deadline, "a server outlived the command"


def wait_for_server(process: subprocess.Popen[str]) -> list[int]:
    """The processes below `process`, once the server is among them."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = descendants(process.pid)
        if any(b"tests.fixtures.world" in command_line(pid) for pid in found):
            return found
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.05)
    raise AssertionError("the server never started")


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def descendants(pid: int) -> list[int]:
    """All processes below one; each of its threads may have started some."""
    direct = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            direct += [int(child) for child in listing.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
    return [*direct, *(below for child in direct for below in descendants(child))]


def test_a_reader_that_has_seen_enough_is_no_error(plain: Path) -> None:
    """`squidbot tools list | head -1` is how people look."""
    process = subprocess.Popen(
        [sys.executable, "-m", "squidbot", "tools", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    assert process.wait(20) == 0
