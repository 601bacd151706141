"""`squidbot agent` and `squidbot models`, with a model that follows a script."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Squidbot, write_settings
from tests.fixtures.running import plain_entry

pytestmark = pytest.mark.requirement("G-02")


@pytest.fixture(autouse=True)
def no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model of this machine is found by chance."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")


def script(folder: Path, *turns: dict[str, Any], name: str = "script.json") -> str:
    (folder / name).write_text(json.dumps({"turns": turns}))
    return f"scripted:{folder / name}"


def asks(*calls: tuple[str, Any], text: str = "") -> dict[str, Any]:
    return {"text": text, "calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}


ECHO = ("mcp_plain_echo", {"text": "hello"})


def test_stdout_holds_the_answer_alone_and_each_call_is_one_line_beside_it(
    squidbot: Squidbot, plain: Path, folder: Path
) -> None:
    """So that it pipes."""
    model = script(folder, asks(ECHO, ("mcp_plain_nothing", {}), text="Let me see."), {"text": "It said hello."})
    ran = squidbot("agent", "-m", "Echo hello.", "--model", model)
    assert (ran.code, ran.out) == (0, "It said hello.\n")
    lines = ran.err.splitlines()
    assert sum(line.startswith("      ok  mcp_plain_echo {") for line in lines) == 1
    assert sum(line.startswith(" refused  mcp_plain_nothing {}") for line in lines) == 1
    assert lines[-1].startswith("2 steps, 2 calls, ")


def test_details_are_shown_on_request(squidbot: Squidbot, plain: Path, folder: Path) -> None:
    """What a tool answered is of interest now and then."""
    model = script(folder, asks(ECHO), {"text": "Done."})
    assert "          hello" in squidbot("agent", "-v", "-m", "x", "--model", model).err


def test_one_document_for_programs(squidbot: Squidbot, plain: Path, folder: Path) -> None:
    """Every step, what it used, and where it is recorded."""
    model = script(folder, asks(ECHO), {"text": "It said hello."})
    document = squidbot("agent", "-m", "Echo.", "--model", model, "--json").json
    assert list(document) == ["answer", "role", "model", "steps", "usage", "stop_reason", "records"]
    assert (document["answer"], document["role"], document["stop_reason"]) == ("It said hello.", "operator", "answered")
    [call] = document["steps"][0]["calls"]
    assert (call["server"], call["tool"], call["arguments"], call["outcome"]) == ("plain", "echo", ECHO[1], "ok")
    assert document["records"] == [call["record"]]
    shown = squidbot("audit", "show", call["record"], "--json").json
    assert (shown["origin"], shown["tool"], shown["outcome"]) == ("agent", "echo", "ok")
    assert document["usage"]["total"] > 0


def test_one_event_a_line_for_programs_that_watch(squidbot: Squidbot, plain: Path, folder: Path) -> None:
    """Programs that show an agent at work cannot wait for its end."""
    model = script(folder, asks(ECHO), {"text": "It said hello."})
    ran = squidbot("agent", "-m", "Echo.", "--model", model, "--json-stream")
    events = [json.loads(line) for line in ran.out.splitlines()]
    kinds = [event["event"] for event in events]
    assert kinds == ["usage", "call", "result", "text", "text", "text", "usage", "done"]
    assert events[-1] == {"event": "done", "stop_reason": "answered", "answer": "It said hello.", "error": None}


@pytest.mark.parametrize("arguments", [("-m", "x"), ("-m", "x", "--model", "openai:x"), ("-m", " ")])
def test_the_last_event_says_that_it_is_over_even_if_nothing_began(
    squidbot: Squidbot, plain: Path, arguments: tuple[str, ...]
) -> None:
    """A program that reads events must not be left waiting for one that never comes."""
    ran = squidbot("agent", *arguments, "--json-stream")
    [event] = [json.loads(line) for line in ran.out.splitlines()]
    assert (ran.code, event["event"], event["stop_reason"]) == (2, "done", "error")
    assert f"error: {event['error']}" in ran.err
    assert "hint:" in ran.err


@pytest.mark.requirement("E-05")
@pytest.mark.parametrize("form", ["--json", "--json-stream"])
def test_no_form_of_an_answer_shows_a_secret(
    squidbot: Squidbot, folder: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """A model may say what it was told by a page that somebody else wrote; programs keep what they read."""
    monkeypatch.setenv("CANARY", "canary-secret-7531")
    write_settings(folder, {"plain": {**plain_entry(), "env": {"KEY": "${CANARY}"}}})
    call = ("mcp_plain_echo", {"text": "canary-secret-7531"})
    model = script(folder, asks(call), {"text": "It is canary-secret-7531."})
    ran = squidbot("agent", "-m", "x", "--model", model, form)
    assert ran.code == 0
    assert "canary" not in ran.out
    assert "It is [redacted:" in ran.out


@pytest.mark.requirement("G-08")
def test_progress_is_an_event_for_programs_and_no_part_of_any_answer(
    squidbot: Squidbot, world: Path, folder: Path
) -> None:
    """A program can show it; a pipe is not disturbed by it, and the model never reads it."""
    model = script(folder, asks(("mcp_world_progress", {"steps": 3})), {"text": "Done."})
    ran = squidbot("agent", "-m", "x", "--model", model, "--json-stream")
    events = [json.loads(line) for line in ran.out.splitlines()]
    kinds = [event["event"] for event in events]
    told = [event for event in events if event["event"] == "progress"]
    assert kinds.index("call") < kinds.index("progress")
    assert len(kinds) - kinds[::-1].index("progress") == kinds.index("result")
    call = events[kinds.index("call")]
    last = {"progress": 3.0, "total": 3.0, "message": "step 3"}
    assert told[-1] == {"event": "progress", "step": 1, "id": call["id"], **last}
    assert events[kinds.index("result")]["result"] == "3 steps"
    ran = squidbot("agent", "-m", "x", "--model", model)
    assert (ran.out, "step 3" in ran.err) == ("Done.\n", False)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [(("--max-steps", "2"), "steps"), ((), "repeats")],
)
def test_a_run_that_reaches_a_bound_says_so_and_fails(
    squidbot: Squidbot, plain: Path, folder: Path, arguments: tuple[str, ...], reason: str
) -> None:
    """A script that goes on must not take half an answer for a whole one."""
    model = script(folder, *[asks(ECHO)] * 20)
    ran = squidbot("agent", "-m", "x", "--model", model, "--json", *arguments)
    assert (ran.code, ran.json["stop_reason"]) == (1, reason)
    ran = squidbot("agent", "-m", "x", "--model", model, *arguments)
    assert (ran.code, ran.out) == (1, "")
    assert "and was ended" in ran.err


@pytest.mark.requirement("A-05")
def test_an_agent_of_ones_own_has_its_words_its_role_and_its_servers(
    squidbot: Squidbot, plain: Path, folder: Path
) -> None:
    """agent.yaml: who it is, what it is told, and which servers it has."""
    model = script(folder, asks(("mcp_mine_echo", {"text": "a"}), ("mcp_plain_echo", {"text": "b"})), {"text": "Done."})
    (folder / "words.md").write_text("Be kind.")
    entry = plain_entry()
    (folder / "agent.yaml").write_text(
        f"name: Tess\ndescription: tries things\ninstructions: {{file: words.md}}\nmodel: {model}\nrole: operator\n"
        f"tools:\n  - type: mcp\n    name: mine\n    command: {entry['command']}\n    args: {json.dumps(entry['args'])}\n"
    )
    document = squidbot("agent", "-m", "x", "--agent", "agent.yaml", "--json").json
    # The settings' own server is not among the agent's tools.
    assert [(call["name"], call["outcome"]) for call in document["steps"][0]["calls"]] == [
        ("mcp_mine_echo", "ok"),
        ("mcp_plain_echo", "refused"),
    ]


@pytest.mark.requirement("A-05", "A-04")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("instruction: x", "did you mean 'instructions'"),
        ("instructions: {file: none.md}", "'none.md' cannot be read"),
        ("model: {name: x, api_key: '${NOBODY_SET_THIS}'}", "'NOBODY_SET_THIS' is not set"),
        ("tools: [{type: mcp, name: x, url: 'ftp://x'}]", "tools.x.url"),
        ("tools: [{type: mcp, server: plain, deny: [echo]}]", "tools[0].deny: has no effect: 'plain' is a server of"),
        ("max_steps: 0\ntools: [{type: mcp, server: plain, denny: []}]", "(line 1)\n  tools[0].denny"),
        ("role: []", "role"),
    ],
)
def test_a_wrong_agent_file_is_reported_like_wrong_settings(
    squidbot: Squidbot, plain: Path, folder: Path, text: str, words: str
) -> None:
    """With its path, what was found and what is allowed."""
    (folder / "agent.yaml").write_text(text)
    ran = squidbot("agent", "-m", "x", "--agent", "agent.yaml", "--json")
    assert (ran.code, ran.error["code"]) == (2, "settings")
    assert words.lower() in ran.error["message"].lower()
    assert squidbot("agent", "-m", "x", "--agent", "nowhere.yaml").code == 2


def test_a_session_goes_on_where_it_was_and_belongs_to_its_role(squidbot: Squidbot, plain: Path, folder: Path) -> None:
    """What one role has read is not for another."""
    model = script(folder, asks(ECHO), {"text": "One."}, {"text": "Two."}, {"text": "Three."})
    first = squidbot("agent", "-m", "1", "--model", model, "--session", "s1")
    second = squidbot("agent", "-m", "2", "--model", model, "--session", "s1", "--json")
    third = squidbot("agent", "-m", "3", "--model", model, "--resume")
    assert (first.out, second.json["answer"], third.out) == ("One.\n", "Two.", "Three.\n")
    assert second.json["session"] == "s1"
    other = squidbot("agent", "-m", "4", "--model", model, "--session", "s1", "--role", "tech_lead", "--json")
    assert (other.code, "held in the role 'operator'" in other.error["message"]) == (2, True)
    missing = squidbot("agent", "-m", "4", "--model", model, "--session", "s2", "--resume", "--json")
    assert (missing.code, missing.error["hint"]) == (2, "There are: s1.")
    assert squidbot("agent", "-m", "4", "--model", model, "--session", "../x").code == 2
    [kept] = (Path(os.environ["SQUIDBOT_HOME"]) / "sessions").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("-m", "hi"), 2, "there is no language model"),
        (("-m", "hi", "--model", "gpt-x"), 2, "nobody here knows a model 'gpt-x'"),
        (("-m", "hi", "--model", "openai:gpt-x"), 2, "needs a key"),
        (("-m", "hi", "--model", "anthropic:claude-x"), 2, "needs a key"),
        (("-m", "hi", "--model", "ollama:x"), 1, "cannot be reached"),
        (("-m", "hi", "--model", "scripted:none.json"), 2, "none.json"),
        (
            (
                "-m",
                "  ",
            ),
            2,
            "the request is empty",
        ),
        (("-m", "hi", "--json-stream"), 2, "exclude each other"),
    ],
)
def test_what_is_missing_is_said_with_the_next_step_and_nothing_is_recorded(
    squidbot: Squidbot, plain: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    """No key, no model, nobody there: a message, an exit code, no half record."""
    ran = squidbot("agent", *arguments, "--json")
    assert (ran.code, words in ran.error["message"]) == (code, True), ran
    assert squidbot("audit", "tail", "--json").json == []


def test_three_ways_to_get_a_model_are_named(squidbot: Squidbot, plain: Path) -> None:
    """Whoever has none must not have to search."""
    hint = squidbot("agent", "-m", "hi", "--json").error["hint"]
    assert "ollama pull" in hint
    assert "ANTHROPIC_API_KEY" in hint
    assert "model.base_url" in hint


@pytest.mark.parametrize("role", ["nobody", "admin"])
def test_an_unknown_role_runs_nothing(squidbot: Squidbot, plain: Path, folder: Path, role: str) -> None:
    """Never everything for somebody unknown."""
    ran = squidbot("agent", "-m", "x", "--role", role, "--model", script(folder, {"text": "x"}), "--json")
    assert (ran.code, ran.error["code"]) == (2, "unknown_role")


@contextmanager
def ollama(*names: str) -> Iterator[str]:
    """What Ollama answers when it is asked what it has; the last one cannot call tools."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({"models": [{"name": name} for name in names]} if self.path == "/api/tags" else {"data": []})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            able = asked.get("model") != names[0]
            self._answer({"capabilities": ["completion", *(["tools"] if able else [])]})

        def _answer(self, document: Any) -> None:
            body = json.dumps(document).encode()
            self.send_response(200 if self.path.startswith("/api/") else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_an_ollama_on_this_machine_is_found_by_itself(
    squidbot: Squidbot, plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No account, no key, no settings: and it works, with a model that can call tools."""
    with ollama("old:1b", "able:7b") as host:
        monkeypatch.setenv("OLLAMA_HOST", host)
        ran = squidbot("agent", "-m", "hi")
        listed = squidbot("models", "list", "--json").json
    assert "Model: able:7b of the Ollama on this machine" in ran.err
    assert "model 'able:7b'" in ran.err
    assert ran.code == 2
    assert [(row["name"], row["source"]) for row in listed] == [("able:7b", "Ollama"), ("old:1b", "Ollama")]


def test_a_key_in_the_environment_is_enough_and_is_never_shown(
    squidbot: Squidbot, plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One variable, and the agent has a model; the key itself appears nowhere."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-canary-123456")
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-canary-123456")
    ran = squidbot("models", "list")
    assert "claude-sonnet-4-5" in ran.out
    assert "openrouter.ai" in ran.out
    assert "canary" not in ran.out + ran.err


def test_a_model_is_tried_with_a_call(squidbot: Squidbot, plain: Path, folder: Path) -> None:
    """Before an agent is let loose, one should know that its model calls tools."""
    able = script(folder, asks(("tell_number", {"number": 7})))
    mute = script(folder, {"text": ""}, name="mute.json")
    words = script(folder, {"text": "Seven!"}, name="words.json")
    assert squidbot("models", "test", "--model", able, "--json").json["tools"] is True
    assert "called no tool" in squidbot("models", "test", "--model", words).out
    assert squidbot("models", "test", "--model", mute).code == 1
    assert squidbot("models", "test").code == 2


def test_many_tools_become_a_search(squidbot: Squidbot, folder: Path) -> None:
    """agent.max_tools: over it, the model searches."""
    path = write_settings(folder, {"plain": plain_entry()})
    path.write_text(json.dumps({**json.loads(path.read_text()), "agent": {"max_tools": 1}}))
    calls = [("search_tools", {"query": "echo text"}), ("call_tool", {"name": "mcp_plain_echo", "arguments": ECHO[1]})]
    document = squidbot("agent", "-m", "x", "--model", script(folder, asks(*calls), {"text": "Done."}), "--json").json
    found, called = document["steps"][0]["calls"]
    assert "mcp_plain_echo" in found["result"]
    assert (called["name"], called["result"]) == ("mcp_plain_echo", "hello")


def test_help_loads_no_model_library(program: Squidbot) -> None:
    """Help is read while thinking; it must come at once."""
    code = (
        "import sys; from squidbot.cli.app import main; main(['agent', '--help']); "
        "heavy = {'openai', 'anthropic', 'mcp', 'pydantic', 'httpx2'} & set(sys.modules); sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--max-steps" in done.stdout
