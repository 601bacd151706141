"""Who hears what servers tell, and who answers what they ask."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from loguru import logger

from squidbot._version import __version__
from squidbot.adapters.mcp.attribution import concerned
from squidbot.core.domain.servers import ServerEvent, ServerLog
from squidbot.core.ports import Question

OnLog: TypeAlias = Callable[[ServerLog], None]
OnEvent: TypeAlias = Callable[[ServerEvent], None]
Answer: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]]
"""Answers a server (its name, its params as on the wire) with a result as on the wire; None declines."""
OnUnclaimed: TypeAlias = Callable[[Question, str, Mapping[str, Any], str], Awaitable[None]]
"""Hears of a question (of a server, its params) that nobody was asked, and why."""
_LISTENING = 1.0
"""Seconds for which a counterpart may take to hear one log message."""


CLIENT: Mapping[str, Any] = {"name": "squidbot", "version": __version__}
"""What we call ourselves, as on the wire."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Whoever wants to hear from servers, and whoever answers them; what is absent is not offered to them."""

    on_log: OnLog | None = None
    on_event: OnEvent | None = None
    sampling: Answer | None = None
    elicitation: Answer | None = None
    roots: Sequence[str | Path] | None = None
    converses: bool = False
    """Whether calls may have somebody at their other end who answers: then servers may ask without the two above."""
    on_unclaimed: OnUnclaimed | None = None

    def capabilities(self, config: Mapping[str, Any] | None) -> dict[str, Any]:
        """What we offer to a server, as on the wire; `config` reaches it as an experimental capability."""
        offered: dict[str, Any] = {}
        if self.sampling is not None or self.converses:
            offered["sampling"] = {}
        if self.elicitation is not None or self.converses:
            offered["elicitation"] = {"form": {}, "url": {}}
        if self.roots is not None:
            offered["roots"] = {"listChanged": True}
        if config is not None:
            offered["experimental"] = {"config": dict(config)}
        return offered

    def event(self, event: ServerEvent) -> None:
        """Tell whoever subscribed; their fault is not the connection's."""
        if self.on_event is not None:
            try:
                self.on_event(event)
            except Exception as error:  # noqa: BLE001 - a listener's fault ends nothing
                logger.warning("a listener for events failed: {!r}", error)

    async def unclaimed(self, question: Question, server: str, params: Mapping[str, Any], reason: str) -> None:
        """Tell whoever keeps the record of a question that nobody was asked."""
        logger.bind(server=server).info("a question of server {!r} was declined: {} ({})", server, reason, question)
        if self.on_unclaimed is not None:
            await self.on_unclaimed(question, server, params, reason)

    def log(self, entry: ServerLog) -> None:
        """Hand a server's log message on."""
        if self.on_log is not None:
            try:
                self.on_log(entry)
            except Exception as error:  # noqa: BLE001 - a listener's fault ends nothing
                logger.warning("a listener for log messages failed: {!r}", error)

    async def tell(self, entry: ServerLog) -> None:
        """The same, and tell the one whose call it is; others of the same server do not wait for a slow one."""
        self.log(entry)
        counterpart = concerned().counterpart
        if counterpart is None:
            return
        try:
            with anyio.move_on_after(_LISTENING):
                await counterpart.log(entry)
        except Exception as error:  # noqa: BLE001 - a listener's fault ends nothing
            logger.warning("passing on a log message failed: {!r}", error)
