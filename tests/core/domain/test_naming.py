"""The names that agents see."""

import hashlib
import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squidbot.core.domain.naming import MAX_NAME, agent_names, bare_name, marked_name, may_have, nearest
from squidbot.core.domain.tools import ToolId

# Few letters and both kinds of separator, so that names clash often.
names = st.text(st.sampled_from("ab_-. é"), min_size=1, max_size=6) | st.text(min_size=1, max_size=80)
tools = st.builds(ToolId, names, names)


@st.composite
def clashing(draw: st.DrawFn) -> list[ToolId]:
    """Tools, some of which are called as others are marked."""
    found = draw(st.lists(tools, max_size=12))
    for tool in list(found):
        if draw(st.booleans()):
            server, _, rest = marked_name(tool).removeprefix("mcp_").partition("_")
            found.append(ToolId(server, rest))
    return found


@given(clashing())
def test_whoever_looks_for_a_name_looks_at_the_server_that_has_it(found: list[ToolId]) -> None:
    """A call starts only the servers that can have the tool: never must the right one be passed over."""
    for tool, name in agent_names(found).items():
        assert may_have(tool.server, name)
        assert may_have(tool.server, str(tool))


@pytest.mark.requirement("C-02")
@given(clashing())
def test_no_two_tools_have_one_name_and_every_name_is_one_that_providers_take(found: list[ToolId]) -> None:
    """A name that means two tools calls the wrong one sooner or later."""
    given_names = agent_names(found)
    assert set(given_names) == set(found)
    assert len(set(given_names.values())) == len(given_names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in given_names.values())


@pytest.mark.requirement("C-02")
@given(clashing(), st.randoms(use_true_random=False))
def test_names_do_not_depend_on_the_order_of_discovery(found: list[ToolId], chance: random.Random) -> None:
    """Servers start side by side; a name must mean tomorrow what it means today."""
    before = agent_names(found)
    chance.shuffle(found)
    assert agent_names(found) == before


@pytest.mark.requirement("C-02")
@given(tools)
def test_a_tool_that_clashes_with_nothing_has_its_plain_name_if_that_fits(tool: ToolId) -> None:
    """The digest is ugly, so it comes only where it must."""
    plain = bare_name(tool)
    expected = plain if len(plain) <= MAX_NAME else marked_name(tool)
    assert agent_names([tool, tool]) == {tool: expected}


@pytest.mark.requirement("C-02")
def test_a_long_name_ends_in_the_digest_of_its_server_and_tool() -> None:
    """The form is part of the outer surface: grants and transcripts hold such names."""
    tool = ToolId("server", "t" * 80)
    digest = hashlib.sha256(b"server\0" + b"t" * 80).hexdigest()[:8]
    assert agent_names([tool])[tool] == f"{('mcp_server_' + 't' * 80)[:55]}-{digest}"
    assert len(agent_names([tool])[tool]) == 64


@pytest.mark.requirement("C-02", "C-03")
def test_in_a_clash_every_party_is_marked_and_the_bare_name_means_none() -> None:
    """Whoever was first would otherwise depend on luck."""
    clash = [ToolId("a_b", "c"), ToolId("a", "b_c")]
    found = agent_names(clash)
    assert found == {tool: marked_name(tool) for tool in clash}
    assert "mcp_a_b_c" not in found.values()


@pytest.mark.requirement("C-02")
def test_foreign_characters_become_dashes_one_for_one() -> None:
    """Providers refuse all others, and the name should still be told by its shape."""
    assert bare_name(ToolId("my.server", "grüß dich/now")) == "mcp_my-server_gr---dich-now"


@pytest.mark.requirement("C-02")
def test_a_tool_that_is_called_as_another_is_marked_gives_way() -> None:
    """A server could name its tool so on purpose, to be called in another's place."""
    victims = [ToolId("a_b", "c"), ToolId("a", "b_c")]
    server, _, rest = marked_name(victims[0]).removeprefix("mcp_").partition("_")
    thief = ToolId(server, rest)
    assert bare_name(thief) == marked_name(victims[0])
    found = agent_names([*victims, thief])
    assert found[victims[0]] == marked_name(victims[0])
    assert found[thief] == marked_name(thief)


def test_two_tools_with_one_digest_get_no_name_at_all() -> None:
    """Eight digits can be forged with patience; then nobody is called rather than the wrong one."""
    forged = [ToolId("a" * 60, "b\0c"), ToolId("a" * 60 + "\0b", "c")]
    assert marked_name(forged[0]) == marked_name(forged[1])
    other = ToolId("server", "tool")
    assert agent_names([*forged, other]) == {other: "mcp_server_tool"}


def test_the_nearest_names_are_told_and_those_of_a_hostile_server_take_no_time() -> None:
    """Thousands of long names that are nearly alike would keep everybody waiting for one misspelt call."""
    assert nearest("git_comit", ["git_push", "git_commit", "git_log"], most=1) == ["git_commit"]
    assert nearest("x" * 65, ["x" * 64]) == []
    hostile = [f"{'a' * (50 + n % 10)}{n}" for n in range(2_000)]
    began = time.process_time()
    assert nearest("a" * 60, hostile)
    assert time.process_time() - began < 1.0
