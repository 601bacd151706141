"""Questions about the grants as a whole."""

import pytest

from squidbot.core.domain.audit import GrantChange
from squidbot.core.domain.role_review import (
    Dangling,
    Granted,
    Replayed,
    dangling,
    difference,
    legs_of,
    simulate,
    ungranted,
)
from squidbot.core.domain.roles import Grant, MCPToolMapper, Role
from squidbot.core.domain.tools import ToolId


def mapper(*grants: Grant, changes: tuple[GrantChange, ...] = ()) -> MCPToolMapper:
    return MCPToolMapper({"dev": Role("dev", "", grants)}, changes=changes)


@pytest.mark.requirement("C-07", "E-02")
def test_a_grant_that_nothing_answers_to_is_found_with_the_nearest_name() -> None:
    """A misspelt grant is a role that cannot work, and nobody would notice."""
    grants = mapper(
        Grant("git", "git_psuh"),
        Grant("git", "git_*"),
        Grant("gti", "git_log"),
        Grant("jira", "get_ticket", source="shipped"),
        Grant("slow", "anything"),
        changes=(GrantChange("dev", "git", "git_lgo", enabled=True), GrantChange("dev", "git", "x", enabled=False)),
    )
    found = dangling(grants, {"git": ["git_push", "git_log"]}, known=["git", "slow"])
    assert found == [
        Dangling("dev", "git", "git_psuh", "settings", "git_push"),
        Dangling("dev", "gti", "git_log", "settings", "git"),
        Dangling("dev", "git", "git_lgo", "database", "git_log"),
    ]


def test_tools_that_nobody_may_use_are_named() -> None:
    """A server that is run for nobody."""
    assert ungranted(mapper(Grant("git", "git_log")), {"git": ["git_log", "git_push"]}) == [ToolId("git", "git_push")]


@pytest.mark.requirement("E-02")
def test_a_difference_names_what_is_granted_more_and_what_less() -> None:
    """Reviewed like code."""
    before = mapper(Grant("git", "git_log"), Grant("git", "git_push"))
    after = mapper(Grant("git", "git_log"), Grant("git", "git_push", (("branch", ("feature/*",)),)))
    added, removed = difference(before, after)
    assert added == [Granted("dev", "git", "git_push", "branch matches feature/*")]
    assert removed == [Granted("dev", "git", "git_push", "")]


@pytest.mark.requirement("E-02")
def test_recorded_calls_are_decided_anew() -> None:
    """Whoever tightens a grant sees beforehand what would have been refused."""
    push, log = ToolId("git", "git_push"), ToolId("git", "git_log")
    calls = [
        Replayed("dev", push, {"branch": "feature/a"}, refused=False),
        Replayed("dev", push, {"branch": "main"}, refused=False),
        Replayed("dev", push, {"branch": "main"}, refused=False),
        Replayed("dev", push, None, refused=False),
        Replayed("dev", log, {}, refused=True),
    ]
    after = mapper(Grant("git", "git_push", (("branch", ("feature/*",)),)), Grant("git", "git_log"))
    refused, allowed = simulate(calls, after)
    assert [(turn.tool, turn.calls) for turn in refused] == [("git_push", 2)]
    assert [(turn.tool, turn.calls) for turn in allowed] == [("git_log", 1)]


def test_the_three_legs_on_which_data_walks_out_are_told_by_labels() -> None:
    """Untrusted in, private in, and a way out: all three in one role is what an injection needs."""
    labels = {"hub": {"untrusted": ["get_issue"], "egress": ["create_*"]}, "files": {"private": ["read_*"]}}
    tools = {"hub": ["get_issue", "create_issue"], "files": ["read_file"]}
    all_three = mapper(Grant("hub", "*"), Grant("files", "*"))
    assert all(legs_of(all_three, "dev", tools, labels).values())  # type: ignore[arg-type]
    two = legs_of(mapper(Grant("hub", "*")), "dev", tools, labels)  # type: ignore[arg-type]
    assert two == {"untrusted": [("hub", "get_issue")], "private": [], "egress": [("hub", "create_issue")]}
