"""The scenes of the story: who does what, with which arguments, and what the world must look like afterwards."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from squidbot.core.domain.tools import ToolId

Facts: TypeAlias = dict[str, Any]
"""What the story has come to know: the ticket, the branch, the commit, the pull request."""
Seen: TypeAlias = tuple[ToolId, dict[str, Any], dict[str, Any]]
"""A tool to look with, its arguments, and what its answer must hold."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One step by one role."""

    step: str
    role: str
    tool: ToolId
    arguments: Callable[[Facts], dict[str, Any]]
    learn: Callable[[Mapping[str, Any]], Facts] = lambda _: {}
    seen: Callable[[Facts], Seen] | None = None
    only_in_practice: bool = False


def _page(facts: Facts) -> str:
    return f"docs/{facts['ticket'].lower()}.md"


def _ticket_is(status: str) -> Callable[[Facts], Seen]:
    return lambda facts: (ToolId("jira", "get_ticket"), {"ticket": facts["ticket"]}, {"status": status})


def _pull(facts: Facts, **more: Any) -> dict[str, Any]:
    return {"repository": facts["repository"], "number": facts["number"], **more}


SCENES: tuple[Scene, ...] = (
    Scene(
        "opens a ticket",
        "project_manager",
        ToolId("jira", "create_ticket"),
        lambda facts: {
            "project": facts["project"],
            "summary": "Say in the docs how returns are handled",
            "description": "Customers ask how to send something back.\n\n- who pays\n- how long it takes",
        },
        learn=lambda found: {"ticket": found["ticket"]},
        seen=_ticket_is("To Do"),
    ),
    Scene(
        "says that work on it begins",
        "project_manager",
        ToolId("jira", "change_status"),
        lambda facts: {"ticket": facts["ticket"], "status": "In Progress"},
        seen=_ticket_is("In Progress"),
    ),
    Scene(
        "goes to the main branch",
        "backend_developer",
        ToolId("git", "git_checkout"),
        lambda _: {"branch": "main"},
        seen=lambda _: (ToolId("git", "git_status"), {}, {"branch": "main"}),
    ),
    Scene("takes in what others did", "backend_developer", ToolId("git", "git_pull"), lambda _: {}),
    Scene(
        "begins a branch",
        "backend_developer",
        ToolId("git", "git_checkout"),
        lambda facts: {"branch": f"feature/{facts['ticket'].lower()}", "create": True},
        learn=lambda found: {"branch": found["branch"]},
        seen=lambda facts: (ToolId("git", "git_status"), {}, {"branch": facts["branch"]}),
    ),
    Scene(
        "writes the page",
        "backend_developer",
        ToolId("filesystem", "write_file"),
        lambda facts: {
            "path": _page(facts),
            "content": f"# Returns\n\nWritten for {facts['ticket']}.\n\nReturns are free for 30 days.\n",
        },
        seen=lambda facts: (ToolId("filesystem", "read_file"), {"path": _page(facts)}, {"kind": "text"}),
    ),
    Scene(
        "commits it",
        "backend_developer",
        ToolId("git", "git_commit"),
        lambda facts: {"message": f"{facts['ticket']}: describe returns", "paths": [_page(facts)]},
        learn=lambda found: {"commit": found["commit"]},
        seen=lambda facts: (ToolId("git", "git_log"), {"limit": 1}, {"commits": facts["commit"]}),
    ),
    Scene(
        "pushes the branch",
        "backend_developer",
        ToolId("git", "git_push"),
        lambda facts: {"branch": facts["branch"]},
        seen=lambda facts: (ToolId("git", "git_branch"), {"remotes": True}, {"branches": f"origin/{facts['branch']}"}),
    ),
    Scene(
        "opens a pull request",
        "backend_developer",
        ToolId("github", "create_pull_request"),
        lambda facts: {
            "repository": facts["repository"],
            "title": f"{facts['ticket']}: describe returns",
            "head": facts["branch"],
            "body": f"Closes {facts['ticket']}.",
        },
        learn=lambda found: {"number": found["number"], "url": found["url"], "head_sha": found["head_sha"]},
        seen=lambda facts: (ToolId("github", "get_pull_request"), _pull(facts), {"head_sha": facts["commit"]}),
    ),
    Scene(
        "sends the ticket to review",
        "project_manager",
        ToolId("jira", "change_status"),
        lambda facts: {"ticket": facts["ticket"], "status": "In Review"},
        seen=_ticket_is("In Review"),
        only_in_practice=True,
    ),
    Scene(
        "reviews it",
        "tech_lead",
        ToolId("github", "update_pull_request"),
        lambda facts: _pull(facts, review={"event": "comment", "body": "Short and clear. Good to merge."}),
        seen=lambda facts: (ToolId("github", "get_pull_request"), _pull(facts), {"reviews": "Good to merge"}),
    ),
    Scene(
        "merges it",
        "tech_lead",
        ToolId("github", "merge_pull_request"),
        lambda facts: _pull(facts, expected_head=facts["head_sha"]),
        seen=lambda facts: (ToolId("github", "get_pull_request"), _pull(facts), {"merged": True}),
    ),
    Scene(
        "says so on the ticket",
        "project_manager",
        ToolId("jira", "add_comment"),
        lambda facts: {"ticket": facts["ticket"], "body": f"Merged with {facts['url']}"},
        seen=lambda facts: (
            ToolId("jira", "get_ticket"),
            {"ticket": facts["ticket"]},
            {"comments": f"Merged with {facts['url']}"},
        ),
    ),
    Scene(
        "calls the ticket done",
        "project_manager",
        ToolId("jira", "change_status"),
        lambda facts: {"ticket": facts["ticket"], "status": "Done"},
        seen=_ticket_is("Done"),
    ),
)
