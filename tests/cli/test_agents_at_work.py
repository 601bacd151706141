"""Two agents in the practice world: one opens the ticket, the other does the work, and each is refused the other's part."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Squidbot
from tests.cli.test_agent import asks, script
from tests.fixtures.running import ROOT

REPOSITORY = "tidewater/shop"
TICKET = {"ticket": r"\b([A-Z]+-\d+)\b"}


def outcomes(document: Any) -> list[tuple[str, str]]:
    return [(call["name"], call["outcome"]) for step in document["steps"] for call in step["calls"]]


@pytest.mark.deadline(180)
@pytest.mark.requirement("G-02", "E-03", "E-05", "F-06")
def test_a_ticket_is_opened_and_worked_on_by_the_agents_whose_part_it_is(program: Squidbot, folder: Path) -> None:
    """Checked where it counts: in git, in the forge, in the tracker, and in the record."""
    shutil.copy(ROOT / "config.example.json", folder / "squidbot.json")
    opened = program(
        *("agent", "--role", "project_manager", "--json", "-m", "We need a page about returns: open a ticket."),
        "--model",
        script(
            folder,
            asks(("mcp_jira_create_ticket", {"project": "SHOP", "summary": "Describe returns"}), text="I open it."),
            asks(("mcp_git_git_checkout", {"branch": "mine", "create": True})),
            {"text": "The ticket is $ticket.", "remember": TICKET},
        ),
    )
    assert opened.code == 0, opened
    assert outcomes(opened.json) == [("mcp_jira_create_ticket", "ok"), ("mcp_git_git_checkout", "refused")]
    ticket = opened.json["answer"].removeprefix("The ticket is ").rstrip(".")
    branch, page = f"feature/{ticket.lower()}", f"docs/{ticket.lower()}.md"
    worked = program(
        *("agent", "--role", "backend_developer", "--json", "-m", f"Write the page for {ticket}."),
        "--model",
        script(
            folder,
            asks(("mcp_git_git_checkout", {"branch": branch, "create": True})),
            asks(("mcp_filesystem_write_file", {"path": page, "content": "# Returns\n\nFree for 30 days.\n"})),
            asks(("mcp_git_git_commit", {"message": f"{ticket}: describe returns", "paths": [page]})),
            asks(
                ("mcp_git_git_push", {"branch": branch}),
                ("mcp_jira_create_ticket", {"project": "SHOP", "summary": "x"}),
            ),
            asks(
                (
                    "mcp_github_create_pull_request",
                    {"repository": REPOSITORY, "title": f"{ticket}: describe returns", "head": branch},
                )
            ),
            asks(("mcp_github_merge_pull_request", {"repository": REPOSITORY, "number": 1})),
            {"text": "It is up for review."},
        ),
    )
    assert worked.code == 0, worked
    assert outcomes(worked.json) == [
        ("mcp_git_git_checkout", "ok"),
        ("mcp_filesystem_write_file", "ok"),
        ("mcp_git_git_commit", "ok"),
        ("mcp_git_git_push", "ok"),
        ("mcp_jira_create_ticket", "refused"),
        ("mcp_github_create_pull_request", "ok"),
        ("mcp_github_merge_pull_request", "refused"),
    ]
    _check(program, ticket, branch, page)
    records = {record["id"]: record for record in program("audit", "tail", "-n", "100", "--json").json}
    for document in (opened.json, worked.json):
        calls = [call for step in document["steps"] for call in step["calls"]]
        assert [records[call["record"]]["outcome"] for call in calls] == [call["outcome"] for call in calls]
        assert {records[name]["role"] for name in document["records"]} == {document["role"]}
    assert program("audit", "verify").code == 0


def _check(program: Squidbot, ticket: str, branch: str, page: str) -> None:
    """What the world itself says of it."""
    found = program("tools", "call", "jira/get_ticket", f"ticket={ticket}", "--json").json["structured"]
    assert (found["ticket"], found["summary"]) == (ticket, "Describe returns")
    bare = json.loads((Path(os.environ["SQUIDBOT_HOME"]) / "practice" / "practice.json").read_text())["bare_repository"]
    text = subprocess.run(
        ["git", "-C", bare, "show", f"{branch}:{page}"], capture_output=True, text=True, check=True, timeout=20
    )
    assert "Free for 30 days." in text.stdout
    made = program("audit", "tail", "--tool", "create_pull_request", "--json").json[-1]["result"]["structured"]
    number = f"number={made['number']}"
    pull = program("tools", "call", "github/get_pull_request", f"repository={REPOSITORY}", number, "--json").json
    assert (pull["structured"]["head"], pull["structured"]["state"]) == (branch, "open")
