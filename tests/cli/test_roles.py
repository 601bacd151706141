"""`squidbot roles`, `audit`, `alerts` and `--role`, as somebody at a terminal uses them."""

import csv
import io
import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Squidbot
from tests.fixtures.running import plain_entry

ROLES: dict[str, Any] = {
    "reader": {"tools": {"plain": ["pid"]}},
    "sayer": {"tools": {"plain": [{"tool": "echo", "when": {"text": ["hello*"]}}]}},
}


@pytest.fixture(autouse=True)
def settings(folder: Path) -> Path:
    """One small server, two roles of its own."""
    entry = {**plain_entry(), "flows": {"untrusted": ["pid"], "private": ["pid"], "egress": ["echo"]}}
    path = folder / "squidbot.json"
    path.write_text(json.dumps({"tools": {"mcp_servers": {"plain": entry}}, "roles": ROLES}))
    return path


def names(ran: Any) -> list[str]:
    return [tool["tool"] for tool in ran.json]


@pytest.mark.requirement("E-03", "G-03")
def test_a_role_sees_and_calls_only_its_tools(squidbot: Squidbot) -> None:
    """Listed is callable, everything else is refused with 3."""
    assert names(squidbot("tools", "list", "--json")) == ["echo", "pid"]
    assert names(squidbot("tools", "list", "--role", "reader", "--json")) == ["pid"]
    assert squidbot("tools", "call", "echo", "text=hello you", "--role", "sayer").out == "hello you\n"
    refused = squidbot("tools", "call", "echo", "text=bye", "--role", "sayer", "--json")
    assert (refused.code, refused.error["code"]) == (3, "not_permitted")
    assert "'text' must match 'hello*'" in refused.error["message"]
    assert squidbot("tools", "call", "echo", "text=x", "--role", "reader").code == 3
    assert squidbot("tools", "call", "echo", "text=x", "--role", "designer").code == 3


@pytest.mark.requirement("E-03", "G-03")
def test_what_nobody_knows_is_a_usage_error(squidbot: Squidbot) -> None:
    """A typing error is not a refusal."""
    unknown = squidbot("tools", "list", "--role", "raeder", "--json")
    assert (unknown.code, unknown.error["code"]) == (2, "unknown_role")
    assert unknown.error["hint"].startswith("Did you mean 'reader'")
    assert "tech_lead, " in unknown.error["hint"]
    assert "sayer" in squidbot("roles", "show", "nobody", "--json").error["hint"]
    assert squidbot("roles", "show", "nobody").code == 2
    assert squidbot("roles", "explain", "reader", "nothing").code == 2
    assert squidbot("roles", "grant", "reader", "nowhere", "echo").code == 2
    assert squidbot("audit", "show", "ffff").code == 2
    assert squidbot("audit", "tail", "--since", "yesterday").code == 2


@pytest.mark.requirement("E-01", "E-03", "E-05")
@pytest.mark.parametrize("role", ["", " ", "OPERATOR", "sayer "])
def test_a_role_that_is_none_has_nothing_and_trying_it_is_recorded(squidbot: Squidbot, role: str) -> None:
    """A script's forgotten variable (`--role "$ROLE"`) must not open every door."""
    called = squidbot("tools", "call", "echo", "text=hello", "--role", role, "--json")
    assert (called.code, called.error["code"]) == (2, "unknown_role")
    for command in (("tools", "list"), ("roles", "explain", "echo"), ("prompts", "list"), ("resources", "list")):
        role_given = (
            (command[0], command[1], role, *command[2:]) if command[1] == "explain" else (*command, "--role", role)
        )
        assert squidbot(*role_given, "--json").error["code"] == "unknown_role"
    [record] = squidbot("audit", "tail", "--json").json
    assert (record["role"], record["tool"], record["outcome"]) == (role, "echo", "refused")


def test_who_names_a_role_that_is_none_is_told_which_there_are(squidbot: Squidbot) -> None:
    """A person at the terminal may know; a client is never told."""
    hint = squidbot("tools", "list", "--role", "zzz", "--json").error["hint"]
    assert {"tech_lead", "reader", "sayer", "operator"} <= set(hint.removeprefix("There are ").rstrip(".").split(", "))


@pytest.mark.requirement("E-05", "E-10", "G-03")
def test_every_attempt_is_on_record_with_the_promised_columns(squidbot: Squidbot, home: Path) -> None:
    """Calls, refusals, and names that are none."""
    called = squidbot("tools", "call", "echo", "text=hello", "--role", "sayer", "--json").json
    squidbot("tools", "call", "echo", "text=bye", "--role", "sayer")
    squidbot("tools", "call", "nonsense")
    records = squidbot("audit", "tail", "--json").json
    assert [(item["role"], item["tool"], item["outcome"]) for item in records] == [
        ("sayer", "echo", "ok"),
        ("sayer", "echo", "refused"),
        ("operator", "nonsense", "refused"),
    ]
    assert records[0]["id"] == called["record"]
    promised = "id timestamp squad_member_id role server tool arguments result success error_message sequence origin"
    assert {*promised.split(), "outcome", "duration", "revision"} <= records[0].keys()
    assert records[0]["arguments"] == {"text": "hello"}
    assert squidbot("audit", "tail", "--json", "--outcome", "refused", "--role", "s*").json == [records[1]]
    assert squidbot("audit", "tail", "--json", "--since", "2000-01-01", "-n", "1").json == [records[2]]
    with sqlite3.connect(home / "state" / "audit.db") as database:
        assert database.execute("select count(*) from tool_execution_logs").fetchone() == (3,)
    shown = squidbot("audit", "show", called["record"])
    assert "sayer" in shown.out
    assert squidbot("audit", "show", called["record"], "--json").json == records[0]
    assert squidbot("audit", "show", called["record"][:20], "--json").json == records[0]
    assert squidbot("audit", "show", called["record"][0]).code == 2


@pytest.mark.requirement("E-06", "G-03")
def test_verify_finds_an_edit_and_ends_with_one(squidbot: Squidbot, home: Path) -> None:
    """A record that can be changed unseen proves nothing."""
    squidbot("tools", "call", "echo", "text=hello")
    whole = squidbot("audit", "verify", "--json")
    assert (whole.code, whole.json["ok"], whole.json["chains"], whole.json["first_bad"]) == (0, True, 1, None)
    with sqlite3.connect(home / "state" / "audit.db") as database:
        database.execute("update tool_execution_logs set role = 'designer'")
    broken = squidbot("audit", "verify", "--json")
    assert (broken.code, broken.json["ok"]) == (1, False)
    assert broken.json["first_bad"]["reason"]
    assert squidbot("audit", "verify").code == 1


@pytest.mark.requirement("E-12", "G-03")
def test_records_are_exported_and_no_cell_is_a_formula(squidbot: Squidbot, folder: Path) -> None:
    """A spreadsheet runs what begins with an equals sign."""
    squidbot("tools", "call", "echo", "text=hello")
    squidbot("tools", "call", "=cmd()")
    lines = [json.loads(line) for line in squidbot("audit", "export").out.splitlines()]
    assert [line["tool"] for line in lines] == ["echo", "=cmd()"]
    rows = list(csv.DictReader(io.StringIO(squidbot("audit", "export", "--format", "csv").out)))
    assert [row["tool"] for row in rows] == ["echo", "'=cmd()"]
    squidbot("audit", "export", "--output", str(folder / "out.jsonl"))
    assert len((folder / "out.jsonl").read_text().splitlines()) == 2
    assert squidbot("audit", "export", "--output", str(folder / "no" / "way")).code == 2


@pytest.mark.requirement("E-12")
def test_old_records_are_pruned_and_the_rest_verifies(squidbot: Squidbot) -> None:
    """Retention must not cost the proof."""
    squidbot("tools", "call", "echo", "text=hello")
    squidbot("tools", "call", "echo", "text=hello")
    assert squidbot("audit", "prune", "--before", "2000-01-01", "--json").json["removed"] == 0
    typo = squidbot("audit", "prune", "--before", "2999-01-01", "--json")
    assert typo.code == 2
    assert "yet to come" in typo.error["message"]
    assert squidbot("audit", "prune", "--before", "0s", "--json").json["removed"] > 0
    assert squidbot("audit", "verify").code == 0
    [record] = squidbot("audit", "tail", "--json").json
    assert (record["kind"], record["role"], record["origin"]) == ("prune", "operator", "cli")
    assert record["squad_member_id"].startswith("local:")


@pytest.mark.requirement("E-08")
def test_usage_is_counted_by_role_server_and_tool(squidbot: Squidbot) -> None:
    """Who uses what, how often, and how it goes."""
    squidbot("tools", "call", "echo", "text=hello", "--role", "sayer")
    squidbot("tools", "call", "echo", "text=bye", "--role", "sayer")
    [usage] = squidbot("audit", "stats", "--json").json
    assert (usage["role"], usage["server"], usage["tool"]) == ("sayer", "plain", "echo")
    assert (usage["calls"], usage["refused"]) == (2, 1)
    assert "sayer" in squidbot("audit", "stats").out


@pytest.mark.requirement("E-09", "G-03")
def test_a_run_of_refusals_over_several_commands_is_an_alert(squidbot: Squidbot) -> None:
    """Somebody who tries door after door is noticed, also if each try is a process of its own."""
    assert squidbot("alerts", "list", "--json").json == []
    for _ in range(5):
        squidbot("tools", "call", "echo", "text=x", "--role", "reader")
    squidbot("tools", "call", "pid", "--role", "reader")
    alerts = {alert["rule"]: alert for alert in squidbot("alerts", "list", "--json").json}
    assert alerts.keys() == {"refusals", "first_use"}
    assert alerts["refusals"]["role"] == "reader"
    assert "refused 5 times" in squidbot("alerts", "list").out


@pytest.mark.requirement("E-02", "G-03")
def test_roles_are_listed_shown_and_explained(squidbot: Squidbot) -> None:
    """Why somebody may, or may not, is one command away."""
    assert len(squidbot("roles", "list", "--json").json) == 11
    shown = squidbot("roles", "show", "sayer", "--json").json
    assert shown["tools"] == {"plain": ["echo"]}
    assert [tool["name"] for tool in shown["callable"]] == ["mcp_plain_echo"]
    assert "text matches hello*" in squidbot("roles", "show", "sayer").out
    explained = squidbot("roles", "explain", "sayer", "mcp_plain_echo", "text=bye", "--json").json
    assert explained.keys() == {"allowed", "role", "server", "tool", "rule", "reason"}
    assert explained["allowed"] is False
    assert squidbot("roles", "explain", "sayer", "echo", "--json").json["allowed"] is True
    assert "refused: designer: git/git_push" in squidbot("roles", "explain", "designer", "git_push").out


@pytest.mark.requirement("E-03", "G-03")
def test_a_grant_that_nothing_answers_to_is_explained_as_such(squidbot: Squidbot, settings: Path) -> None:
    """It is allowed, and will never work."""
    document = json.loads(settings.read_text())
    document["roles"]["sayer"]["tools"]["plain"].append("ecko")
    settings.write_text(json.dumps(document))
    squidbot("tools", "list")
    assert squidbot("roles", "grant", "sayer", "plain", "ecko").code == 0
    explained = squidbot("roles", "explain", "sayer", "plain/ecko")
    assert "allowed: sayer: plain/ecko" in explained.out
    assert (explained.out + explained.err).count("'ecko' of server 'plain' is not there. Did you mean 'echo'?") == 1
    assert "is not there" not in squidbot("roles", "explain", "sayer", "plain/echo").err


@pytest.mark.requirement("C-07", "E-02")
def test_dangling_grants_are_found_by_check_and_by_doctor(squidbot: Squidbot, settings: Path) -> None:
    """With the nearest name, and an exit code that a pipeline sees."""
    clean = squidbot("roles", "check", "--json")
    assert (clean.code, clean.json) == (0, {"dangling": [], "ungranted": []})
    document = json.loads(settings.read_text())
    document["roles"]["reader"]["tools"]["plain"] = ["ehco"]
    settings.write_text(json.dumps(document))
    broken = squidbot("roles", "check", "--json")
    assert broken.code == 1
    [grant] = broken.json["dangling"]
    assert (grant["role"], grant["tool"], grant["nearest"]) == ("reader", "ehco", "echo")
    assert broken.json["ungranted"] == [{"server": "plain", "tool": "pid"}]
    assert "Did you mean 'echo'?" in squidbot("roles", "check").out
    assert squidbot("roles", "grant", "sayer", "plain", "pdi").code == 0
    findings = squidbot("doctor", "--json").json["findings"]
    assert [finding["where"] for finding in findings if "ehco" in finding["message"]] == ["roles.reader"]
    [of_the_database] = [finding for finding in findings if "pdi" in finding["message"]]
    assert (of_the_database["where"], of_the_database["hint"]) == ("roles.sayer", "Did you mean 'pid'?")


@pytest.mark.requirement("E-02")
def test_a_proposed_file_is_compared_and_replayed(squidbot: Squidbot, folder: Path) -> None:
    """Before a grant is tightened, see who would have felt it."""
    squidbot("tools", "call", "echo", "text=hello", "--role", "sayer")
    squidbot("tools", "call", "echo", "text=x", "--role", "reader")
    proposed = {
        "reader": {"tools": {"plain": ["*"]}},
        "sayer": {"tools": {"plain": [{"tool": "echo", "when": {"text": ["x"]}}]}},
    }
    (folder / "next.json").write_text(json.dumps({"roles": proposed}))
    changed = squidbot("roles", "diff", "next.json", "--json").json
    assert [grant["tool"] for grant in changed["added"]] == ["*", "echo"]
    assert "+ reader: plain/*" in squidbot("roles", "diff", "next.json").out
    replayed = squidbot("roles", "simulate", "next.json", "--json").json
    assert replayed["calls"] == 2
    assert [(turn["role"], turn["calls"]) for turn in replayed["refused"]] == [("sayer", 1)]
    assert [(turn["role"], turn["calls"]) for turn in replayed["allowed"]] == [("reader", 1)]
    assert "would be refused" in squidbot("roles", "simulate", "next.json", "--since", "1d").out
    assert squidbot("roles", "diff", "missing.json").code == 2


@pytest.mark.requirement("E-04", "E-05")
def test_a_grant_on_the_command_line_is_felt_and_recorded(squidbot: Squidbot) -> None:
    """Without an editor, without a restart, with a record of who did it."""
    squidbot("tools", "list")
    granted = squidbot("roles", "grant", "reader", "plain", "echo", "--json").json
    assert granted["enabled"] is True
    assert squidbot("tools", "call", "echo", "text=x", "--role", "reader").code == 0
    assert "may no longer use" in squidbot("roles", "revoke", "reader", "plain", "*").out
    assert squidbot("tools", "call", "pid", "--role", "reader").code == 3
    assert "Did you mean 'echo'?" in squidbot("roles", "grant", "reader", "plain", "ecko").err
    kinds = [(item["kind"], item["role"]) for item in squidbot("audit", "tail", "--json").json]
    assert kinds.count(("grant", "operator")) == 3


@pytest.mark.requirement("E-04")
@pytest.mark.parametrize("grant", [("", "plain", "echo"), ("operator", "plain", "echo"), ("reader", "plain", "")])
def test_a_grant_that_could_never_mean_anything_is_not_made(squidbot: Squidbot, grant: tuple[str, ...]) -> None:
    """It would stand in the database, and in the record, as if it did."""
    assert squidbot("roles", "grant", *grant).code == 2
    assert squidbot("audit", "tail", "--json").json == []


def test_roles_with_all_three_legs_are_named(squidbot: Squidbot) -> None:
    """What an injected instruction would need."""
    assert squidbot("roles", "flows", "--json").json == []
    squidbot("roles", "grant", "reader", "plain", "echo")
    [role] = squidbot("roles", "flows", "--json").json
    assert (role["role"], role["egress"]) == ("reader", ["plain/echo"])
    assert "reader" in squidbot("roles", "flows").out


@pytest.mark.requirement("E-05")
def test_a_change_of_the_settings_is_recorded_without_its_secrets(squidbot: Squidbot) -> None:
    """Who added a server, and which."""
    squidbot("servers", "add", "more", "--env", "API_TOKEN=hunter2-and-more", "--", "some-command")
    squidbot("servers", "remove", "more")
    records = squidbot("audit", "tail", "--json").json
    assert [(item["kind"], item["server"], item["tool"]) for item in records] == [
        ("settings", "more", "add"),
        ("settings", "more", "remove"),
    ]
    assert "hunter2" not in json.dumps(records)


@pytest.mark.requirement("G-03")
def test_what_is_followed_is_one_object_a_line_to_its_end(squidbot: Squidbot, home: Path) -> None:
    """Whoever reads line by line must be able to read the last one, too."""
    called = squidbot("tools", "call", "echo", "text=hello", "--json").json
    command = [sys.executable, "-m", "squidbot", "audit", "tail", "-f", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["id"] == called["record"]
        following.send_signal(signal.SIGINT)
        assert following.communicate(timeout=30)[0] == ""
    assert following.returncode == 130
