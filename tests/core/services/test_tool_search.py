"""Tool search: the right tool among hundreds, by the words of whoever looks for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squidbot.core.domain.tools import ToolDefinition
from squidbot.core.services.tool_search import ToolSearch


def tool(server: str, name: str, description: str = "") -> ToolDefinition:
    return ToolDefinition(server, name, f"mcp_{server}_{name}", description)


TOOLS = [
    tool("github", "create_pull_request", "Open a pull request from one branch into another."),
    tool("github", "get_pull_request", "One pull request with its reviews."),
    tool("github", "merge_pull_request", "Merge a pull request, optionally approving it first."),
    tool("github", "create_issue", "Open an issue."),
    tool("jira", "create_ticket", "Open a ticket in a project."),
    tool("jira", "change_status", "Move a ticket to another status."),
    tool("git", "git_push", "Push a branch to the remote."),
    tool("weather", "getForecast", "What the weather will be."),
    *(tool("noise", f"report_{n}", f"Report number {n} of the pull of gravity.") for n in range(300)),
]


@pytest.mark.requirement("H-01")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("open a pull request", "create_pull_request"),
        ("merge pull requests", "merge_pull_request"),
        ("new ticket in the project", "create_ticket"),
        ("push my branch", "git_push"),
        ("move ticket to done status", "change_status"),
        ("forecast", "getForecast"),
        ("GITHUB ISSUE CREATE", "create_issue"),
    ],
)
def test_the_tool_that_is_meant_comes_first_among_hundreds(query: str, expected: str) -> None:
    """A model searches with words of its own, not with a tool's name."""
    assert ToolSearch(TOOLS).find(query)[0].tool == expected


def test_what_has_none_of_the_words_is_not_found() -> None:
    """An unrelated tool is worse than none: it would be tried."""
    assert ToolSearch(TOOLS).find("zebra") == []
    assert ToolSearch([]).find("anything") == []
    assert len(ToolSearch(TOOLS).find("report", limit=5)) == 5


@given(st.text(max_size=40))
def test_whatever_is_searched_for_every_hit_is_a_tool_once(query: str) -> None:
    """A search is no place for surprises."""
    found = ToolSearch(TOOLS).find(query)
    assert len(found) == len({hit.name for hit in found}) <= 8
