"""Opens one session with a server: its transport, our wire, a conversation on it, and an agreed era."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from squidbot.adapters.mcp.allocator import give_large_blocks_back
from squidbot.adapters.mcp.attribution import UnderWay
from squidbot.adapters.mcp.callbacks import Callbacks
from squidbot.adapters.mcp.calling import connection_error
from squidbot.adapters.mcp.channel import Bounds
from squidbot.adapters.mcp.conversation import Conversation
from squidbot.adapters.mcp.dispatcher import FrameDispatcher, Wire
from squidbot.adapters.mcp.eras import Era, negotiate
from squidbot.adapters.mcp.remembered import Memory
from squidbot.adapters.mcp.session import Session
from squidbot.adapters.mcp.transport import Opening, SignIn, Streams, Transport
from squidbot.adapters.mcp.transports.table import TRANSPORTS
from squidbot.config.schema import MCPServerConfig
from squidbot.core.domain.errors import MCPConnectionError
from squidbot.core.ports import SchemaCheck


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the connections of one client share, and what one of them has to itself."""

    transports: Mapping[str, Transport] = field(default_factory=lambda: TRANSPORTS)
    memory: Memory = field(default_factory=lambda: Memory(None))
    callbacks: Callbacks = field(default_factory=Callbacks)
    schemas: SchemaCheck | None = None
    state: Path | None = None
    sign_in: SignIn | None = None
    under_way: UnderWay = field(default_factory=UnderWay)
    """Of one connection: each has its own."""


class SessionError(Exception):
    """A session that could not be opened, or that was lost; `closed` if it was the server who closed it."""

    def __init__(self, why: MCPConnectionError, *, closed: bool) -> None:
        super().__init__(str(why))
        self.why = why
        self.closed = closed


@asynccontextmanager
async def open_session(
    config: MCPServerConfig,
    around: Surroundings,
    era: Era | None,
    *,
    over_sse: bool,
    on_open: Callable[[Streams], None],
) -> AsyncIterator[Session]:
    """A session that is ready for requests. Whatever goes wrong, then or later, raises SessionError.

    `on_open` is given the streams as soon as there are any, before the server has said a word.
    """
    give_large_blocks_back()
    bounds = Bounds(**config.bounds.model_dump())
    transport = around.transports["sse" if over_sse else config.transport]
    offered = around.callbacks.capabilities(config.public_config())
    wire: Wire | None = None
    try:
        async with transport(config, Opening(bounds, around.state, around.sign_in)) as streams:
            wire = _wire(streams, config, bounds, around.under_way)
            on_open(streams)
            talk = Conversation(
                wire, around.callbacks, server=config.name, capabilities=offered, under_way=around.under_way
            )
            async with talk.begun():
                agreed = await negotiate(talk, era)
                assert talk.introduction is not None
                session = Session(talk, talk.introduction, agreed, log_level=config.log_level)
                _refuse_old(session, config)
                await session.set_log_level(timeout=config.startup_timeout / 6)  # not worth losing the tools over
                yield session
    except Exception as error:  # noqa: BLE001 - whatever a server or a transport does ends here, in words
        end = wire.end if wire is not None else None
        raise SessionError(connection_error(error, config, end), closed=end is not None) from None


def _wire(streams: Streams, config: MCPServerConfig, bounds: Bounds, under_way: UnderWay) -> Wire:
    if isinstance(streams, tuple):
        from squidbot.adapters.mcp.stream_dispatcher import StreamDispatcher

        return StreamDispatcher(*streams, under_way=under_way)
    return FrameDispatcher(streams, server=config.name, bounds=bounds, encoding=config.encoding, under_way=under_way)


def _refuse_old(session: Session, config: MCPServerConfig) -> None:
    if config.min_protocol is not None and session.protocol < config.min_protocol:
        raise MCPConnectionError(
            f"it speaks revision {session.protocol}, older than the {config.min_protocol} that `min_protocol` demands",
            server=config.name,
            permanent=True,
        )
