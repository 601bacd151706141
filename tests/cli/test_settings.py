"""The commands that read and write the settings file; none of them starts a server."""

import json
import stat
from pathlib import Path

import pytest

from squidbot.config.jsonschema import settings_schema
from tests.cli.conftest import Squidbot


def write(path: Path, servers: object, **more: object) -> Path:
    path.write_text(json.dumps({"tools": {"mcp_servers": servers}, **more}))
    return path


@pytest.mark.requirement("G-03")
def test_init_writes_settings_that_work_and_teach(folder: Path, squidbot: Squidbot) -> None:
    """The first file a person sees decides whether there is a second."""
    assert squidbot("init").code == 0
    text = (folder / "squidbot.json").read_text()
    assert text.count("//") > 4
    assert stat.S_IMODE((folder / "squidbot.json").stat().st_mode) == 0o600
    checked = squidbot("config", "check", "--json")
    assert checked.code == 0
    assert checked.json == {
        "ok": True,
        "file": str(folder / "squidbot.json"),
        "servers": ["filesystem"],
        "notes": [],
    }


def test_init_overwrites_nothing_unless_it_is_forced(folder: Path, squidbot: Squidbot) -> None:
    """An hour of somebody's work may be in that file."""
    (folder / "mine.json").write_text("{}")
    ran = squidbot("init", "mine.json", "--json")
    assert ran.code == 2
    assert ran.error["code"] == "exists"
    assert (folder / "mine.json").read_text() == "{}"
    assert squidbot("init", "mine.json", "--force", "--json").json == {"file": "mine.json"}
    assert "mcp_servers" in (folder / "mine.json").read_text()


def test_init_says_why_it_cannot_write(squidbot: Squidbot) -> None:
    """A missing folder is no reason for a traceback."""
    ran = squidbot("init", "no/such/folder.json")
    assert ran.code == 2
    assert ran.err == "error: 'no/such/folder.json' cannot be written: No such file or directory\n"


@pytest.mark.parametrize("before", [True, False])
def test_the_settings_file_is_named_before_or_after_the_command(before: bool, folder: Path, squidbot: Squidbot) -> None:
    """Nobody remembers on which side of a command an option belongs."""
    path = write(folder / "other.json", {"a": {"command": "x"}})
    option = ["-c", str(path), "--json"]
    command = ["config", "check"]
    ran = squidbot(*option, *command) if before else squidbot(*command, *option)
    assert ran.json["servers"] == ["a"]


@pytest.mark.requirement("G-03")
def test_malformed_settings_are_reported_whole(folder: Path, squidbot: Squidbot) -> None:
    """One round of repair, not one per mistake."""
    path = write(folder / "bad.json", {"a": {"comand": "x"}, "b": {"command": "y", "url": "http://z"}}, modle={})
    ran = squidbot("config", "check", str(path))
    assert ran.code == 2
    assert ran.out == ""
    assert "comand" in ran.err
    assert "modle" in ran.err
    assert "mcp_servers.b" in ran.err
    with_json = squidbot("config", "check", str(path), "--json")
    assert with_json.code == 2
    assert with_json.error["code"] == "settings"
    assert "comand" in with_json.error["message"]


@pytest.mark.parametrize("command", [["tools", "list"], ["servers", "list"], ["servers", "test"], ["prompts", "list"]])
def test_a_missing_settings_file_stops_every_command(command: list[str], squidbot: Squidbot) -> None:
    """To go on with other settings than the ones that were named would be a lie."""
    ran = squidbot(*command, "-c", "gone.json", "--json")
    assert ran.code == 2
    assert ran.error["code"] == "settings"
    assert "gone.json" in ran.error["message"]


@pytest.mark.requirement("G-03", "A-03")
def test_what_is_shown_holds_no_secret(folder: Path, squidbot: Squidbot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings are pasted into bug reports."""
    monkeypatch.setenv("DOCS_TOKEN", "from-the-environment")
    entry = {
        "url": "http://user:in-the-url@localhost/mcp",
        "headers": {"Authorization": "Bearer ${DOCS_TOKEN}", "X-Api-Key": "written-in-the-file"},
    }
    path = write(folder / "s.json", {"docs": entry}, model={"provider": "openai", "name": "m", "api_key": "sk-secret"})
    for command in (["config", "show"], ["servers", "get", "docs"]):
        for option in ([], ["--json"]):
            ran = squidbot(*command, *option, "-c", str(path), "-vv")
            assert ran.code == 0
            for secret in ("from-the-environment", "in-the-url", "written-in-the-file", "sk-secret"):
                assert secret not in ran.out + ran.err
            assert "docs" in ran.out or "${DOCS_TOKEN}" in ran.out


def test_the_schema_is_printed(squidbot: Squidbot) -> None:
    """Editors take it from here."""
    assert squidbot("config", "schema").json == settings_schema()


def test_a_server_is_added_shown_and_removed_again(folder: Path, squidbot: Squidbot) -> None:
    """The file is a person's: what they wrote stays as it is."""
    squidbot("init")
    before = (folder / "squidbot.json").read_text()
    command = ["servers", "add", "time", "--env", "TZ=UTC", "--json", "--", "uvx", "mcp-server-time", "--json"]
    assert squidbot(*command).json == {"name": "time", "file": str(folder / "squidbot.json")}
    shown = squidbot("servers", "get", "time", "--json").json
    assert shown["transport"] == "stdio"
    assert (shown["command"], shown["args"], shown["env"]) == ("uvx", ["mcp-server-time", "--json"], {"TZ": "UTC"})
    assert squidbot("servers", "remove", "time").out == f"Removed 'time' from {folder / 'squidbot.json'}.\n"
    # A comma after the last member is neither needed nor wrong.
    assert (folder / "squidbot.json").read_text().replace(",", "") == before.replace(",", "")


def test_a_remote_server_is_added_with_its_headers(folder: Path, squidbot: Squidbot) -> None:
    """The transport is told by the url, or named; with no file yet, one is made."""
    arguments = ["--url", "http://localhost:1/sse", "--transport", "sse", "--header", "X-A=b=c"]
    assert squidbot("servers", "add", "docs", *arguments).code == 0
    assert json.loads((folder / "squidbot.json").read_text())["tools"]["mcp_servers"]["docs"] == {
        "transport": "sse",
        "url": "http://localhost:1/sse",
        "headers": {"X-A": "b=c"},
    }


def test_adding_a_server_says_which_variable_it_will_miss(squidbot: Squidbot) -> None:
    """It is right to write it down now and set it later; not to be puzzled by the next command."""
    header = "Authorization=Bearer ${DOCS_TOKEN}"
    ran = squidbot("servers", "add", "docs", "--url", "http://localhost:1/mcp", "--header", header)
    assert ran.code == 0
    assert "Before squidbot can use it: headers.Authorization: the variable 'DOCS_TOKEN' is not set" in ran.err


def test_importing_servers_says_which_variables_they_will_miss(folder: Path, squidbot: Squidbot) -> None:
    """One variable that is not set stops the whole file: whoever imports five servers should hear which of them it is."""
    theirs = {
        "mcpServers": {
            "a": {"url": "http://h/${TENANT}"},
            "b": {"command": "x"},
            "off": {"command": "${Y}", "disabled": True},
        }
    }
    (folder / "theirs.json").write_text(json.dumps(theirs))
    ran = squidbot("servers", "import", "theirs.json")
    assert ran.code == 0
    assert "Before squidbot can use it: a.url: the variable 'TENANT' is not set" in ran.err
    assert ran.err.count("Before squidbot") == 1


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_a_folder_is_no_settings_file(option: list[str], folder: Path, squidbot: Squidbot) -> None:
    """A wrong argument, not a fault of ours."""
    ran = squidbot("config", "check", str(folder), *option)
    assert ran.code == 2
    assert "Is a directory" in ran.out + ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["add", "x"], "either a command"),
        (["add", "x", "--url", "http://y", "--", "z"], "either a command"),
        (["add", "x", "--url", "ftp://y"], "scheme"),
        (["add", "a/b", "--", "z"], "no name for a server"),
        (["add", "a", "--", "z"], "'a' already"),
        (["add", "x", "--transport", "smoke", "--", "z"], "smoke"),
        (["add", "x", "--header", "oops", "--url", "http://y"], "KEY=VALUE"),
        (["remove", "b"], "unknown server 'b'"),
        (["get", "b"], "unknown server 'b'"),
        (["login", "b"], "unknown server 'b'"),
        (["logout", "b"], "unknown server 'b'"),
        (["test", "b"], "unknown server 'b'"),
        (["import", "gone.json"], "gone.json"),
        (["import", "squidbot.json"], ""),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    arguments: list[str], words: str, folder: Path, squidbot: Squidbot
) -> None:
    """A wrong word on the command line must not cost a good file."""
    path = write(folder / "squidbot.json", {"a": {"command": "x"}})
    before = path.read_text()
    ran = squidbot("servers", *arguments[:1], "--json", *arguments[1:])
    assert ran.code == 2
    assert words in ran.error["message"]
    assert path.read_text() == before


@pytest.mark.requirement("A-05")
def test_another_tools_servers_are_taken_over(folder: Path, squidbot: Squidbot) -> None:
    """People come with a file; what is theirs already stays."""
    write(folder / "squidbot.json", {"here": {"command": "x"}})
    theirs = {"mcpServers": {"here": {"command": "y"}, "my tool": {"command": "z", "args": ["1"]}}}
    (folder / "theirs.json").write_text(json.dumps(theirs))
    before = (folder / "squidbot.json").read_text()
    rehearsal = squidbot("servers", "import", "theirs.json", "--dry-run", "--json").json
    assert (rehearsal["added"], rehearsal["skipped"], rehearsal["dry_run"]) == (["my-tool"], ["here"], True)
    assert len(rehearsal["notes"]) == 1
    assert (folder / "squidbot.json").read_text() == before
    ran = squidbot("servers", "import", "theirs.json")
    assert ran.out == f"Added 'my-tool' to {folder / 'squidbot.json'}.\n"
    assert "'here' is there already" in ran.err
    servers = json.loads((folder / "squidbot.json").read_text())["tools"]["mcp_servers"]
    assert servers["here"] == {"command": "x"}
    assert servers["my-tool"]["args"] == ["1"]
