"""One run of the program: what was chosen on the command line, and the parts a command needs, made on first use."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from squidbot.cli.lookup import unknown
from squidbot.cli.output import Output
from squidbot.core.domain.errors import MCPConnectionError
from squidbot.core.domain.servers import ServerStatus

if TYPE_CHECKING:
    from squidbot.config.schema import Settings
    from squidbot.container import Container, MCPClient

T = TypeVar("T")


@dataclass
class Invocation:
    """What every command is given."""

    config: Path | None = None
    json: bool = False
    verbosity: int = 0

    @cached_property
    def output(self) -> Output:
        return Output(as_json=self.json)

    @cached_property
    def container(self) -> "Container":
        from squidbot.container import Container

        container = Container(settings_file=self.config, lazy=True)
        container.logging(verbosity=self.verbosity)
        self.output.secrets = container.secrets()
        return container

    def says_what_is_wrong(self) -> None:
        """Keep warnings out of the log unless asked: this command's answer is what they say."""
        self.verbosity = self.verbosity or -1

    @property
    def settings(self) -> "Settings":
        """The settings in force. Raises ConfigError."""
        return self.container.settings()

    def known_server(self, name: str) -> str:
        """`name`, if the settings have such a server."""
        servers = self.container.mcp_config().servers
        if name not in servers:
            raise unknown(name, list(servers), kind="server")
        return name

    @asynccontextmanager
    async def client(self, servers: Collection[str] | None = None) -> "AsyncIterator[MCPClient]":
        """The client, with the tools of `servers`, else of all, known. Raises MCPConnectionError if none can be."""
        async with self.container.client() as client:
            with self.output.waiting("Asking the servers…"):
                await client.prepare(servers)
            check_available(
                [status for status in client.statuses() if servers is None or status.name in servers],
                needed={name for name, server in self.container.mcp_config().servers.items() if server.required}
                | set(servers or ()),
            )
            yield client

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do `work` to its end, or until somebody interrupts; either way everything it opened is closed."""
        try:
            return asyncio.run(_interruptible(work))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None


def check_available(statuses: Sequence[ServerStatus], *, needed: Collection[str]) -> None:
    """Raise MCPConnectionError if a needed server has failed, or all of them; others are only missed."""
    failed = [status for status in statuses if status.state == "failed"]
    fatal = next((status for status in failed if status.name in needed), None)
    wanted = [status for status in statuses if status.state != "disabled"]
    if fatal is None and failed and len(failed) == len(wanted):
        fatal = failed[0]
    if fatal is None:
        return
    raise unavailable(fatal)


def unavailable(status: ServerStatus) -> MCPConnectionError:
    """The error for a server that a command cannot do without."""
    reason = status.error or "it did not start"
    message = reason if repr(status.name) in reason else f"server {status.name!r} is not available: {reason}"
    return MCPConnectionError(message, server=status.name, hint=status.hint)


async def _interruptible(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Let SIGTERM end the work as Ctrl-C does: by cancelling it, so that no server is left behind."""
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, RuntimeError):  # elsewhere than on Unix, or in another thread
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
    return await work()
