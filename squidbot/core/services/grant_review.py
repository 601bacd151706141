"""Says which grants no tool answers to: when all servers have come up, and whenever the settings change."""

from collections.abc import Awaitable, Callable, Collection

from squidbot.core.domain.role_review import Dangling, dangling
from squidbot.core.services.door import AgentMCPService


class GrantReview:
    """Runs beside a gateway. A grant that means nothing is a mistake, or a tool that its server has lost."""

    def __init__(
        self,
        door: AgentMCPService,
        *,
        known: Callable[[], Collection[str]],
        settled: Callable[[], Awaitable[object]],
        tell: Callable[[str], None],
    ) -> None:
        self._door = door
        self._known = known
        """Every server of the settings, also those that are switched off."""
        self._settled = settled
        """Waits until every server has come up or failed."""
        self._tell = tell
        self._told: set[Dangling] = set()

    async def run(self) -> None:
        """Review now, and after each change of the settings, until it is cancelled."""
        with self._door.hub.listen({"settings"}) as heard:
            await self.review()
            async for _ in heard:
                await self.review()

    async def review(self) -> None:
        """Tell of each such grant once, for as long as it stays one."""
        await self._settled()
        source = self._door.source
        ready = [name for name in source.server_names() if source.status(name).state == "ready"]
        tools = {name: [tool.tool for tool in source.get_available_tools(name)] for name in ready}
        found = dangling(self._door.permissions.mapper, tools, known=self._known())
        for grant in found:
            if grant not in self._told:
                near = f" Did you mean {grant.nearest!r}?" if grant.nearest else ""
                what = f"{grant.tool!r} of server {grant.server!r}"
                self._tell(f"role {grant.role!r} is granted {what}, which is not there.{near}")
        self._told = set(found)
