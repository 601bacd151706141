"""What a server lists: each item is judged alone, and one that cannot be used costs only itself."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squidbot.adapters.mcp.catalogue import Catalogue
from squidbot.adapters.mcp.listing import prompts_of, resources_of, tools_of
from squidbot.adapters.mcp.remembered import Remembered
from squidbot.config.schema import MCPServerConfig
from squidbot.core.domain.prompts import PromptArgument

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def _tools(*items: Any, allow: list[str] | None = None, deny: tuple[str, ...] = ()) -> list[str]:
    return [tool.tool for tool in tools_of(items, server="s", allow=allow, deny=deny)]


@pytest.mark.requirement("C-01")
@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ("words", "it is no object"),
        ({"inputSchema": {}}, "it has no name"),
        ({"name": ""}, "it has no name"),
        ({"name": "x" * 257}, "more than 256 characters"),
        ({"name": "bad", "inputSchema": "string"}, "its inputSchema is no object"),
        ({"name": "bad", "inputSchema": {"type": "array"}}, "of type 'array', not 'object'"),
        ({"name": "bad", "inputSchema": {"properties": []}}, "the properties of its inputSchema are no object"),
        ({"name": "good"}, "another of the same name came first"),
    ],
)
def test_a_hopeless_tool_is_left_out_alone_with_a_warning(item: Any, reason: str, logged: list[str]) -> None:
    """One careless author must not take a server's other tools away."""
    assert _tools({"name": "good"}, item, {"name": "fine"}) == ["good", "fine"]
    (warning,) = logged
    assert "server 's': tool" in warning
    assert reason in warning


@pytest.mark.requirement("B-15", "C-01")
def test_a_thousand_hopeless_tools_do_not_fill_the_log(logged: list[str]) -> None:
    """A log that one server can fill is one in which nobody finds anything."""
    assert _tools(*range(1_000), {"name": "good"}) == ["good"]
    assert len(logged) == 6
    assert "995 more tools are left out" in logged[-1]


@pytest.mark.requirement("C-01")
@settings(deadline=None)
@given(st.lists(json_values | st.fixed_dictionaries({"name": st.text()}, optional={"inputSchema": json_values})))
def test_any_list_at_all_can_be_read(items: list[Any]) -> None:
    """Whatever a server lists, it never keeps the others from being listed."""
    tools = tools_of(items, server="s", allow=None, deny=())
    assert len({tool.tool for tool in tools}) == len(tools)
    assert all(tool.parameters["type"] == "object" and "properties" in tool.parameters for tool in tools)
    known = Remembered("modern", "2026-07-28", tools=items, prompts=items, resources=items, templates=items)
    assert len(Catalogue.of(known, MCPServerConfig(name="s", command="x")).tools) <= len(tools)


def test_the_settings_choose_tools_by_globs() -> None:
    """What a person does not want is not there, and a denial wins."""
    items = [{"name": name} for name in ("read_file", "read_all", "write_file", "Read_file")]
    assert _tools(*items, allow=["read_*"], deny=("*_all",)) == ["read_file"]
    assert _tools(*items, allow=[]) == []
    assert len(_tools(*items)) == 4


def test_a_long_description_is_cut_for_models_and_kept_whole_in_the_raw_item() -> None:
    """Ten megabytes of description would be ten megabytes of prompt."""
    item = {"name": "t", "description": "x" * 10_000, "title": "T", "annotations": {"readOnlyHint": True}}
    (tool,) = tools_of([item], server="s", allow=None, deny=())
    assert len(tool.description) == 4096
    assert tool.raw == item
    assert (tool.title, tool.annotations) == ("T", {"readOnlyHint": True})


@pytest.mark.requirement("C-04")
def test_prompts_keep_their_arguments() -> None:
    """A prompt can only be filled if one knows what it needs."""
    arguments = [{"name": "who", "description": "Whom", "required": True}, {"name": "how"}, {"description": "nameless"}]
    items = [{"name": "greet", "arguments": arguments}, {"name": "bad", "arguments": {"a": 1}}]
    (prompt,) = prompts_of(items, server="s")
    assert prompt.arguments == (PromptArgument("who", "Whom", required=True), PromptArgument("how"))


@pytest.mark.requirement("C-08")
def test_resources_and_templates_are_told_apart() -> None:
    """A template is no address until it is filled."""
    (resource,) = resources_of([{"uri": "a://b", "name": "b", "size": 3}, {"name": "no uri"}], server="s")
    (template,) = resources_of([{"uriTemplate": "a://{x}"}, {"uri": "a://b"}], server="s", templates=True)
    assert (resource.uri, resource.size, resource.is_template) == ("a://b", 3, False)
    assert (template.uri, template.is_template) == ("a://{x}", True)


def test_settings_may_leave_tools_or_prompts_out_altogether() -> None:
    """Some servers are wanted for their resources alone."""
    known = Remembered(
        "legacy", "2025-06-18", tools=[{"name": "t"}], prompts=[{"name": "p"}], resources=[{"uri": "a://b"}]
    )
    entry = MCPServerConfig(name="s", command="x", load_tools=False, load_prompts=False)
    catalogue = Catalogue.of(known, entry)
    assert (dict(catalogue.tools), catalogue.prompts) == ({}, ())
    assert [resource.uri for resource in catalogue.resources] == ["a://b"]


def test_in_the_stateless_era_a_tool_with_invalid_header_annotations_is_left_out(logged: list[str]) -> None:
    """The revision demands it: a header that cannot be formed would be refused by every proxy."""
    header = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    broken = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "no good name!"}}}
    listed: list[Any] = [{"name": "good", "inputSchema": header}, {"name": "bad", "inputSchema": broken}]
    entry = MCPServerConfig(name="s", command="x")
    modern = Catalogue.of(Remembered("modern", "2026-07-28", tools=listed), entry)
    assert list(modern.tools) == ["good"]
    assert dict(modern.headers["good"]) == {("region",): "Region"}
    assert "invalid x-mcp-header" in logged[0]
    legacy = Catalogue.of(Remembered("legacy", "2025-06-18", tools=listed), entry)
    assert (list(legacy.tools), dict(legacy.headers)) == (["good", "bad"], {})
