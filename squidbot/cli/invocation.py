"""One run of the program: what was chosen on the command line, and the parts a command needs, made on first use."""

import asyncio
import getpass
import os
import signal
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from squidbot.cli.lookup import unknown, unknown_role
from squidbot.cli.output import Output
from squidbot.core.domain.callers import OPERATOR, Caller
from squidbot.core.domain.errors import ConfigError, MCPConnectionError
from squidbot.core.domain.naming import may_have
from squidbot.core.domain.servers import ServerStatus
from squidbot.core.domain.tools import ToolId

if TYPE_CHECKING:
    from squidbot.config.schema import Settings
    from squidbot.container import AgentMCPService, Container, SQLStore

T = TypeVar("T")


@dataclass
class Invocation:
    """What every command is given."""

    config: Path | None = None
    json: bool = False
    verbosity: int = 0
    lazy: bool = True
    """Whether servers start at first use, as is right for all commands but one that stays."""
    converses: bool = False
    """Whether whoever calls may be asked something in return: then servers are told that they may ask."""
    _open: ExitStack = field(default_factory=ExitStack)

    @cached_property
    def output(self) -> Output:
        return Output(as_json=self.json)

    @cached_property
    def container(self) -> "Container":
        from squidbot.container import Container

        self._join_practice()
        container = Container(settings_file=self.config, lazy=self.lazy, converses=self.converses)
        container.logging(verbosity=self.verbosity)
        self.output.redactor = container.redactor()
        return container

    def close(self) -> None:
        """End what was started for this command."""
        self._open.close()

    def _join_practice(self) -> None:
        """Settings that are for practice get the world that they speak of, without anybody having to start it."""
        from squidbot.config.load import find_settings
        from squidbot.config.state import state_folder

        with suppress(ConfigError):
            file = find_settings(self.config)
            if file is None or not file.is_file() or b"SQUIDBOT_PRACTICE_" not in file.read_bytes():
                return
            from squidbot.cli.practice_world import is_wanted, practice_world, variables

            if is_wanted(file):
                directions = self._open.enter_context(practice_world(state_folder() / "practice"))
                os.environ.update(variables(directions))

    def practise(self) -> None:
        """Without settings: those of the practice world, which answers as long as this command runs."""
        from squidbot.cli.practice_world import practice_settings, practice_world
        from squidbot.config.schema import Settings
        from squidbot.config.state import state_folder

        directions = self._open.enter_context(practice_world(state_folder() / "practice"))
        self.container.settings.override(practice_settings(Settings(), directions))

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

    def caller(self, role: str | None) -> Caller:
        """Who asks: in the role that was named, else in the settings' own, else the person at this machine."""
        if role is None:  # an empty one is named, and is nobody's: a script's forgotten variable opens nothing
            role = self.settings.agent.role or OPERATOR
        return Caller(role, member=f"local:{_user()}", origin="cli")

    async def known_role(self, door: "AgentMCPService", role: str | None) -> Caller:
        """The caller in a role, if there is such a role. Raises CommandError with the roles that there are."""
        caller = self.caller(role)
        await door.permissions.refresh(caller)
        if not caller.is_operator and caller.role not in door.permissions.mapper.roles:
            raise unknown_role(caller.role, [*door.permissions.mapper.roles, OPERATOR])
        return caller

    @asynccontextmanager
    async def door(
        self,
        servers: Collection[str] | None = None,
        *,
        meant: str | None = None,
        start: bool = True,
        only_looks: bool = False,
    ) -> "AsyncIterator[AgentMCPService]":
        """The guarded door, with what `servers`, else all, offer known. Raises MCPConnectionError if none can be.

        What is `meant` by a name that only some servers can have does not wait for the others. Without `start`, and of
        the others, only what is known from the last time is known. Who `only_looks` leaves no record: for that the
        record is not even loaded.
        """
        if only_looks:
            self.container.store.override(None)
        client, door = self.container.client(), self.container.service()
        needed = {name for name, server in self.container.mcp_config().servers.items() if server.required}
        needed |= set(servers or ())
        if meant is not None and (having := [name for name in client.server_names() if may_have(name, meant)]):
            servers = {*having, *needed}
        async with client if only_looks else door:
            if start:
                with self.output.waiting("Asking the servers…"):
                    await client.prepare(servers)
                statuses = client.statuses()
                check_available([s for s in statuses if servers is None or s.name in servers], needed=needed)
            if servers is not None or not start:
                client.recall()
            yield door

    async def new_token(self, role: str, *, name: str, expires: float | None = None) -> dict[str, str]:
        """A token for a role, good at once in a running gateway: `id`, and `token`, which is seen only now."""
        async with self.container.store():
            await self.check_role(role)
            made = await self.container.admission().create(self.caller(OPERATOR), role, name=name, expires=expires)
            return {"id": made.record.id, "token": made.token}

    async def revoke_tokens(self, names: Sequence[str]) -> None:
        """Take tokens back. Raises NotRecorded."""
        async with self.container.store():
            for name in names:
                await self.container.admission().revoke(self.caller(OPERATOR), name)

    async def check_role(self, role: str) -> None:
        """Raise CommandError unless there is such a role; a person and a right are none."""
        permissions = self.container.service().permissions
        await permissions.refresh(now=True)
        if role not in permissions.mapper.roles:
            raise unknown_role(role, list(permissions.mapper.roles))

    def record_change(self, server: str, what: str, document: Mapping[str, Any]) -> None:
        """Write down that the settings file is changed, and by whom. Raises NotRecorded."""

        async def write() -> None:
            async with self.container.store():
                recorder = self.container.recorder()
                attempt = recorder.attempt(
                    self.caller(OPERATOR), ToolId(server, what), document, revision="", kind="settings"
                )
                await recorder.done(attempt, None)

        try:
            self.settings  # noqa: B018 - whoever repairs broken settings must be able to
        except ConfigError:
            return
        self.run(write)

    @asynccontextmanager
    async def store(self) -> "AsyncIterator[SQLStore]":
        """The record of all calls, and the grants made while running."""
        store = self.container.store()
        store.only_reads = True
        async with store:
            yield store

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do `work` to its end, or until somebody interrupts; either way everything it opened is closed."""
        try:
            return asyncio.run(_interruptible(work))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "unknown"


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
