"""The guarded door: what may pass, what is refused, and what is written down of either."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squidbot.core.domain.callers import Caller
from squidbot.core.domain.content import TextContent
from squidbot.core.domain.errors import (
    InvalidArguments,
    MCPConnectionError,
    NotRecorded,
    RateLimited,
    ToolNotPermitted,
    UnknownTool,
)
from squidbot.core.domain.roles import Grant, MCPToolMapper, Role
from squidbot.core.domain.tools import ToolId, ToolResult
from squidbot.core.ports import Permit
from tests.fakes.door import FakeLimiter, FakeTool, World

pytestmark = pytest.mark.anyio

OPERATOR = Caller("operator", member="local:ann", origin="cli")


def answer(text: str, **more: Any) -> Any:
    def give(_arguments: Mapping[str, Any]) -> ToolResult:
        return ToolResult((TextContent(text),), **more)

    return give


@pytest.mark.requirement("E-03", "E-05")
async def test_a_permitted_call_is_intended_made_and_recorded() -> None:
    """The way of one call, from its intent to its end."""
    push = FakeTool("git", "git_push", answer("pushed"))
    world = World([push])
    result = await world.door.execute_tool("backend_developer", "git", "git_push", {"branch": "x"})
    assert (result.text, push.calls) == ("pushed", [{"branch": "x"}])
    [intent], [record] = world.log.begun, world.log.closed
    assert intent.id == record.id == result.record
    assert (record.role, record.server, record.tool, record.outcome) == ("backend_developer", "git", "git_push", "ok")
    assert (record.success, record.error_message, record.origin) == (True, None, "library")
    assert json.loads(record.arguments) == {"branch": "x"}
    assert json.loads(record.result or "") == {"content": [{"type": "text", "text": "pushed"}]}
    assert record.revision == world.door.permissions.revision
    assert world.seen == [record]
    assert world.limiter.held == 0


@pytest.mark.requirement("E-03", "E-05")
@pytest.mark.parametrize("role", ["designer", "", "ghost", "operator", "admin"])
async def test_what_a_role_may_not_reaches_no_server_and_is_recorded(role: str) -> None:
    """Refusing is half of the work; the other half is being able to show it."""
    push = FakeTool("git", "git_push")
    world = World([push])
    with pytest.raises(PermissionError) as refused:
        await world.door.execute_tool(role, "git", "git_push", {"branch": "main"})
    assert isinstance(refused.value, ToolNotPermitted)
    assert (push.calls, world.log.begun) == ([], [])
    [record] = world.log.closed
    assert (record.outcome, record.success, record.id) == ("refused", False, refused.value.record)
    assert f"role {role!r} may not use 'git_push' of server 'git'" in (record.error_message or "")


@pytest.mark.requirement("E-03")
@pytest.mark.parametrize("origin", ["mcp", "api", "dashboard", "library"])
async def test_nobody_from_afar_is_the_operator(origin: Any) -> None:
    """The person at the machine has every tool; a token that says so has none."""
    tool = FakeTool("anything", "at_all")
    world = World([tool])
    assert (await world.door.execute_tool(OPERATOR, "anything", "at_all")).text == "done"
    with pytest.raises(ToolNotPermitted):
        await world.door.execute_tool(Caller("operator", origin=origin), "anything", "at_all")
    assert world.door.tools(Caller("operator", origin=origin)) == []
    assert len(tool.calls) == 1


@pytest.mark.requirement("E-03")
async def test_unknown_tools_wrong_arguments_and_absent_servers_are_told_apart_and_recorded() -> None:
    """Each is somebody else's mistake, and each has its own way to be mended."""
    world = World([FakeTool("git", "git_log", parameters={"required": ["count"]})], away=["jira"])
    with pytest.raises(UnknownTool, match="has no tool 'git_lag'") as unknown:
        await world.door.execute_tool(OPERATOR, "git", "git_lag")
    assert unknown.value.nearest == ("git_log",)
    with pytest.raises(InvalidArguments, match="count: is needed"):
        await world.door.execute_tool(OPERATOR, "git", "git_log")
    away = await world.door.execute_tool(OPERATOR, "jira", "get_ticket")
    assert away.text == "server 'jira' is not available: it exited with code 9"
    assert [record.outcome for record in world.log.closed] == ["refused", "refused", "server_error"]
    assert world.limiter.left == 1_000_000


@pytest.mark.requirement("E-05", "E-07")
async def test_a_limit_refuses_with_its_wait_and_is_recorded() -> None:
    """Whoever is limited must know until when."""
    tool = FakeTool("git", "git_log")
    world = World([tool])
    world.limiter.left = 0
    with pytest.raises(RateLimited) as limited:
        await world.door.execute_tool("tech_lead", "git", "git_log")
    assert limited.value.retry_after == 2.5
    assert [record.outcome for record in world.log.closed] == ["limited"]
    assert tool.calls == []


@pytest.mark.requirement("E-05")
async def test_without_a_record_nothing_is_done() -> None:
    """No record, no call: not even one that changes nothing."""
    push, log = FakeTool("git", "git_push"), FakeTool("git", "git_log")
    world = World([push, log], read_only=["git_log"])
    world.log.broken = True
    for tool in ("git_push", "git_log"):
        with pytest.raises(NotRecorded):
            await world.door.execute_tool("backend_developer", "git", tool)
    assert push.calls == log.calls == []
    assert world.limiter.held == 0
    world.log.broken = False
    assert (await world.door.execute_tool("backend_developer", "git", "git_push")).text == "done"


@pytest.mark.requirement("E-05")
async def test_a_server_cannot_say_of_its_own_tool_that_it_needs_no_intent() -> None:
    """An annotation is the word of whoever may want to leave no trace; only the settings are ours."""
    listed, hinted = FakeTool("git", "git_log"), FakeTool("git", "git_push")
    hinted.definition = replace(hinted.definition, annotations={"readOnlyHint": True, "destructiveHint": False})
    world = World([listed, hinted], read_only=["git_log"])
    for tool in ("git_push", "git_log", "git_push", "git_log"):
        await world.door.execute_tool("backend_developer", "git", tool)
    assert [intent.tool for intent in world.log.begun] == ["git_push", "git_push"]
    assert len(world.log.closed) == 4


@pytest.mark.requirement("E-05")
async def test_what_changes_nothing_goes_without_an_intent_only_while_the_log_has_just_proved_itself() -> None:
    """A read is quick where that is safe: the settings list it, and the log was written to a moment ago."""
    world = World([FakeTool("git", "git_log"), FakeTool("git", "git_push")], read_only=["git_log"])
    await world.door.execute_tool("backend_developer", "git", "git_log")
    await world.door.execute_tool("backend_developer", "git", "git_log")
    await world.door.execute_tool("backend_developer", "git", "git_push")
    assert [intent.tool for intent in world.log.begun] == ["git_log", "git_push"]
    world.clock.now += 5
    await world.door.execute_tool("backend_developer", "git", "git_log")
    assert [intent.tool for intent in world.log.begun] == ["git_log", "git_push", "git_log"]
    assert len(world.log.closed) == 4


async def test_an_answer_that_cannot_be_recorded_is_not_given() -> None:
    """What was answered is on disk: so what cannot be put there is no answer."""
    world = World([])

    def fill_the_disk(_arguments: Mapping[str, Any]) -> ToolResult:
        world.log.broken = True
        return ToolResult((TextContent("done"),))

    tool = FakeTool("git", "git_push", fill_the_disk)
    world = World([tool])
    with pytest.raises(NotRecorded):
        await world.door.execute_tool("backend_developer", "git", "git_push")
    assert (len(tool.calls), len(world.log.begun), world.log.closed) == (1, 1, [])


@pytest.mark.requirement("E-05", "D-04")
@pytest.mark.parametrize(
    ("kind", "outcome"), [("tool", "tool_error"), ("timeout", "timeout"), ("unavailable", "server_error")]
)
async def test_a_failure_is_an_answer_and_its_outcome_says_whose(kind: Any, outcome: str) -> None:
    """Tools fail by returning."""
    world = World([FakeTool("git", "git_log", lambda _: ToolResult.failed("it broke", kind))])
    result = await world.door.execute_tool("tech_lead", "git", "git_log")
    assert (result.is_error, result.text) == (True, "it broke")
    [record] = world.log.closed
    assert (record.outcome, record.success, record.error_message) == (outcome, False, "it broke")


async def test_a_tool_that_raises_is_an_error_result_without_its_inner_words() -> None:
    """A fault of ours is no traceback in an agent's conversation."""

    def explode(_arguments: Mapping[str, Any]) -> ToolResult:
        raise RuntimeError("/secret/path")

    world = World([FakeTool("git", "git_log", explode)])
    result = await world.door.execute_tool("tech_lead", "git", "git_log")
    assert result.text == "git/git_log failed inside squidbot: RuntimeError"
    assert world.log.closed[0].outcome == "server_error"


@pytest.mark.requirement("E-05")
async def test_a_caller_who_leaves_leaves_a_closed_record() -> None:
    """Cancelling must not be a way around the record."""
    began = anyio.Event()

    class Slow(FakeTool):
        async def execute(self, arguments: Mapping[str, Any], **_: Any) -> ToolResult:
            began.set()
            await anyio.sleep_forever()
            raise AssertionError

    world = World([Slow("git", "git_push")])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(world.door.execute_tool, "backend_developer", "git", "git_push")
        await began.wait()
        tasks.cancel_scope.cancel()
    [record] = world.log.closed
    assert (record.outcome, record.id) == ("cancelled", world.log.begun[0].id)
    assert world.limiter.held == 0


@pytest.mark.requirement("B-14", "E-05")
async def test_nobody_waits_while_a_large_answer_is_looked_through_for_secrets() -> None:
    """Megabytes of one server's words, and fifty secrets: the loop goes round for all others meanwhile."""
    secrets = [f"s3cr3t-of-a-server-{number:020}" for number in range(50)]
    large = "many ordinary words, " * 150_000
    world = World([FakeTool("git", "git_log", answer(large + secrets[7]))], secrets=secrets)
    rounds = 0

    async def go_round() -> None:
        nonlocal rounds
        while True:
            await anyio.lowlevel.checkpoint()
            rounds += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go_round)
        result = await world.door.execute_tool("backend_developer", "git", "git_log")
        tasks.cancel_scope.cancel()
    assert rounds > 100
    assert result.text.startswith(large + "[redacted:")


@pytest.mark.requirement("E-05")
@pytest.mark.parametrize("kind", ["tool", "resource"])
async def test_a_caller_who_leaves_before_being_let_in_leaves_a_closed_record_too(kind: str) -> None:
    """Whoever tried has tried, and is recorded once."""
    began = anyio.Event()

    class Queueing(FakeLimiter):
        async def acquire(self, role: str, tool: ToolId, *, changes: bool = True) -> Permit:
            began.set()
            await anyio.sleep_forever()
            raise AssertionError

    world = World([tool := FakeTool("git", "git_push")], limiter=Queueing())
    async with anyio.create_task_group() as tasks:
        if kind == "tool":
            tasks.start_soon(world.door.execute_tool, "backend_developer", "git", "git_push")
        else:
            tasks.start_soon(world.door.read_resource, Caller("backend_developer"), "git", "file:///x")
        await began.wait()
        tasks.cancel_scope.cancel()
    assert [record.outcome for record in world.log.closed] == ["cancelled"]
    assert not tool.calls


@pytest.mark.requirement("E-05")
async def test_no_secret_of_the_settings_is_recorded_or_answered() -> None:
    """A server that tells its own token tells it to nobody."""
    leak = answer("token is s3cr3t-value", structured={"env": "s3cr3t-value"}, raw={"content": ["s3cr3t-value"]})
    world = World([FakeTool("git", "git_push", leak)], secrets=["s3cr3t-value"])
    result = await world.door.execute_tool(
        "backend_developer", "git", "git_push", {"note": "s3cr3t-value", "password": "hunter2"}
    )
    seen = f"{result} {result.raw} {world.log.begun} {world.log.closed}"
    assert "s3cr3t" not in seen
    assert "hunter2" not in seen
    assert result.text.startswith("token is [redacted:")


async def test_large_arguments_and_results_are_kept_cut_with_size_and_digest() -> None:
    """The record stays small, and still proves what was said."""
    world = World([FakeTool("git", "git_push", answer("x" * 200_000))])
    result = await world.door.execute_tool("backend_developer", "git", "git_push", {"text": "y" * 100_000, "n": 1})
    assert len(result.text) == 200_000
    [record] = world.log.closed
    assert len(record.arguments) < 40_000
    assert len(record.result or "") < 40_000
    kept = json.loads(record.result or "")["content"][0]["text"]
    assert (kept["cut"], kept["size"], kept["tail"]) == (True, 200_000, "x" * 1_024)
    assert kept["sha256"] == hashlib.sha256(b"x" * 200_000).hexdigest()


@pytest.mark.requirement("C-10", "E-11")
async def test_fixed_arguments_are_merged_before_the_decision_and_nobody_can_change_them() -> None:
    """Permission is decided on what really goes to the server."""
    grants = (
        Grant("git", "push_feature", (("branch", ("feature/*",)),)),
        Grant("git", "push_main", (("branch", ("feature/*",)),)),
    )
    feature = FakeTool("git", "push_feature", fixed={"branch": "feature/x"})
    main = FakeTool("git", "push_main", fixed={"branch": "main"})
    world = World([feature, main], mapper=MCPToolMapper({"dev": Role("dev", "", grants)}))
    await world.door.execute_tool("dev", "git", "push_feature", {"branch": "main", "note": "hi"})
    await world.door.execute_tool("dev", "git", "push_feature", {"Branch": "main", "note": "hi"})
    assert feature.calls == [{"branch": "feature/x", "note": "hi"}] * 2
    with pytest.raises(ToolNotPermitted):
        await world.door.execute_tool("dev", "git", "push_main", {"branch": "feature/x"})
    assert world.door.get_available_tools("dev") == {"git": ["push_feature"]}


@pytest.mark.requirement("E-03", "E-05")
async def test_prompts_resources_and_instructions_exist_only_for_roles_that_have_the_server() -> None:
    """They are a server's words too."""
    world = World([FakeTool("git", "git_log"), FakeTool("jira", "get_ticket")], away=["github"])
    lead, designer = Caller("tech_lead"), Caller("designer")
    assert [prompt.server for prompt in world.door.prompts(lead)] == ["git", "jira", "github"]
    assert [prompt.server for prompt in world.door.prompts(designer)] == ["github"]
    assert [resource.server for resource in world.door.resources(designer)] == ["github"]
    assert list(world.door.instructions(designer)) == ["github"]
    await world.door.render_prompt(lead, "git", "greet", {"name": "Ann"})
    await world.door.read_resource(lead, "jira", "demo://jira")
    with pytest.raises(ToolNotPermitted):
        await world.door.render_prompt(designer, "git", "greet")
    with pytest.raises(ToolNotPermitted):
        await world.door.read_resource(designer, "git", "demo://git")
    with pytest.raises(MCPConnectionError):
        await world.door.read_resource(lead, "github", "demo://github")
    assert world.source.asked == ["git", "jira", "github"]
    kinds = [(record.kind, record.outcome) for record in world.log.closed]
    ok = [("prompt", "ok"), ("resource", "ok")]
    assert kinds == [*ok, ("prompt", "refused"), ("resource", "refused"), ("resource", "server_error")]


@pytest.mark.requirement("E-04", "E-05")
async def test_a_grant_is_felt_without_a_restart_and_is_itself_recorded() -> None:
    """A change takes effect at once, and says who made it."""
    merge = FakeTool("github", "merge_pull_request")
    world = World([merge])
    designer = Caller("designer", origin="mcp")
    assert world.door.tools(designer) == []
    grant = {"role": "designer", "server": "github", "tool": "merge_pull_request"}
    before = world.door.permissions.revision
    await world.door.change_grant(OPERATOR, **grant, enabled=True)
    assert (await world.door.execute_tool(designer, "github", "merge_pull_request")).text == "done"
    # Another process revokes it; here that is felt within a second.
    world.grants.changes["designer", "github", "merge_pull_request"] = False
    world.grants.version += 1
    world.clock.now += 1.1
    with pytest.raises(ToolNotPermitted, match="revoked in the database"):
        await world.door.execute_tool(designer, "github", "merge_pull_request")
    changed, called, refused = world.log.closed
    assert (changed.kind, changed.squad_member_id, changed.role) == ("grant", "local:ann", "operator")
    assert json.loads(changed.arguments) == {**grant, "enabled": True}
    assert before != called.revision != refused.revision


@pytest.mark.requirement("E-04")
async def test_a_grant_that_was_changed_in_the_table_itself_is_felt_too() -> None:
    """The table is promised: who changes a row with a database client counts no versions."""
    world = World([FakeTool("git", "git_log")])
    with pytest.raises(ToolNotPermitted):
        await world.door.execute_tool("designer", "git", "git_log")
    world.grants.changes["designer", "git", "git_log"] = True
    world.clock.now += 1.1
    assert (await world.door.execute_tool("designer", "git", "git_log")).text == "done"
    world.grants.changes["designer", "git", "git_log"] = False
    world.clock.now += 1.1
    with pytest.raises(ToolNotPermitted, match="revoked in the database"):
        await world.door.execute_tool("designer", "git", "git_log")


@pytest.mark.requirement("E-03", "E-05")
@pytest.mark.parametrize("role", [None, "", 0, ["tech_lead"], b"tech_lead"])
async def test_what_is_no_role_at_all_is_refused_as_any_other(role: Any) -> None:
    """A program that found no role must not find a way instead, nor an error that nobody expects."""
    world = World([tool := FakeTool("git", "git_log")])
    with pytest.raises(PermissionError):
        await world.door.execute_tool(role, "git", "git_log")
    assert world.door.get_available_tools(role) == {}
    assert tool.calls == []
    assert [record.outcome for record in world.log.closed] == ["refused"]


@pytest.mark.requirement("E-05")
@pytest.mark.parametrize("arguments", [[1], "text", 3])
async def test_arguments_that_are_no_object_are_refused_and_recorded(arguments: Any) -> None:
    """A model that answers with a list gets an error that it can read."""
    world = World([tool := FakeTool("git", "git_log")])
    with pytest.raises(InvalidArguments, match="must be an object"):
        await world.door.execute_tool("tech_lead", "git", "git_log", arguments)
    assert tool.calls == []
    assert [record.outcome for record in world.log.closed] == ["refused"]


@pytest.mark.requirement("E-02")
async def test_the_servers_of_a_role_are_connected_and_no_others() -> None:
    """An agent of a role starts what the role can use."""
    world = World([FakeTool("git", "git_log"), FakeTool("files", "read_file")], away=["jira"])
    assert await world.door.initialize_agent_tools("tech_lead") == {"git": "connection of git"}
    assert await world.door.initialize_agent_tools("ghost") == {}


NAMES = st.sampled_from(
    ["git_log", "git_push", "GIT_LOG", "mcp_git_git_log", "git_\u017ftatus", "*", "git_*", ""]
) | st.text(max_size=8)


@pytest.mark.requirement("E-03")
@given(
    granted=st.lists(st.tuples(st.sampled_from(["git", "jira"]), NAMES), max_size=6),
    offered=st.lists(st.tuples(st.sampled_from(["git", "jira", "Git"]), NAMES), max_size=6, unique=True),
)
@settings(max_examples=150)
def test_listed_is_callable_and_callable_is_listed(
    granted: list[tuple[str, str]], offered: list[tuple[str, str]]
) -> None:
    """One function decides both; a difference would be a hole or a lie."""
    roles = {"dev": Role("dev", "", tuple(Grant(*grant) for grant in granted))}

    async def check() -> None:
        tools = [FakeTool(*tool) for tool in offered]
        world = World(tools, mapper=MCPToolMapper(roles))
        listed = {tool.id for tool in world.door.tools(Caller("dev"))}
        for tool in tools:
            try:
                await world.door.execute_tool("dev", *tool.definition.id)
                called = True
            except (ToolNotPermitted, UnknownTool):
                called = False
            assert called == bool(tool.calls) == (tool.definition.id in listed)
        assert len(world.log.closed) == len(tools)

    anyio.run(check)


@pytest.mark.requirement("C-08", "E-03", "E-05")
async def test_completions_and_subscriptions_stand_behind_the_same_wall() -> None:
    """What a server offers beside tools exists only for roles that have the server, and leaves a record."""
    world = World([FakeTool("git", "git_log")])
    lead, designer = Caller("tech_lead"), Caller("designer")
    params = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "tone", "value": "r"}}
    assert await world.door.complete(lead, "git", params) == {"values": ["red", "green"], "hasMore": False}
    await world.door.subscribe(lead, "git", "demo://git")
    for refused in (world.door.complete(designer, "git", params), world.door.subscribe(designer, "git", "demo://git")):
        with pytest.raises(ToolNotPermitted):
            await refused
    assert [(record.kind, record.tool, record.outcome) for record in world.log.closed] == [
        ("completion", "greet", "ok"),
        ("subscription", "demo://git", "ok"),
        ("completion", "greet", "refused"),
        ("subscription", "demo://git", "refused"),
    ]
    assert world.source.asked == ["git", "git"]


@pytest.mark.requirement("C-08")
async def test_a_server_is_told_once_however_many_subscribe() -> None:
    """One client that no longer listens must not silence the others."""
    world = World([FakeTool("git", "git_log")])
    lead = Caller("tech_lead")
    for wanted in (True, True, False, False, False, True):
        await world.door.subscribe(lead, "git", "demo://git", wanted=wanted)
    told = ("demo://git", True), ("demo://git", False), ("demo://git", True)
    assert world.source.subscriptions == [*told]


async def test_a_changed_grant_is_said_aloud() -> None:
    """Connected clients have to look again at what they may use."""
    world = World([FakeTool("git", "git_log")])
    with world.door.hub.listen(["grants"]) as heard:
        await world.door.change_grant(Caller("x"), role="designer", server="git", tool="git_log", enabled=True)
        happening = heard.receive_nowait()
    assert (happening.server, happening.data["role"]) == ("git", "designer")


@pytest.mark.requirement("E-04")
async def test_a_grant_that_another_process_changed_is_noticed_and_said_aloud() -> None:
    """Connected clients hear of what was granted on the command line, without making a call first."""
    world = World([FakeTool("git", "git_log")])
    await world.door.permissions.refresh()
    with world.door.hub.listen(["grants"]) as heard:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(world.door.follow_grants)
            world.grants.changes["designer", "git", "git_log"] = True
            world.grants.version += 1
            world.clock.now += 2
            with anyio.fail_after(10):
                await heard.receive()
            tasks.cancel_scope.cancel()
        assert world.door.get_available_tools(Caller("designer")) == {"git": ["git_log"]}
        await world.door.change_grant(Caller("x"), role="designer", server="git", tool="git_log", enabled=False)
        heard.receive_nowait()
        assert heard.statistics().current_buffer_used == 0  # and by ourselves it is told once
