"""What people may look at and change on a gateway: who may, what they see, and that every change has a name to it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from squidbot.core.domain.alerts import Alert
from squidbot.core.domain.audit import RecordFilter, ToolExecution, Usage, Verification
from squidbot.core.domain.errors import (
    InvalidArguments,
    MCPConnectionError,
    NotAllowed,
    NotFound,
    ToolNotPermitted,
    UnknownTool,
)
from squidbot.core.domain.members import Principal
from squidbot.core.domain.roles import Grant, MCPToolMapper, Role
from squidbot.core.domain.servers import ServerStatus
from squidbot.core.domain.tools import ToolId
from squidbot.core.domain.views import Bucket, Series, read_cursor, written_cursor
from squidbot.core.ports import Trail
from squidbot.core.services.admission import Admission
from squidbot.core.services.desk import Desk, DeskParts
from squidbot.core.services.hub import Hub
from tests.fakes.door import FakeTool, World
from tests.fakes.tokens import FakeTokens

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-04")]

ADMIN = Principal("m_root", "Root", "t1", right="admin")
AUDITOR = Principal("m_eve", "Eve", "t2", right="auditor")
DEVELOPER = Principal("m_ada", "Ada", "t3", role="developer")

MAPPER = MCPToolMapper(
    {
        "developer": Role(
            "developer",
            "Writes code.",
            (Grant("git", "log"), Grant("git", "push", (("branch", ("feature/*",)),))),
        ),
        "designer": Role("designer", "", (Grant("figma", "*"),)),
    }
)


class FakeTrail:
    """Satisfies `Trail` over what the door has recorded."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def page(
        self, wanted: RecordFilter, *, newest: int, before: Mapping[str, int] | None = None
    ) -> tuple[list[ToolExecution], dict[str, int] | None]:
        end = len(self._world.log.closed) if before is None else before["a"]
        found = self._world.log.closed[max(end - newest, 0) : end]
        return found[::-1], {"a": end - newest} if end > newest else None

    async def get(self, name: str) -> ToolExecution | None:
        return next((record for record in self._world.log.closed if record.id == name), None)

    async def usage(self, wanted: RecordFilter) -> list[Usage]:
        return []

    async def series(self, wanted: RecordFilter, *, begin: float, seconds: int, count: int) -> Series:
        return Series(seconds, tuple(Bucket(begin + place * seconds) for place in range(count)))

    async def verify(self) -> Verification:
        return Verification(ok=True, records=len(self._world.log.closed), chains=1)

    async def open_intents(self) -> int:
        return 0

    async def alerts(self, *, newest: int | None = None) -> list[Alert]:
        return [Alert(str(number), "", "burst", None, None, None, "") for number in range(3)]


class Office:
    """A desk, and what stands behind it."""

    def __init__(self) -> None:
        self.push = FakeTool("git", "push", parameters={"required": ["branch"]})
        self.log = FakeTool("git", "log")
        self.world = World([self.push, self.log, FakeTool("figma", "draw")], mapper=MAPPER, secrets=["s3cret-value"])
        self.hub = Hub()
        self.restarted: list[str] = []
        admission = Admission(
            FakeTokens(self.world.log),
            recorder=self.world.door.recorder,
            clock=self.world.clock,
            roles=lambda: self.world.door.permissions.mapper.roles,
            hub=self.hub,
        )
        trail: Trail = FakeTrail(self.world)
        self.desk = Desk(
            DeskParts(
                door=self.world.door,
                trail=trail,
                admission=admission,
                hub=self.hub,
                clock=self.world.clock,
                version="1.2.3",
                read_only=lambda tool: tool.tool == "log",
                restart=self._restart,
                statuses=self._statuses,
                stderr=lambda server: [f"{server} says s3cret-value"],
            )
        )

    def _statuses(self) -> list[ServerStatus]:
        ready = [ServerStatus(name, "stdio", "ready", tools=1) for name in ("git", "figma")]
        return [*ready, ServerStatus("late", "http", "failed", error="refused"), ServerStatus("off", "sse", "disabled")]

    async def _restart(self, server: str) -> None:
        self.restarted.append(server)
        if server == "late":
            raise MCPConnectionError("server 'late' does not start", server="late")


LOOKS: dict[str, Callable[[Desk, Principal], Any]] = {
    "overview": lambda desk, who: desk.overview(who),
    "servers": lambda desk, who: desk.servers(who),
    "server": lambda desk, who: desk.server(who, "git"),
    "tools": lambda desk, who: desk.tools(who),
    "tool": lambda desk, who: desk.tool(who, "mcp_git_log"),
    "roles": lambda desk, who: desk.roles(who),
    "role": lambda desk, who: desk.role(who, "developer"),
    "mapper": lambda desk, who: desk.mapper(who),
    "grid": lambda desk, who: desk.grid(who),
    "explain": lambda desk, who: desk.explain(who, "developer", "git", "log"),
    "grants": lambda desk, who: desk.grants(who),
    "calls": lambda desk, who: desk.calls(who),
    "usage": lambda desk, who: desk.usage(who),
    "series": lambda desk, who: desk.series(who),
    "verify": lambda desk, who: desk.verify(who),
    "alerts": lambda desk, who: desk.alerts(who),
    "tokens": lambda desk, who: desk.tokens(who),
    "settings": lambda desk, who: desk.settings(who),
    "listen": lambda desk, who: desk.listen(who),
}
CHANGES: dict[str, Callable[[Desk, Principal], Awaitable[Any]]] = {
    "change_grant": lambda desk, who: desk.change_grant(who, role="designer", server="git", tool="log", enabled=True),
    "create_token": lambda desk, who: desk.create_token(who, "designer", name="Ada"),
    "revoke_token": lambda desk, who: desk.revoke_token(who, "nobody"),
    "restart": lambda desk, who: desk.restart(who, "git"),
    "call_tool": lambda desk, who: desk.call_tool(who, "mcp_git_log", role="developer"),
}


async def _looked(name: str, desk: Desk, who: Principal) -> None:
    found = LOOKS[name](desk, who)
    if hasattr(found, "__await__"):
        await found


def test_every_way_to_the_desk_is_in_the_tables_of_rights() -> None:
    """A method that nobody has thought of would be one that nobody guards."""
    public = {name for name in vars(Desk) if not name.startswith("_")}
    assert public == {*LOOKS, *CHANGES, "call", "tools_for", "version", "now", "clean", "is_ready"}


@pytest.mark.parametrize("name", LOOKS)
async def test_only_who_may_look_sees_anything(name: str) -> None:
    """A role's token is for its tools; the record of everybody's calls is not its business."""
    desk = Office().desk
    for who in (ADMIN, AUDITOR):
        await _looked(name, desk, who)
    with pytest.raises(NotAllowed, match="developer"):
        await _looked(name, desk, DEVELOPER)


@pytest.mark.parametrize("name", CHANGES)
async def test_only_an_admin_changes_anything(name: str) -> None:
    """An auditor looks, and leaves everything as it was."""
    office = Office()
    for who in (AUDITOR, *([DEVELOPER] if name != "call_tool" else [])):
        with pytest.raises(NotAllowed):
            await CHANGES[name](office.desk, who)
    assert (office.world.log.closed, office.restarted, office.log.calls) == ([], [], [])


async def test_a_tool_is_shown_with_who_may_use_it_and_under_which_conditions() -> None:
    """Whoever reviews a role must see that a push is only for some branches."""
    view = await Office().desk.tool(AUDITOR, "mcp_git_push")
    assert [(may.role, may.when) for may in view.roles] == [("developer", "branch matches feature/*")]
    assert view.tokens > 0
    assert not view.read_only


async def test_the_grid_has_a_cell_with_its_rule_for_every_role_and_tool() -> None:
    """An empty cell would leave open what happens; what is not granted is refused."""
    grid = await Office().desk.grid(AUDITOR)
    assert set(grid.cells) == {(role, tool.id) for role in grid.roles for tool in grid.tools}
    allowed = {key for key, decision in grid.cells.items() if decision.allowed}
    assert allowed == {
        ("developer", ToolId("git", "log")),
        ("developer", ToolId("git", "push")),
        ("designer", ToolId("figma", "draw")),
    }
    assert grid.conditions == {("developer", ToolId("git", "push")): "branch matches feature/*"}


async def test_a_grant_is_recorded_with_who_made_it_and_felt_at_once() -> None:
    """A change of who may do what without a name to it is the one that nobody can explain later."""
    office = Office()
    made = await office.desk.change_grant(ADMIN, role="designer", server="git", tool="log", enabled=True)
    record = await office.desk.call(AUDITOR, made.record)
    assert (record.kind, record.role, record.squad_member_id, record.origin) == ("grant", "admin", "m_root", "api")
    assert (await office.desk.explain(AUDITOR, "designer", "git", "log")).allowed
    assert [change.tool for change in await office.desk.grants(AUDITOR)] == ["log"]
    with pytest.raises(NotFound, match="role 'nobody'"):
        await office.desk.change_grant(ADMIN, role="nobody", server="git", tool="log", enabled=True)
    with pytest.raises(NotFound, match="server 'nowhere'"):
        await office.desk.change_grant(ADMIN, role="designer", server="nowhere", tool="log", enabled=True)


async def test_explaining_says_what_calling_would_say() -> None:
    """An explanation that the door does not hold to is worse than none."""
    desk = Office().desk
    assert (await desk.explain(AUDITOR, "developer", "git", "push")).allowed
    refused = await desk.explain(AUDITOR, "developer", "git", "push", {"branch": "main"})
    assert (refused.allowed, refused.reason) == (False, "'branch' must match 'feature/*'")
    with pytest.raises(ToolNotPermitted, match="'branch' must match"):
        await desk.call_tool(DEVELOPER, "mcp_git_push", {"branch": "main"})


async def test_an_admin_tries_a_tool_in_a_role_under_both_names() -> None:
    """Trying is calling: it has the role's walls, and the admin's name in the record."""
    office = Office()
    called = await office.desk.call_tool(ADMIN, "mcp_git_log", {}, role="developer", origin="dashboard")
    assert called.result.text == "done"
    (record,) = office.world.log.closed
    assert (record.role, record.squad_member_id, record.origin) == ("developer", "m_root", "dashboard")
    with pytest.raises(ToolNotPermitted):
        await office.desk.call_tool(ADMIN, "mcp_git_log", {}, role="designer")
    with pytest.raises(NotFound):
        await office.desk.call_tool(ADMIN, "mcp_git_log", {}, role="operator")
    with pytest.raises(InvalidArguments, match="role"):
        await office.desk.call_tool(ADMIN, "mcp_git_log")


async def test_a_roles_token_calls_and_sees_its_own_tools_only() -> None:
    """Naming another role in the request must not be a way into it."""
    office = Office()
    assert [tool.tool for tool in await office.desk.tools_for(DEVELOPER)] == ["push", "log"]
    assert len(await office.desk.tools_for(AUDITOR)) == 3
    assert (await office.desk.call_tool(DEVELOPER, "mcp_git_log")).result.text == "done"
    with pytest.raises(NotAllowed):
        await office.desk.call_tool(DEVELOPER, "mcp_figma_draw", role="designer")
    with pytest.raises(UnknownTool, match="Unknown tool: mcp_git_nothing"):
        await office.desk.call_tool(DEVELOPER, "mcp_git_nothing")
    assert [record.outcome for record in office.world.log.closed] == ["ok", "refused"]


async def test_a_restart_is_recorded_also_when_it_fails() -> None:
    """Who restarted a server, and what came of it, belongs to what happened."""
    office = Office()
    await office.desk.restart(ADMIN, "git")
    with pytest.raises(MCPConnectionError):
        await office.desk.restart(ADMIN, "late")
    with pytest.raises(NotFound, match="nowhere"):
        await office.desk.restart(ADMIN, "nowhere")
    assert office.restarted == ["git", "late"]
    assert [(record.server, record.tool, record.outcome) for record in office.world.log.closed] == [
        ("git", "restart", "ok"),
        ("late", "restart", "server_error"),
    ]


async def test_a_servers_last_words_are_shown_without_secrets() -> None:
    """What a server prints is printed by somebody else."""
    server = Office().desk.server(AUDITOR, "git")
    assert "s3cret-value" not in server.stderr[0]


async def test_pages_lead_to_older_ones() -> None:
    """Newest first, and nothing twice."""
    office = Office()
    for _ in range(5):
        await office.desk.call_tool(DEVELOPER, "mcp_git_log")
    first = await office.desk.calls(AUDITOR, limit=3)
    rest = await office.desk.calls(AUDITOR, limit=3, cursor=first.next)
    seen = [record.id for record in (*first.records, *rest.records)]
    assert seen == [record.id for record in reversed(office.world.log.closed)]
    assert rest.next is None
    with pytest.raises(InvalidArguments, match="limit"):
        await office.desk.calls(AUDITOR, limit=501)
    with pytest.raises(NotFound):
        await office.desk.call(AUDITOR, "nothing")


@pytest.mark.parametrize(
    "cursor", ["", "x", "[]", "e30", "bnVsbA", "eyJhIjotMX0", "é", "W10", written_cursor({}) + "!"]
)
async def test_a_cursor_that_is_none_is_refused_in_words(cursor: str) -> None:
    """It comes back from outside, and anything may come with it."""
    if cursor == "e30":
        assert read_cursor(cursor) == {}
    else:
        with pytest.raises(InvalidArguments, match="cursor"):
            read_cursor(cursor)


async def test_a_series_ends_with_the_span_that_is_under_way() -> None:
    """The last column of a chart is now."""
    office = Office()
    found = await office.desk.series(AUDITOR, seconds=60, count=3)
    now = office.world.clock.time()
    assert found.buckets[-1].begin <= now < found.buckets[-1].begin + 60
    with pytest.raises(InvalidArguments):
        await office.desk.series(AUDITOR, seconds=0)


async def test_the_newest_alert_is_the_first() -> None:
    """What has just happened is what people look for."""
    assert [alert.id for alert in await Office().desk.alerts(AUDITOR)] == ["2", "1", "0"]
