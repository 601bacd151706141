"""The git server as a program: what it wants to know, what it refuses, how it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.servers.gitting import commit, executable, git, made, remote_of

pytestmark = pytest.mark.requirement("F-01")

COMMAND = [sys.executable, "-m", "squidbot.servers.git"]
HELLO = {
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with one commit and a remote."""
    folder = made(tmp_path / "shop")
    commit(folder, {"cart.py": "one\n"}, "Begin")
    remote_of(folder)
    return folder


def run(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], input="", capture_output=True, text=True, timeout=30, check=False, **options
    )


def send(process: subprocess.Popen[str], **message: Any) -> None:
    assert process.stdin
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    process.stdin.flush()


def greeted(folder: Path) -> subprocess.Popen[str]:
    """A server that has answered, so that it is past its start."""
    process = subprocess.Popen([*COMMAND, "--repository", str(folder)], stdin=-1, stdout=-1, stderr=-1, text=True)
    assert process.stdout
    send(process, **HELLO)
    assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "squidbot-git"
    send(process, method="notifications/initialized")
    return process


def waiting(probe: Callable[[], object], *, within: float = 20) -> None:
    deadline = time.monotonic() + within
    while not probe():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def is_alive(pid: str) -> bool:
    """Not so a process that ended and that nobody has asked about yet: it has no command line any more."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_without_a_repository_it_says_how_to_name_one() -> None:
    """A server that opens whatever it finds is what this one is not."""
    ended = run()
    assert ended.returncode == 2
    assert ended.stderr == "git: no repository is named\nName those that may be used: --repository PATH\n"


def test_what_is_no_repository_is_a_usage_error_in_words(tmp_path: Path, shop: Path) -> None:
    """Each with what to name instead."""
    (tmp_path / "file").touch()
    (tmp_path / "plain").mkdir()
    (shop / "docs").mkdir()
    (tmp_path / "empty" / ".git").mkdir(parents=True)
    (tmp_path / "forged").mkdir()
    (tmp_path / "forged" / ".git").write_text(f"gitdir: {shop}/.git\n")
    reasons = {
        tmp_path / "none": "No such file or directory",
        tmp_path / "file": "Not a directory",
        tmp_path / "plain": "there is no .git in it; make one with: git init",
        tmp_path / "shop.git": "it is bare; name a clone of it",
        shop / "docs": f"it is inside one, '{shop}': name that",
        tmp_path / "empty": "its .git holds no repository",
        tmp_path / "forged": "a repository that does not know it",
    }
    for path, reason in reasons.items():
        ended = run("--repository", shop, "--repository", path)
        assert ended.returncode == 2
        assert f"git: cannot use the repository '{path}'" in ended.stderr
        assert reason in ended.stderr
        assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("seconds", ["x", "0", "-1", "inf", "nan"])
def test_a_deadline_that_is_none_is_a_usage_error(shop: Path, seconds: str) -> None:
    """Waiting for ever is not on offer."""
    ended = run("--repository", shop, f"--deadline={seconds}")
    assert ended.returncode == 2
    assert f"'{seconds}' is no number of seconds above 0" in ended.stderr


def test_a_machine_without_git_is_told_so(shop: Path, tmp_path: Path) -> None:
    """Before a tool is called, not when."""
    ended = run("--repository", shop, env=os.environ | {"PATH": str(tmp_path)})
    assert ended.returncode == 2
    assert "there is no program 'git' on this machine" in ended.stderr


def test_help_comes_with_an_example_and_without_loading_the_protocol() -> None:
    """Help that takes a second is not asked for twice."""
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", *COMMAND[1:], "--help"], capture_output=True, text=True, check=True
    )
    assert "Example: python -m squidbot.servers.git --repository" in ended.stdout
    assert not {"mcp", "mcp_types", "pydantic"} & {
        line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()
    }


def test_the_end_of_its_input_ends_the_server_quietly(shop: Path) -> None:
    """A client that is gone leaves no process behind."""
    process = greeted(shop)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, "", "")


def test_a_change_that_has_begun_is_finished_before_a_signal_ends_the_server(shop: Path) -> None:
    """Half a push is for a person to clean up."""
    bare = shop.with_name("shop.git")
    os.mkfifo(bare / "gate")
    executable(bare / "hooks" / "pre-receive", "touch begun", "read line < gate")
    mine = commit(shop, {"cart.py": "two\n"})
    with greeted(shop) as process:
        send(process, id=2, method="tools/call", params={"name": "git_push", "arguments": {}})
        waiting((bare / "begun").exists)
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
        (bare / "gate").write_text("go\n")
        assert process.wait(timeout=20) == 0
        assert process.stderr
        assert process.stderr.read() == ""
    assert git(bare, "rev-parse", "main") == mine


@pytest.mark.parametrize("end", ["input", "terminate"])
def test_a_look_that_would_go_on_for_long_does_not_hold_up_the_end_nor_outlive_it(
    shop: Path, tmp_path: Path, end: str
) -> None:
    """Whoever stops a server means all of it, and means now."""
    pid = tmp_path / "pid"
    git(
        shop,
        "config",
        "--global",
        "filter.slow.clean",
        str(executable(tmp_path / "slow", f"echo $$ > {pid}", "sleep 60")),
    )
    (shop / ".gitattributes").write_text("* filter=slow\n")
    (shop / "cart.py").write_text("two\n")
    with greeted(shop) as process:
        send(process, id=2, method="tools/call", params={"name": "git_status", "arguments": {}})
        waiting(lambda: pid.exists() and pid.read_text())
        slow = pid.read_text().strip()
        assert process.stdin
        if end == "input":
            process.stdin.close()
        else:
            process.terminate()
        assert process.wait(timeout=20) == 0
    waiting(lambda: not is_alive(slow))
