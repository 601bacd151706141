"""The filesystem server as a program: how it starts, what it refuses, how it ends."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.requirement("F-04")

COMMAND = [sys.executable, "-m", "squidbot.servers.filesystem"]
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}


def run(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], input="", capture_output=True, text=True, timeout=30, check=False, **options
    )


def greeted(folder: Path) -> subprocess.Popen[str]:
    """A server that has answered, so that it is past its start."""
    process = subprocess.Popen([*COMMAND, str(folder)], stdin=-1, stdout=-1, stderr=-1, text=True)
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(HELLO) + "\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "squidbot-filesystem"
    return process


def children(pid: int) -> list[str]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [child for task in tasks for child in (task / "children").read_text().split()]


def is_alive(pid: str) -> bool:
    """Not so a process that ended and that nobody has asked about yet: it has no command line any more."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except (FileNotFoundError, ProcessLookupError):
        return False


def waiting(probe: Callable[[], object], *, within: float = 10) -> None:
    deadline = time.monotonic() + within
    while not probe():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_a_folder_that_does_not_exist_is_a_usage_error_in_words(tmp_path: Path) -> None:
    """Making it would hide a typing error behind an empty folder."""
    (tmp_path / "file").touch()
    for name, why in {"none": "No such file or directory", "file": "Not a directory"}.items():
        ended = run(tmp_path / name)
        assert ended.returncode == 2
        assert f"cannot use the folder '{tmp_path / name}': {why}" in ended.stderr
        assert "Traceback" not in ended.stderr
    assert not (tmp_path / "none").exists()


def test_without_a_folder_one_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """The default must work on a fresh machine, and be nobody else's to read."""
    state = tmp_path / "new" / "state"
    ended = run(env=os.environ | {"SQUIDBOT_HOME": str(state)})
    assert (ended.returncode, ended.stderr) == (0, "")
    for folder in (state / "workspace", state, state.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_without_a_home_of_squidbot_the_folder_is_in_the_users_state_folder(tmp_path: Path) -> None:
    """The place is the one that the rest of squidbot uses."""
    environment = {name: value for name, value in os.environ.items() if name != "SQUIDBOT_HOME"}
    assert run(env=environment | {"XDG_STATE_HOME": str(tmp_path)}).returncode == 0
    assert (tmp_path / "squidbot" / "workspace").is_dir()


@pytest.mark.parametrize("port", ["x", "-1", "65536", ""])
def test_a_port_that_is_none_is_a_usage_error(tmp_path: Path, port: str) -> None:
    """It is named, with what is allowed."""
    ended = run(tmp_path, f"--http={port}")
    assert ended.returncode == 2
    assert f"'{port}' is no port: 0 to 65535" in ended.stderr


def test_a_port_that_is_taken_is_said_to_be(tmp_path: Path) -> None:
    """The usual reason why a server does not come up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        ended = run(tmp_path, "--http", str(port))
    assert ended.returncode == 1
    assert f"cannot listen on port {port}: Address already in use" in ended.stderr


def test_help_comes_with_an_example_and_without_loading_the_protocol() -> None:
    """Help that takes a second is not asked for twice."""
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", *COMMAND[1:], "--help"], capture_output=True, text=True, check=True
    )
    assert "Example: python -m squidbot.servers.filesystem" in ended.stdout
    assert not {"mcp", "mcp_types", "pydantic"} & {
        line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()
    }


def test_the_end_of_its_input_ends_the_server_quietly(tmp_path: Path) -> None:
    """A client that is gone leaves no process behind."""
    process = greeted(tmp_path)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_quietly_though_its_input_is_open(tmp_path: Path, number: signal.Signals) -> None:
    """A person's Ctrl-C is no crash, and a supervisor's TERM no reason for a traceback."""
    with greeted(tmp_path) as process:
        process.send_signal(number)
        assert process.wait(timeout=10) == 0
        assert process.stderr
        assert process.stderr.read() == ""


@pytest.mark.parametrize("end", ["input", "terminate", "kill"])
@pytest.mark.parametrize("regex", [True, False])
def test_a_search_that_would_go_on_for_long_does_not_hold_up_the_end_nor_outlive_it(
    tmp_path: Path, end: str, regex: bool
) -> None:
    """Whoever stops a server means all of it, and means now."""
    (tmp_path / "trap").write_text("a" * 60 + "!" if regex else "\n" * 30_000_000)
    arguments = {"text": "(a+)+$" if regex else "none", "regex": regex}
    params = {"name": "search_files", "arguments": arguments}
    with greeted(tmp_path) as process:
        assert process.stdin
        for message in ({"method": "notifications/initialized"}, {"id": 2, "method": "tools/call", "params": params}):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            process.stdin.flush()
        if regex:
            waiting(lambda: children(process.pid))
        workers = children(process.pid)
        if end == "input":
            process.stdin.close()
        else:
            getattr(process, end)()
        assert process.wait(timeout=8) == (-signal.SIGKILL if end == "kill" else 0)
    waiting(lambda: not any(map(is_alive, workers)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_on_http_quietly(tmp_path: Path, number: signal.Signals) -> None:
    """The same promise over the other transport."""
    with subprocess.Popen([*COMMAND, str(tmp_path), "--http", "0"], stderr=-1, text=True) as process:
        assert process.stderr
        assert process.stderr.readline().startswith("filesystem: http://127.0.0.1:")
        process.send_signal(number)
        assert process.wait(timeout=10) == 0
        assert process.stderr.read() == ""


def test_what_lies_where_the_server_starts_is_never_imported_by_it(tmp_path: Path) -> None:
    """A client could write mcp.py into the folder and wait for the next start."""
    for name in ("mcp.py", "anyio.py"):
        (tmp_path / name).write_text("raise SystemExit('imported')")
    ended = run(tmp_path, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
