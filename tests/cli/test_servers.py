"""`squidbot servers` and `squidbot doctor`, against real servers."""

import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.adapters.mcp.sign_in_server import guarded_server
from tests.cli.conftest import Squidbot, starts, write_settings
from tests.fixtures.running import plain_entry

BROKEN = {"command": sys.executable, "args": ["-c", "import sys; sys.exit('the licence ran out')"], "max_retries": 0}
KEYS = {"name", "transport", "state", "tools", "protocol", "error"}


@pytest.mark.requirement("G-03")
def test_listing_servers_starts_nothing(plain: Path, folder: Path, squidbot: Squidbot) -> None:
    """Looking is free."""
    (server,) = squidbot("servers", "list", "--json").json
    assert server.keys() == KEYS
    assert (server["name"], server["transport"], server["state"]) == ("plain", "stdio", "idle")
    assert (server["tools"], server["error"]) == (None, None)
    assert starts(folder) == []
    assert squidbot("servers", "list").out.split() == [
        "NAME",
        "TRANSPORT",
        "STATE",
        "TOOLS",
        "PROTOCOL",
        "plain",
        "stdio",
        "idle",
    ]


def test_a_list_knows_how_many_tools_there_were_the_last_time(plain: Path, folder: Path, squidbot: Squidbot) -> None:
    """What is kept is worth showing."""
    squidbot("tools", "list")
    assert squidbot("servers", "list", "--json").json[0]["tools"] == 2
    assert len(starts(folder)) == 1


@pytest.mark.requirement("G-03", "B-06")
def test_testing_servers_starts_them_and_fails_with_the_reason(folder: Path, squidbot: Squidbot) -> None:
    """One that is broken among good ones: exit code 4, its last words, and the others' health."""
    write_settings(folder, {"good": plain_entry(), "bad": BROKEN, "off": {**BROKEN, "enabled": False}})
    ran = squidbot("servers", "test", "--json")
    assert ran.code == 4
    good, bad, off = ran.json
    assert all(server.keys() == KEYS for server in ran.json)
    assert (good["state"], good["tools"], good["error"]) == ("ready", 2, None)
    assert good["protocol"]
    assert bad["state"] == "failed"
    assert "the licence ran out" in bad["error"]
    assert off["state"] == "disabled"
    assert squidbot("servers", "test", "good").code == 0
    assert squidbot("servers", "test", "off").code == 4
    for_people = squidbot("servers", "test", "bad")
    assert for_people.code == 4
    assert "the licence ran out" in for_people.err


@pytest.mark.requirement("B-06")
@pytest.mark.parametrize(
    ("entry", "advice"),
    [
        ({"url": "http://127.0.0.1:9/mcp"}, "Is the server running, and is the url right?"),
        ({"transport": "sse", "url": "http://127.0.0.1:9/sse"}, "Is the server running, and is the url right?"),
        ({"url": "ws://127.0.0.1:9"}, "Is the server running, and is the url right?"),
        ({"command": "no-such-program"}, "`command`"),
        ({"command": "sleep", "args": ["60"], "startup_timeout": 0.5}, "`startup_timeout`"),
    ],
)
def test_a_server_that_cannot_be_reached_comes_with_what_to_try(
    entry: dict[str, Any], advice: str, folder: Path, squidbot: Squidbot
) -> None:
    """The reason alone leaves a person where they were, whatever the transport."""
    write_settings(folder, {"it": {**entry, "max_retries": 0}})
    ran = squidbot("tools", "list", "--json")
    assert ran.code == 4
    assert advice in ran.error["hint"]


def test_no_servers_is_an_answer(folder: Path, squidbot: Squidbot) -> None:
    """With what to do about it."""
    write_settings(folder, {})
    assert squidbot("servers", "list", "--json").json == []
    assert "squidbot servers add" in squidbot("servers", "list").err


@pytest.mark.requirement("A-03")
def test_a_servers_last_words_do_not_give_a_secret_away(
    folder: Path, squidbot: Squidbot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that refuse a token like to print it."""
    monkeypatch.setenv("MY_TOKEN", "tok-12345678")
    code = "import os, sys; sys.exit('bad token ' + os.environ['TOKEN'])"
    entry = {"command": sys.executable, "args": ["-c", code], "env": {"TOKEN": "${MY_TOKEN}"}, "max_retries": 0}
    write_settings(folder, {"s": entry})
    for command in (["servers", "test"], ["doctor"], ["tools", "list"]):
        for option in ([], ["--json"]):
            ran = squidbot(*command, *option, "-vv")
            assert ran.code != 0
            assert "bad token" in ran.out + ran.err
            assert "tok-12345678" not in ran.out + ran.err


def test_signing_out_of_a_server_that_nobody_signed_in_to_is_no_error(folder: Path, squidbot: Squidbot) -> None:
    """The wish is fulfilled already."""
    write_settings(folder, {"docs": {"url": "http://127.0.0.1:9/mcp", "auth": {"type": "oauth"}}})
    assert squidbot("servers", "logout", "docs", "--json").json == {
        "name": "docs",
        "signed_in": False,
        "forgotten": False,
    }
    assert squidbot("servers", "logout", "docs").out == "There were no tokens for 'docs'.\n"


def test_signing_in_to_a_server_that_is_not_there_is_exit_code_four(folder: Path, squidbot: Squidbot) -> None:
    """Nothing to sign in to."""
    write_settings(folder, {"docs": {"url": "http://127.0.0.1:9/mcp", "auth": {"type": "oauth"}, "max_retries": 0}})
    ran = squidbot("servers", "login", "docs", "--json")
    assert (ran.code, ran.error["code"]) == (4, "unavailable")


def test_a_server_that_wants_no_sign_in_is_signed_in_to(plain: Path, squidbot: Squidbot) -> None:
    """The question was whether one is in; one is."""
    assert squidbot("servers", "login", "plain").out == "Signed in to 'plain'.\n"


@pytest.mark.anyio
@pytest.mark.requirement("B-13")
async def test_a_person_signs_in_by_the_browser_and_out_again(folder: Path) -> None:
    """One visit to a browser, then the server answers; after signing out it says how to sign in again."""
    visit = folder / "visit.py"
    visit.write_text("import sys, urllib.request\nurllib.request.urlopen(sys.argv[1]).read()\n")
    async with guarded_server() as (url, _):
        write_settings(folder, {"docs": {"url": url, "auth": {"type": "oauth"}, "max_retries": 0}})

        async def squidbot(*arguments: str) -> tuple[int, Any, str]:
            done = await anyio.run_process(
                [sys.executable, "-m", "squidbot", *arguments, "--json"],
                check=False,
                env={**os.environ, "BROWSER": f"{sys.executable} {visit} %s"},
            )
            return done.returncode, json.loads(done.stdout), done.stderr.decode()

        code, document, said = await squidbot("servers", "login", "docs")
        assert (code, document) == (0, {"name": "docs", "signed_in": True})
        assert "Open this address to sign in:\nhttp://127.0.0.1:" in said
        code, document, _ = await squidbot("servers", "test", "docs")
        assert (code, document[0]["state"]) == (0, "ready")
        code, document, _ = await squidbot("servers", "logout", "docs")
        assert (code, document["forgotten"]) == (0, True)
        code, document, _ = await squidbot("servers", "test", "docs")
        assert (code, document[0]["state"]) == (4, "failed")


@pytest.mark.requirement("G-03")
def test_the_doctor_finds_nothing_wrong_with_what_ships(squidbot: Squidbot) -> None:
    """A fresh machine, no settings, no account: well."""
    ran = squidbot("doctor", "--json")
    assert ran.code == 0
    document = ran.json
    assert document["ok"] is True
    assert document["findings"] == []
    (server,) = [server for server in document["servers"] if server["name"] == "filesystem"]
    assert server["state"] == "ready"
    assert server["tokens"] > 500
    assert "ok: nothing is wrong." in squidbot("doctor").out


@pytest.mark.requirement("G-03")
def test_the_doctor_names_everything_that_is_wrong_with_what_to_do(folder: Path, squidbot: Squidbot) -> None:
    """All servers are tried, whatever became of the first."""
    write_settings(folder, {"good": plain_entry(), "bad": BROKEN, "gone": {"command": "no-such-command-anywhere"}})
    ran = squidbot("doctor", "--json")
    assert ran.code == 1
    findings = {finding["where"]: finding for finding in ran.json["findings"]}
    assert findings.keys() == {"bad", "gone"}
    assert all(finding.keys() == {"severity", "where", "message", "hint"} for finding in findings.values())
    assert "the licence ran out" in findings["bad"]["message"]
    assert "command 'no-such-command-anywhere' was not found on PATH" in findings["gone"]["message"]
    assert findings["gone"]["hint"]
    assert {server["name"]: server["state"] for server in ran.json["servers"]}["good"] == "ready"
    assert "error: gone: command" in squidbot("doctor").out


@pytest.mark.requirement("G-03")
def test_the_doctor_does_not_run_what_it_warns_of_unless_it_is_told_to(folder: Path, squidbot: Squidbot) -> None:
    """Who asks whether a package may be trusted must not have run it by asking."""
    plain = plain_entry("--starts", str(folder / "starts"))
    runner = folder / "npx"
    runner.write_text(f"#!/bin/sh\nexec {shlex.join([plain['command'], *plain['args']])}\n")
    runner.chmod(0o700)
    doubtful = {"command": str(runner), "args": ["-y", "some-mcp-server"]}
    write_settings(folder, {"good": plain_entry(), "doubtful": doubtful, "off": {**doubtful, "enabled": False}})

    ran = squidbot("doctor", "--json")
    assert (ran.code, starts(folder)) == (1, [])
    (finding,) = ran.json["findings"]
    assert finding["where"] == "tools.mcp_servers.doubtful.args"
    servers = {server["name"]: server for server in ran.json["servers"]}
    assert (servers["good"]["state"], servers["good"]["error"]) == ("ready", None)
    assert (servers["doubtful"]["state"], servers["doubtful"]["tools"]) == ("idle", None)
    assert "it was not started" in servers["doubtful"]["error"]
    assert "Not started, for what they would run: 'doubtful'." in squidbot("doctor").err
    assert starts(folder) == []

    ran = squidbot("doctor", "--all", "--json")
    assert (ran.code, len(ran.json["findings"]), len(starts(folder))) == (1, 1, 1)
    assert {server["name"]: server["state"] for server in ran.json["servers"]}["doubtful"] == "ready"


def test_the_doctor_reads_broken_settings_too(folder: Path, squidbot: Squidbot) -> None:
    """Broken settings are what one calls a doctor for."""
    write_settings(folder, {"a": {"comand": "x"}, "b": {"url": "ftp://x"}})
    ran = squidbot("doctor", "--json")
    assert ran.code == 1
    assert len(ran.json["findings"]) >= 2
    assert all(finding["severity"] == "error" for finding in ran.json["findings"])
    (folder / "squidbot.json").write_text("{")
    (finding,) = squidbot("doctor", "--json").json["findings"]
    assert re.search(r"^settings +.*squidbot\.json$", squidbot("doctor").out, re.MULTILINE)
    assert finding["where"] == "settings"


def test_the_doctor_finds_a_state_folder_that_cannot_be_used(
    folder: Path, plain: Path, squidbot: Squidbot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it nothing is remembered: no lists, no tokens, no records."""
    (folder / "file").write_text("")
    monkeypatch.setenv("SQUIDBOT_HOME", str(folder / "file" / "state"))
    findings = squidbot("doctor", "--json").json["findings"]
    assert "state folder cannot be written to" in findings[0]["message"]
    assert "SQUIDBOT_HOME" in findings[0]["hint"]


@pytest.mark.requirement("G-03")
def test_the_doctor_finds_a_record_that_cannot_be_written(plain: Path, home: Path, squidbot: Squidbot) -> None:
    """No record, no call: with a broken one nothing works, however well the servers are."""
    (home / "state").mkdir(exist_ok=True)
    (home / "state" / "audit.db").write_bytes(b"no database" * 100)
    assert squidbot("tools", "call", "echo", "text=x").code == 1
    ran = squidbot("doctor", "--json")
    (finding,) = ran.json["findings"]
    assert (ran.code, finding["severity"], finding["where"]) == (1, "error", "audit")
    assert "no SQLite database" in finding["message"]
    assert "move the file" in finding["hint"]


def test_the_doctor_warns_of_lists_that_crowd_out_thinking(folder: Path, squidbot: Squidbot) -> None:
    """A hundred thousand bytes of tools leave a model little room."""
    script = folder / "wordy.py"
    text = Path(plain_entry()["args"][2]).read_text()
    script.write_text(text.replace("[ECHO, PID]", '[{**ECHO, "name": f"echo_{n}"} for n in range(900)]'))
    write_settings(folder, {"wordy": {"command": sys.executable, "args": [str(script)]}})
    (finding,) = squidbot("doctor", "--json").json["findings"]
    assert (finding["severity"], finding["where"]) == ("warning", "wordy")
    assert "tokens" in finding["message"]


def test_the_doctor_notices_that_there_is_nothing_to_connect_to(folder: Path, squidbot: Squidbot) -> None:
    """Settings without a server are valid, and rarely meant."""
    write_settings(folder, {})
    assert json.loads(squidbot("doctor", "--json").out)["findings"][0]["message"] == "there is no server to connect to"
