"""Who may do what at this moment: the settings' roles with what the database has changed since."""

from collections.abc import Callable, Mapping
from typing import Any

from squidbot.core.domain.audit import Grants
from squidbot.core.domain.callers import OPERATOR, Caller
from squidbot.core.domain.roles import Decision, MCPToolMapper
from squidbot.core.domain.tools import ToolId
from squidbot.core.ports import Clock, GrantStore

_STALE = 1.0
"""Seconds after which grants are read again: so long, at most, does a change take to be felt."""


class Permissions:
    """Answers every question of who may use what, by one function for listing and for calling."""

    def __init__(self, mapper: MCPToolMapper, grants: GrantStore, *, clock: Clock) -> None:
        self.mapper = mapper
        self._grants = grants
        self._clock = clock
        self._seen: Grants | None = None
        self._read = float("-inf")
        self.on_change: Callable[[], None] = lambda: None
        """Hears that grants were changed by somebody else, in another process perhaps."""

    async def refresh(self, caller: Caller | None = None, *, now: bool = False, told: bool = False) -> None:
        """Take up what has changed in the database; `told` if everybody knows already. Raises NotRecorded.

        For the operator nothing there matters.
        """
        if caller is not None and caller.is_operator:
            return
        if not now and self._seen is not None and self._clock.monotonic() - self._read < _STALE:
            return
        self._read = self._clock.monotonic()
        grants = await self._grants.load()
        # Not the version alone: who changes a row by hand does not count.
        if grants != self._seen:
            first, self._seen = self._seen is None, grants
            self.mapper = self.mapper.with_changes(grants.changes)
            if not first and not told:
                self.on_change()

    def replace(self, mapper: MCPToolMapper) -> None:
        """Take other settings; the database's changes stay above them."""
        self.mapper = mapper.with_changes(self.mapper.changes)

    def decide(self, caller: Caller, tool: ToolId, arguments: Mapping[str, Any] | None, **fixed: Any) -> Decision:
        """Whether the caller may; without arguments, whether with any at all."""
        if caller.is_operator:
            reason = "the person at this machine may use every tool of their own settings"
            return Decision(True, caller.role, tool.server, tool.tool, OPERATOR, reason)  # noqa: FBT003
        return self.mapper.decide(caller.role, tool.server, tool.tool, arguments, **fixed)

    def has_server(self, caller: Caller, server: str) -> bool:
        """Whether anything of this server exists for the caller."""
        return caller.is_operator or self.mapper.has_server(caller.role, server)

    @property
    def revision(self) -> str:
        """Of the grants that decide now."""
        return self.mapper.revision
