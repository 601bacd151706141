"""Who may use what, as people look at it: by tool, by role, and as one grid."""

from collections.abc import Sequence

from squidbot.core.domain.conditions import described
from squidbot.core.domain.errors import NotFound
from squidbot.core.domain.roles import Decision, MCPToolMapper
from squidbot.core.domain.shapes import tokens_of
from squidbot.core.domain.tools import ToolDefinition, ToolId
from squidbot.core.domain.views import Grid, MayUse, RoleView, ToolView


def known_role(mapper: MCPToolMapper, role: str) -> str:
    """`role`, if there is such a one. Raises NotFound."""
    if role not in mapper.roles:
        raise NotFound("role", role, known=list(mapper.roles))
    return role


def tool_view(mapper: MCPToolMapper, tool: ToolDefinition, *, read_only: bool) -> ToolView:
    """One tool with the roles that may use it."""
    decisions = {role: _decision(mapper, role, tool) for role in mapper.roles}
    may = tuple(
        MayUse(role, decision.rule, _when(mapper, role, tool.id))
        for role, decision in decisions.items()
        if decision.allowed
    )
    return ToolView(tool, tokens_of([tool]), may, read_only)


def role_view(mapper: MCPToolMapper, name: str, tools: Sequence[ToolDefinition]) -> RoleView:
    """One role with the tools that it may use."""
    callable_now = tuple(tool for tool in tools if _decision(mapper, name, tool).allowed)
    return RoleView(mapper.roles[name], mapper.get_all_tools_for_role(name), callable_now, tokens_of(callable_now))


def grid_of(mapper: MCPToolMapper, tools: Sequence[ToolDefinition]) -> Grid:
    """All roles against all tools."""
    cells: dict[tuple[str, ToolId], Decision] = {}
    conditions: dict[tuple[str, ToolId], str] = {}
    for role in mapper.roles:
        for tool in tools:
            cells[role, tool.id] = decision = _decision(mapper, role, tool)
            if decision.allowed and (when := _when(mapper, role, tool.id)):
                conditions[role, tool.id] = when
    return Grid(tuple(mapper.roles), tuple(tools), cells, conditions, mapper.revision)


def _decision(mapper: MCPToolMapper, role: str, tool: ToolDefinition) -> Decision:
    return mapper.decide(role, tool.server, tool.tool, None, fixed=tool.fixed or None)


def _when(mapper: MCPToolMapper, role: str, tool: ToolId) -> str:
    return ", or ".join(described(conditions) for conditions in mapper.alternatives(role, tool.server, tool.tool))
