"""Servers that ask back while an agent works: its model within a budget, the person at the terminal, its workspace."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Squidbot, write_settings
from tests.cli.test_agent import asks, script
from tests.fixtures.needs import peer
from tests.fixtures.running import ROOT, heed_interrupts, world_command
from tests.peers.install import node_program

pytestmark = [pytest.mark.requirement("G-05"), pytest.mark.deadline(90)]
_AT_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
"""Makes the terminal the program's own, so that Ctrl-C reaches it."""
ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


def world(folder: Path, era: str, **more: Any) -> None:
    command, *args = world_command("stdio")
    write_settings(folder, {"world": {"command": command, "args": args, "cwd": str(ROOT), "protocol": era, **more}})


def everything(folder: Path, **more: Any) -> None:
    command, *args = peer(lambda: node_program("@modelcontextprotocol/server-everything"))
    write_settings(folder, {"everything": {"command": command, "args": [*args, "stdio"], **more}})


def results(ran: Any) -> list[str]:
    return [call["result"] for step in ran.json["steps"] for call in step["calls"]]


@ERAS
@pytest.mark.parametrize("allowed", [True, False])
def test_a_server_is_answered_by_the_model_only_if_it_may_ask(
    squidbot: Squidbot, folder: Path, era: str, allowed: bool
) -> None:
    """In the handshake era it is a request, in the stateless one an input_required: the same budget rules both."""
    world(folder, era, **({"sampling": {"requests": 1}} if allowed else {}))
    model = script(
        folder, asks(("mcp_world_think", {}), text="forty-two"), asks(("mcp_world_think", {})), {"text": "Done."}
    )
    ran = squidbot("agent", "-m", "x", "--model", model, "--json")
    first, second = results(ran)
    assert ("forty-two" in first) == allowed
    assert "forty-two" not in second
    questions = [row for row in squidbot("audit", "tail", "-n", "50", "--json").json if row["kind"] == "question"]
    outcomes = [(row["tool"], row["outcome"]) for row in questions]
    assert outcomes == [("sampling", "ok" if allowed else "refused"), ("sampling", "refused")]
    assert ("used up its 1 requests" if allowed else "do not allow") in questions[-1]["error_message"]


@ERAS
def test_without_a_terminal_a_person_is_not_asked(squidbot: Squidbot, folder: Path, era: str) -> None:
    """Declined, not accepted in somebody's name, and not waited for."""
    world(folder, era)
    ran = squidbot(
        "agent", "-m", "x", "--model", script(folder, asks(("mcp_world_ask", {})), {"text": "Done."}), "--json"
    )
    assert "decline" in results(ran)[0]


def test_the_workspace_is_the_root(squidbot: Squidbot, folder: Path) -> None:
    """Servers may know in which folder somebody works."""
    world(folder, "legacy")
    model = script(folder, asks(("mcp_world_roots", {})), {"text": "Done."})
    assert folder.as_uri() in results(squidbot("agent", "-m", "x", "--model", model, "--json"))[0]


@ERAS
def test_the_person_at_the_terminal_is_asked(folder: Path, era: str) -> None:
    """A form, field by field, in the middle of a call."""
    world(folder, era)
    model = script(folder, asks(("mcp_world_ask", {})), {"text": "Done."})
    code, shown = converse(["agent", "-v", "-m", "x", "--model", model], [("[y/N]", "y"), ("olour", "green")])
    assert code == 0, shown
    assert "Server 'world' asks:" in shown
    assert "accept" in shown
    assert "green" in shown


def test_a_question_is_asked_where_it_is_seen_and_not_where_the_answer_goes(folder: Path) -> None:
    """Whoever writes the answer to a file must see what they are asked, and find nothing but the answer in it."""
    world(folder, "modern")
    model = script(folder, asks(("mcp_world_ask", {})), {"text": "Done."})
    into = folder / "answer"
    code, shown = converse(
        ["agent", "-v", "-m", "x", "--model", model], [("[y/N]", "y"), ("olour", "green")], into=into
    )
    assert (code, into.read_text()) == (0, "Done.\n"), shown
    assert "accept: {'colour': 'green'}" in shown


@pytest.mark.requirement("G-02")
def test_a_conversation_goes_on_until_the_person_leaves_and_ctrl_c_ends_a_turn_only(folder: Path) -> None:
    """History, a turn that is stopped, another one that is not, and the way out."""
    world(folder, "modern")
    slow = asks(("mcp_world_slow", {"seconds": 60, "token": "t"}), text="This takes long.")
    model = script(folder, {"text": "Hello."}, slow, {"text": "Back again."})
    steps = [
        ("> ", "hi"),
        ("written", ""),
        ("> ", "work"),
        ("This takes long.\r\n", "\x03"),
        ("Stopped.", ""),
        ("> ", "again"),
    ]
    code, shown = converse(["agent", "--model", model], [*steps, ("Back again.", ""), ("> ", "\x04")])
    assert code == 0, shown
    assert "Hello." in shown
    ran = subprocess.run(
        [sys.executable, "-m", "squidbot", "audit", "tail", "--json"],
        capture_output=True,
        text=True,
        check=True,
        timeout=40,
    )
    assert [(row["tool"], row["outcome"]) for row in json.loads(ran.stdout)] == [("slow", "cancelled")]


@pytest.mark.requirement("G-02")
@pytest.mark.parametrize("awaited", ["> ", "This takes long.\r\n"])
def test_a_conversation_that_is_killed_ends(folder: Path, awaited: str) -> None:
    """SIGTERM is for the program, not for a turn of it: whoever shuts a machine down does not ask twice."""
    world(folder, "modern")
    model = script(folder, asks(("mcp_world_slow", {"seconds": 60, "token": "t"}), text="This takes long."))
    steps: list[tuple[str, str | signal.Signals]] = [("> ", "work"), (awaited, signal.SIGTERM)]
    code, shown = converse(["agent", "--model", model], steps[-1:] if awaited == "> " else steps)
    assert (code, "Stopped." in shown) == (130, False), shown
    assert "Traceback" not in shown


@pytest.mark.requirement("G-02", "G-08")
def test_ctrl_c_ends_a_request_with_130_and_a_closed_record(folder: Path) -> None:
    """A shell script sees that somebody stopped it, and the record sees what was stopped."""
    world(folder, "modern")
    model = script(folder, asks(("mcp_world_slow", {"seconds": 60, "token": "t"}), text="This takes long."))
    code, shown = converse(["agent", "-m", "x", "--model", model], [("This takes long.\r\n", "\x03")])
    assert code == 130, shown
    assert "cancelled  mcp_world_slow" in shown


@pytest.mark.requirement("G-02")
@pytest.mark.parametrize(("typed", "outcome"), [("y", "ok"), ("n", "refused")])
def test_the_person_decides_whether_data_may_walk_out(folder: Path, typed: str, outcome: str) -> None:
    """T10: at a terminal the third leg waits for somebody who knows whether it was meant."""
    world(folder, "modern", flows={"untrusted": ["witness"], "private": ["witness"], "egress": ["echo"]})
    model = script(
        folder, asks(("mcp_world_witness", {})), asks(("mcp_world_echo", {"text": "out"})), {"text": "Done."}
    )
    code, shown = converse(["agent", "-m", "x", "--model", model], [("Let it happen? [y/N]", typed)])
    assert code == 0, shown
    assert "Careful: 'mcp_world_echo' writes where others read" in shown
    assert f"{outcome}  mcp_world_echo" in shown


@pytest.mark.peers
@pytest.mark.parametrize("budget", [None, {"requests": 1, "tokens": 5_000}, {"requests": 5, "tokens": 1}])
def test_server_everything_asks_the_model_within_its_budget(
    squidbot: Squidbot, folder: Path, budget: dict[str, int] | None
) -> None:
    """Somebody else's server, of the handshake era: allowed, not allowed, over its budget."""
    everything(folder, **({"sampling": budget} if budget else {}))
    call = ("mcp_everything_trigger-sampling-request", {"prompt": "Say something", "maxTokens": 50})
    model = script(folder, asks(call, text="a wise word"), asks(call), {"text": "Done."})
    ran = squidbot("agent", "-m", "x", "--model", model, "--json")
    first, second = results(ran)
    answered = budget is not None and budget["tokens"] > 1
    assert ("a wise word" in first) == answered, first
    assert "a wise word" not in second


@pytest.mark.peers
def test_server_everything_asks_the_person(squidbot: Squidbot, folder: Path) -> None:
    """Its form has every kind of field; without a terminal it is declined, at one it is asked."""
    everything(folder)
    model = script(folder, asks(("mcp_everything_trigger-elicitation-request", {})), {"text": "Done."})
    ran = squidbot("agent", "-m", "x", "--model", model, "--json")
    assert "declin" in results(ran)[0].lower()
    titles = ["with default", "email format", "uri format", "date format", "Integer", "Number in range"]
    titles += ["Untitled Single", "Untitled Multiple", "Titled Single", "Titled Multiple", "Legacy"]
    typed = [("[y/N]", "y"), ("String", "Ann of Ancona"), ("Boolean", "y"), *((title, "\n") for title in titles)]
    code, shown = converse(["agent", "-v", "-m", "x", "--model", model], typed)
    assert code == 0, shown
    assert "Server 'everything' asks:" in shown
    assert "Name: Ann of Ancona" in shown


def converse(
    arguments: Sequence[str], exchange: Sequence[tuple[str, str | signal.Signals]], *, into: Path | None = None
) -> tuple[int, str]:
    """A command on a terminal, where somebody types each answer, or kills it, once they have seen what is before it.

    Its stdout goes `into` a file, if there is one.
    """
    ours, theirs = pty.openpty()
    answers = theirs if into is None else os.open(into, os.O_WRONLY | os.O_CREAT)
    process = subprocess.Popen(
        [sys.executable, "-c", _AT_TERMINAL, sys.executable, "-m", "squidbot", *arguments],
        stdin=theirs,
        stdout=answers,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=heed_interrupts,  # noqa: PLW1509 - no thread of ours runs yet
        env={**os.environ, "TERM": "dumb", "NO_COLOR": "1"},
    )
    for descriptor in {theirs, answers}:
        os.close(descriptor)
    late = threading.Timer(70, process.kill)
    late.start()
    shown, seen = "", 0
    try:
        for awaited, typed in exchange:
            while awaited not in shown[seen:]:
                shown += os.read(ours, 65_536).decode(errors="replace")
            seen = shown.index(awaited, seen) + len(awaited)
            if isinstance(typed, signal.Signals):
                _until_it_waits(process.pid)
                process.send_signal(typed)
            elif typed:
                os.write(ours, (typed if typed < " " else f"{typed}\n").encode())
        while chunk := os.read(ours, 65_536):
            shown += chunk.decode(errors="replace")
    except OSError:  # what Linux says when the last one on the other side has left
        pass
    finally:
        late.cancel()
        code = process.wait(20)
        os.close(ours)
    return code, shown


def _until_it_waits(pid: int) -> None:
    """Its main thread sleeps, look after look: what it has shown is a prompt by now, and not one that is just being made."""
    asleep, deadline = 0, time.monotonic() + 20
    while asleep < 10 and time.monotonic() < deadline:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if state == "S" else 0
        time.sleep(0.01)


@ERAS
def test_a_tool_that_is_called_by_hand_may_ask_the_person_too(folder: Path, squidbot: Squidbot, era: str) -> None:
    """Whoever calls a tool at a terminal is there to be asked; whoever pipes is not."""
    world(folder, era)
    code, shown = converse(["tools", "call", "world/ask"], [("[y/N]", "y"), ("olour", "green")])
    assert code == 0, shown
    assert "accept: {'colour': 'green'}" in shown
    assert "decline" in squidbot("tools", "call", "world/ask").out
