"""Who may use what: a whitelist, deny by default, and the rule that decided."""

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squidbot.core.domain.audit import GrantChange
from squidbot.core.domain.roles import Grant, MCPToolMapper, Role

MAPPER = MCPToolMapper()
EVERY_TOOL = sorted({(g.server, g.tool) for role in MAPPER.roles.values() for g in role.grants})
WHITELIST = json.loads((Path(__file__).parent / "roles.json").read_text())
"""The nine roles as the promise has them, written down a second time."""


def mapper(*grants: Grant, changes: tuple[GrantChange, ...] = ()) -> MCPToolMapper:
    return MCPToolMapper({"dev": Role("dev", "", grants)}, changes=changes)


@pytest.mark.requirement("E-01", "E-02")
def test_the_nine_roles_have_exactly_the_grants_that_are_promised() -> None:
    """A grant too many is a hole, one too few is a role that cannot work."""
    assert {role: MAPPER.get_all_tools_for_role(role) for role in MAPPER.roles} == WHITELIST
    assert len(EVERY_TOOL) == 27


@pytest.mark.requirement("E-01")
@pytest.mark.parametrize("role", [*WHITELIST, "", "nobody", "operator", "admin", "Backend_Developer"])
def test_exactly_the_whitelist_may_be_used(role: str) -> None:
    """What is not named is refused, whoever asks and however the name is spelt."""
    for server, tool in EVERY_TOOL:
        granted = tool in WHITELIST.get(role, {}).get(server, [])
        assert MAPPER.can_use_tool(role, server, tool) is granted
        for spelling in {tool.upper(), tool.title(), f"mcp_{server}_{tool}", f" {tool}", f"{tool}\0", f"{tool}\n"} | {
            unicodedata.normalize("NFKD", tool.replace("i", "í")),
            tool.replace("_", "\uff3f"),
            tool.replace("s", "\u017f"),
        }:
            assert spelling == tool or not MAPPER.can_use_tool(role, server, spelling)
        assert not MAPPER.can_use_tool(role, server.upper(), tool)


@given(role=st.text(), server=st.text(), tool=st.text())
def test_what_nobody_wrote_down_is_refused(role: str, server: str, tool: str) -> None:
    """Deny by default, for every name there is."""
    named = tool in WHITELIST.get(role, {}).get(server, [])
    assert MAPPER.can_use_tool(role, server, tool) is named


@pytest.mark.requirement("E-02")
def test_a_decision_names_its_rule_and_its_reason() -> None:
    """Whoever is refused has to be able to see why."""
    yes = MAPPER.decide("tech_lead", "git", "git_merge")
    assert (yes.allowed, yes.rule) == (True, "git: git_merge (shipped)")
    no = MAPPER.decide("designer", "git", "git_push")
    assert (no.allowed, no.rule, no.reason) == (False, None, "role 'designer' has nothing of server 'git'")
    other = MAPPER.decide("designer", "github", "merge_pull_request")
    assert "no grant of role 'designer' names 'merge_pull_request'" in other.reason
    assert MAPPER.decide("ghost", "git", "git_push").reason == "there is no role 'ghost'"


@pytest.mark.requirement("E-11")
@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        ({"branch": "feature/login"}, True),
        ({"branch": "main"}, False),
        ({}, False),
        ({"branch": None}, False),
        ({"branch": ["feature/a", "feature/b"]}, True),
        ({"branch": ["feature/a", "main"]}, False),
        ({"branch": []}, False),
        ({"branch": {"name": "feature/a"}}, False),
        ({"branch": "feature/../main"}, False),
        ({"branch": "feature/a\nmain"}, False),
        ({"branch": "FEATURE/a"}, False),
        ({"branch": "feature/a", "Branch": "main"}, False),
        ({"branch": "feature/a", "BRANCH": "feature/b"}, True),
        ({"Branch": "feature/a"}, False),
    ],
)
def test_a_condition_holds_for_every_value_that_is_given(arguments: dict[str, object], allowed: bool) -> None:
    """A condition that can be stepped around is none."""
    conditional = mapper(Grant("git", "git_push", (("branch", ("feature/*",)),)))
    decision = conditional.decide("dev", "git", "git_push", arguments)
    assert decision.allowed is allowed
    assert decision.rule == "git: git_push when branch matches feature/* (settings)"
    if not allowed:
        assert "'branch' must" in decision.reason
    assert conditional.can_use_tool("dev", "git", "git_push")


@pytest.mark.requirement("E-11")
def test_conditions_reach_inside_arguments_and_take_numbers_and_truth_as_json_writes_them() -> None:
    """A review that approves is another thing than one that comments."""
    grants = mapper(Grant("github", "update_pull_request", (("review.event", ("comment",)), ("draft", ("true",)))))

    def decide(**arguments: object) -> bool:
        return grants.decide("dev", "github", "update_pull_request", arguments).allowed

    assert decide(review={"event": "comment"}, draft=True)
    assert not decide(review={"event": "approve"}, draft=True)
    assert not decide(review="comment", draft=True)
    assert not decide(review={"event": "comment"}, draft=False)


@pytest.mark.requirement("E-11")
@pytest.mark.parametrize(
    "arguments",
    [
        {"review.event": "comment"},
        {"review.event": "comment", "review": {"event": "approve"}},
        {"review.event": "approve", "review": {"event": "comment"}},
        {"review": {"event": "comment", "Event": "approve"}},
        {"review": {"event": "comment"}, "Review": {"event": "approve"}},
        {"review": {"event": "comment"}, "REVIEW": [{"event": "approve"}]},
    ],
)
def test_no_second_spelling_of_an_argument_gets_past_a_condition(arguments: dict[str, object]) -> None:
    """Which of two spellings a server reads nobody knows: Go's do not look at capitals, others take what is not named."""
    grants = mapper(Grant("github", "update_pull_request", (("review.event", ("comment",)),)))
    assert not grants.decide("dev", "github", "update_pull_request", arguments).allowed


def test_a_plain_grant_decides_before_a_conditional_one() -> None:
    """Somebody who may do something anyhow is not held to a condition elsewhere."""
    both = mapper(Grant("git", "git_push", (("branch", ("x",)),)), Grant("git", "git_*"))
    assert both.decide("dev", "git", "git_push", {"branch": "main"}).allowed


def test_fixed_arguments_that_can_never_meet_a_condition_hide_the_tool() -> None:
    """What cannot be called is not listed."""
    conditional = mapper(Grant("git", "push_main", (("branch", ("feature/*",)),)))
    assert not conditional.decide("dev", "git", "push_main", fixed={"branch": "main"}).allowed
    assert conditional.decide("dev", "git", "push_main", fixed={"force": False}).allowed


@pytest.mark.requirement("E-04")
def test_the_database_stands_above_the_settings_and_a_name_above_a_glob() -> None:
    """Whoever revokes in a hurry must be sure that it holds."""
    changes = (
        GrantChange("dev", "git", "git_*", enabled=False),
        GrantChange("dev", "git", "git_log", enabled=True),
        GrantChange("dev", "jira", "get_ticket", enabled=True),
        GrantChange("ghost", "git", "*", enabled=True),
    )
    changed = mapper(Grant("git", "git_push"), Grant("git", "git_log"), changes=changes)
    assert not changed.can_use_tool("dev", "git", "git_push")
    assert changed.can_use_tool("dev", "git", "git_log")
    assert changed.can_use_tool("dev", "jira", "get_ticket")
    assert not changed.can_use_tool("ghost", "git", "git_log")
    assert changed.get_all_tools_for_role("dev") == {"git": ["git_log"], "jira": ["get_ticket"]}
    assert changed.decide("dev", "git", "git_push").reason == "revoked in the database"
    assert changed.revision != changed.with_changes(()).revision


def test_a_role_whose_last_tool_of_a_server_is_revoked_has_nothing_of_it() -> None:
    """Prompts and resources of a server are for those who have something of it."""
    revoked = mapper(Grant("git", "git_log"), changes=(GrantChange("dev", "git", "git_log", enabled=False),))
    assert revoked.get_servers_for_role("dev") == []
    assert not revoked.has_server("dev", "git")


def test_the_revision_tells_grants_apart_and_nothing_else() -> None:
    """A record that names a revision says under which grants it was made."""
    one = mapper(Grant("git", "a"), Grant("git", "b"))
    assert one.revision == mapper(Grant("git", "b"), Grant("git", "a", source="shipped")).revision
    assert one.revision != mapper(Grant("git", "a")).revision
