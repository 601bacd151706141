"""The same commands on a real terminal."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import write_settings
from tests.fixtures.running import plain_entry

COLOR = re.compile(r"\x1b\[[0-9;]*m")
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(
    *arguments: str,
    columns: int = 100,
    environment: dict[str, str] | None = None,
    meanwhile: Callable[[str], None] = lambda _: None,
) -> tuple[int, str]:
    """A command's exit code and everything that its terminal received; `meanwhile` sees all of it so far."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(
        [sys.executable, "-m", "squidbot", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**inherited, "TERM": "xterm-256color", **(environment or {})},
    )
    os.close(theirs)
    received = b""
    while chunk := _read(ours):
        received += chunk
        meanwhile(received.decode(errors="replace"))
    os.close(ours)
    return process.wait(20), received.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # what Linux says when the last one on the other side has left
        return b""


def test_a_terminal_gets_tables_and_colour(plain: Path) -> None:
    """For eyes: a rule under the headings, names in colour, and a word about the cost."""
    code, shown = on_terminal("tools", "list")
    assert code == 0
    assert COLOR.search(shown)
    plain_text = ESCAPE.sub("", shown)
    assert re.search(r"name +description +\n─+\nmcp_plain_echo +Says the text again", plain_text)
    assert "2 tools of 1 server, about" in plain_text


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_that_wants_none_gets_no_escape_at_all(environment: dict[str, str], plain: Path) -> None:
    """NO_COLOR is a wish, a dumb terminal a fact."""
    code, shown = on_terminal("tools", "list", environment=environment)
    assert code == 0
    assert "\x1b" not in shown
    assert "NAME            DESCRIPTION\nmcp_plain_echo  Says the text again\n" in shown


def test_names_stay_whole_on_a_narrow_terminal(plain: Path) -> None:
    """A name is there to be copied; words may wrap."""
    _, shown = on_terminal("tools", "list", columns=30)
    assert "mcp_plain_echo" in ESCAPE.sub("", shown)


def test_a_foreign_text_cannot_play_with_the_terminal(folder: Path) -> None:
    """Names, descriptions, answers and last words all come from somebody else."""
    script = folder / "evil.py"
    text = Path(plain_entry()["args"][2]).read_text()
    script.write_text(text.replace('"Says the text again"', r'"\x1b]0;owned\x07[bold]not bold[/bold]\u202e"'))
    write_settings(folder, {"evil": {"command": sys.executable, "args": [str(script)]}})
    for command in (["tools", "list"], ["tools", "show", "echo"]):
        _, shown = on_terminal(*command)
        assert "\x1b]" not in shown
        assert "\\x1b]0;owned\\x07[bold]not bold[/bold]\\u202e" in ESCAPE.sub("", shown)
    _, shown = on_terminal("tools", "call", "echo", "--args", json.dumps({"text": "\x1b[2Jgone"}))
    assert shown.endswith("\\x1b[2Jgone\n")


@pytest.mark.requirement("G-08")
def test_progress_is_a_bar_that_goes_away(world: Path) -> None:
    """While it runs it is worth a line, afterwards none."""
    code, shown = on_terminal("tools", "call", "progress", "steps=5")
    assert code == 0
    assert "5/5" in shown
    assert shown.rstrip().endswith("5 steps")


@pytest.mark.requirement("G-08", "G-02")
def test_an_agents_call_shows_how_far_it_is_while_it_runs(world: Path, folder: Path) -> None:
    """Whoever watches an agent wait must see that the tool works; once it is over there is its line alone."""
    gate = folder / "gate"
    asked = {"name": "mcp_world_progress", "arguments": {"steps": 4, "gate": str(gate)}}
    script = folder / "script.json"
    script.write_text(json.dumps({"turns": [{"text": "", "calls": [asked]}, {"text": "It is done."}]}))

    def meanwhile(shown: str) -> None:
        # Only then does the call go on: without a bar it would never end.
        if re.search(r"mcp_world_progress: step [12].* [12]/4 ", ESCAPE.sub("", shown)):
            gate.touch()

    code, shown = on_terminal("agent", "-m", "x", "--model", f"scripted:{script}", meanwhile=meanwhile)
    assert code == 0
    assert gate.exists()
    over = shown.index("ok\x1b")
    gone = shown.rindex("\x1b[2K", 0, over)
    assert "step" not in shown[gone:over]
    assert re.search(r"ok +mcp_world_progress \{.*\n\r?It is done\.", ESCAPE.sub("", shown[gone:]), re.DOTALL)


@pytest.mark.requirement("G-02")
def test_who_waits_for_a_model_sees_that_it_is_at_work(plain: Path, folder: Path) -> None:
    """Models take their time, and a terminal on which nothing moves looks like one that hangs; the words then stand alone."""
    script = folder / "script.json"
    script.write_text(json.dumps({"turns": [{"text": "It is done.", "wait": 0.5}]}))
    code, shown = on_terminal("agent", "-m", "x", "--model", f"scripted:{script}")
    assert code == 0
    gone = shown.rindex("\x1b[2K")
    assert "Thinking…" in shown[:gone]
    assert ESCAPE.sub("", shown[gone:]).startswith("It is done.\n1 step, 0 calls")
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


def test_structured_answers_are_coloured_json(folder: Path) -> None:
    """Keys and values are told apart at a glance, and what is in them stays inert."""
    script = folder / "structured.py"
    text = Path(plain_entry()["args"][2]).read_text()
    script.write_text(text.replace("return _said(text)", 'return {"content": [], "structuredContent": {"said": text}}'))
    write_settings(folder, {"s": {"command": sys.executable, "args": [str(script)]}})
    _, shown = on_terminal("tools", "call", "echo", "--args", json.dumps({"text": "ü\x9b2J[red]x"}))
    assert COLOR.search(shown)
    assert '"said": "ü\\x9b2J[red]x"' in ESCAPE.sub("", shown)


def test_an_error_is_red_and_its_hint_is_beside_it(plain: Path) -> None:
    """What went wrong catches the eye first, what to do second."""
    code, shown = on_terminal("tools", "call", "ecko")
    assert code == 2
    assert "\x1b[31m\x1b[1merror:\x1b[0m unknown tool 'ecko'" in shown
    assert "hint:\x1b[0m  Did you mean 'echo'" in shown


def test_the_doctor_is_readable(plain: Path) -> None:
    """The picture that people paste into a question."""
    code, shown = on_terminal("doctor")
    assert code == 0
    text = ESCAPE.sub("", shown)
    assert re.search(r"settings  \S+squidbot.json\nstate     \S+\n\nserver ", text)
    assert "\x1b[32m" in shown
    assert text.rstrip().endswith("ok: nothing is wrong.")


def test_json_on_a_terminal_is_json_alone(plain: Path) -> None:
    """No colour, no spinner's remains: it may be selected and pasted."""
    code, shown = on_terminal("servers", "list", "--json")
    assert code == 0
    assert json.loads(shown)[0]["name"] == "plain"


@pytest.mark.parametrize(
    "command", [["audit", "export"], ["audit", "export", "--format", "csv"], ["--json", "audit", "tail"]]
)
@pytest.mark.requirement("E-06")
def test_what_a_record_has_of_foreign_words_moves_no_cursor(command: list[str], plain: Path) -> None:
    """JSON escapes some control characters and leaves others as they are."""
    on_terminal("tools", "call", "mcp_plain_echo", "--args", json.dumps({"text": "\x1b[31m \x9b31m \u202edesrever"}))
    code, shown = on_terminal(*command)
    assert code == 0
    assert "echo" in shown
    assert [character for character in "\x9b\u202e" if character in shown] == []
