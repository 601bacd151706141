"""`squidbot practice`: the world beside a command, and the story from ticket to done."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Squidbot
from tests.fixtures.running import ROOT


@pytest.mark.deadline(180)
@pytest.mark.requirement("F-05", "F-06", "E-03", "E-05")
def test_the_story_is_told_each_step_by_a_role_that_may_and_refused_to_all_others(program: Squidbot) -> None:
    """The whole promise at once: every step has its effect, every closed door stays closed, all of it is on record."""
    ran = program("practice", "story", "--json")
    assert ran.code == 0, ran.err
    told = ran.json
    assert told["ok"] is True
    done = [step for step in told["steps"] if step["expected"] == "ok"]
    refused = [step for step in told["steps"] if step["expected"] == "refused"]
    assert [step["outcome"] for step in done] == ["ok"] * len(done)
    assert {step["outcome"] for step in refused} == {"refused"}
    assert len(done) == 14
    assert len(refused) > 70
    assert {step["role"] for step in done} == {"project_manager", "backend_developer", "tech_lead"}
    assert told["steps"][0].keys() == {"step", "role", "tool", "outcome", "expected", "record"}
    records = {record["id"]: record for record in program("audit", "tail", "-n", "1000", "--json").json}
    for step in told["steps"]:
        record = records[step["record"]]
        assert (record["role"], f"{record['server']}/{record['tool']}", record["outcome"]) == (
            step["role"],
            step["tool"],
            step["outcome"],
        )
    assert program("audit", "verify").code == 0


@pytest.mark.deadline(120)
@pytest.mark.requirement("F-06")
def test_the_story_tells_a_person_who_may_what_changed_what_was_refused_and_why(program: Squidbot) -> None:
    """A page to read, and the way from it to the records."""
    told = program("practice", "story")
    assert told.code == 0, told.err
    scenes = told.out.strip().split("\n\n")
    assert len(scenes) == 14
    title, allowed, done, *refused, recorded = scenes[0].splitlines()
    assert title == "project_manager opens a ticket"
    assert allowed == "  allowed to project_manager, qa_tester"
    assert done.startswith("  ok jira/create_ticket: created SHOP-20 ")
    assert [line.rpartition(": ")[::2] for line in refused] == [
        ("  refused to tech_lead, solution_architect", "no grant of the role names 'create_ticket' of server 'jira'"),
        (
            "  refused to backend_developer, frontend_developer, devops_engineer, ai_engineer, designer",
            "the role has nothing of server 'jira'",
        ),
    ]
    words = recorded.split()
    assert words[:2] == ["recorded", "as"]
    assert program("audit", "show", words[2].rstrip(","), "--json").json["tool"] == "create_ticket"
    assert recorded.endswith(", and 7 attempts by others")


@pytest.mark.deadline(120)
@pytest.mark.requirement("F-05", "A-06", "C-07")
def test_the_example_settings_give_all_roles_and_all_tools_without_an_account(program: Squidbot, folder: Path) -> None:
    """A newcomer copies the example and has everything."""
    shutil.copy(ROOT / "config.example.json", folder / "squidbot.json")
    listed = program("tools", "list", "--json")
    assert listed.code == 0, listed.err
    ours = [tool for tool in listed.json if tool["server"] in ("git", "github", "jira")]
    assert len(ours) == 27
    assert program("roles", "check", "--json").json["dangling"] == []
    issues = program("tools", "call", "list_issues", "repository=tidewater/shop", "--role", "project_manager", "--json")
    assert issues.code == 0, issues.err
    assert issues.json["structured"]["issues"]
    assert program("doctor").code == 0


@pytest.mark.requirement("F-05")
def test_a_world_that_runs_is_joined_and_ends_when_it_is_told_to(folder: Path, program: Squidbot, home: Path) -> None:
    """Two commands at a time must not have two worlds."""
    world = subprocess.Popen(
        [sys.executable, "-m", "squidbot", "practice", "start", "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ},
    )
    assert world.stdout is not None
    try:
        lines: list[str] = []
        while not lines or lines[-1] != "}\n":
            lines.append(world.stdout.readline())
            assert lines[-1], "it ended before it was ready"
        directions = json.loads("".join(lines))
        assert Path(directions["repository"]).is_relative_to(home)
        shutil.copy(ROOT / "config.example.json", folder / "squidbot.json")
        ticket = program("tools", "call", "get_ticket", "ticket=SHOP-1", "--json").json
        assert directions["web_url"] in json.dumps(ticket)
        assert program("practice", "start", "--port", directions["web_url"].rpartition(":")[2]).code == 1
        assert "already running" in program("practice", "start", "--port", "0").err
    finally:
        world.send_signal(signal.SIGINT)
        world.communicate(timeout=20)
    assert world.returncode in (0, 130)


def test_a_live_story_needs_its_place_and_a_practice_one_takes_none(squidbot: Squidbot) -> None:
    """Nobody plays on real accounts by accident."""
    assert squidbot("practice", "story", "--live").code == 2
    assert squidbot("practice", "story", "--repo", "a/b", "--project", "C").code == 2
