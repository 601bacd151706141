"""A server as a child process: one message a line on its standard streams, its last words kept."""

import asyncio
import codecs
import errno
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import anyio

from squidbot.adapters.mcp import reapers
from squidbot.adapters.mcp.apart import apart
from squidbot.adapters.mcp.channel import ChannelClosed, Frame
from squidbot.adapters.mcp.leftovers import MARK, fresh_mark, sweep
from squidbot.adapters.mcp.lines import Lines
from squidbot.adapters.mcp.reapers import Command, Reaper
from squidbot.adapters.mcp.transport import Opening
from squidbot.config.schema import MCPServerConfig
from squidbot.core.domain.errors import MCPConnectionError
from squidbot.core.domain.text import blanked, visible

GRACE = 2.0
"""Seconds that a server has to end by itself once its input is closed."""
FIRM = 1.0
"""Seconds between SIGTERM and SIGKILL."""
_MARGIN = 1.0
"""Seconds that the reaper has beyond both to be done; then something keeps it from its work."""
_PASSING = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
"""What keeps a process from starting now and not for ever."""
_CHUNK = 262_144
_PIPE = 65_536
"""All that a pipe holds: to ask for more at once costs memory that may not be there."""
_LAST_WORDS = 65_536
_SHOWN_LINES = 8
_TAIL = 16_384
_TAIL_LINES = 50
_LONGEST_LINE = 500
_EXIT_NEWS = 0.5
"""How long, once a server's output has ended, its exit code is waited for."""


@asynccontextmanager
async def open_stdio(config: MCPServerConfig, opening: Opening) -> AsyncIterator["ProcessChannel"]:
    """Start the server; leaving ends it, gently, then firmly, with everything it started."""
    channel = ProcessChannel(*await _started(config), config, opening.bounds.bytes)
    try:
        await channel.attach()
        yield channel
    finally:
        with anyio.CancelScope(shield=True):
            await channel.close()


async def _started(config: MCPServerConfig) -> tuple[Reaper, str]:
    """Starting takes its time, so a thread does it; a machine may have none left to give."""
    try:
        return await anyio.to_thread.run_sync(_start, config)
    except MCPConnectionError:
        raise
    except RuntimeError as error:
        raise MCPConnectionError(
            f"cannot start {config.command!r}: {error}",
            server=config.name,
            reason="this machine has no room to start it",
            hint="The server is not at fault: close something, or allow this process more.",
        ) from None


def _start(config: MCPServerConfig) -> tuple[Reaper, str]:
    """A running server under its reaper, and the mark of all that it starts."""
    mark = fresh_mark()
    environment = {**config.child_environment(), MARK: mark}
    folder = _working_folder(config)
    program = _find(config, environment, folder)
    command = Command(program, [config.command or "", *config.args], environment, folder, GRACE, FIRM)
    try:
        return reapers.start(command), mark
    except OSError as error:
        raise MCPConnectionError(
            f"cannot start {config.command!r}: {error.strerror}",
            server=config.name,
            reason=f"it cannot be started: {error.strerror}",
            permanent=error.errno not in _PASSING,
        ) from None


def _working_folder(config: MCPServerConfig) -> Path | None:
    if config.cwd is None:
        return None
    folder = Path(config.cwd)
    if not folder.is_dir():
        raise MCPConnectionError(
            f"cannot start {config.command!r}: its folder {config.cwd!r} does not exist",
            server=config.name,
            reason="its working folder does not exist",
            hint="Correct `cwd` in the server's settings, or make the folder.",
            permanent=True,
        )
    return folder


def _find(config: MCPServerConfig, environment: Mapping[str, str], folder: Path | None) -> str:
    """The absolute path of the command, looked up where the server itself would look."""
    name = config.command or ""
    if os.sep in name:
        path = (folder or Path()) / Path(name).expanduser()
        if os.access(path, os.X_OK) and path.is_file():
            return str(path.absolute())
        reason = "is not executable" if path.is_file() else "does not exist"
        hint = f"Run `chmod +x {name}`." if path.is_file() else "Correct `command` in the server's settings."
    else:
        if (found := shutil.which(name, path=environment.get("PATH", os.defpath))) is not None:
            return found
        reason, hint = "was not found on PATH", f"Install {name!r}, or give its full path as `command`."
    raise MCPConnectionError(
        f"command {name!r} {reason}", server=config.name, reason=f"its command {reason}", hint=hint, permanent=True
    )


class ProcessChannel:
    """The `Channel` to a running server."""

    def __init__(self, reaper: Reaper, mark: str, config: MCPServerConfig, limit: int) -> None:
        self._reaper = reaper
        self._mark = mark
        self._done = False
        self._config = config
        self._lines = Lines(limit)
        self._output = asyncio.StreamReader(limit=_CHUNK)
        self._input = _Input()
        self._last_words = _LastWords()
        self._gone = asyncio.Event()
        self._told = asyncio.Event()
        self._exit: str | None = None
        self._pipes: list[asyncio.ReadTransport] = []
        self._closing = self._hurried = False
        self._speaks_utf8 = codecs.lookup(config.encoding).name == "utf-8"

    async def attach(self) -> None:
        """Connect the pipes of the process to the event loop."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._reaper.status, self._on_status)
        await loop.connect_write_pipe(lambda: self._input, self._reaper.stdin)
        for factory, pipe in (
            (lambda: asyncio.StreamReaderProtocol(self._output), self._reaper.stdout),
            (lambda: self._last_words, self._reaper.stderr),
        ):
            transport, _ = await loop.connect_read_pipe(factory, pipe)
            with suppress(AttributeError):  # another loop's transports have sizes of their own
                transport.max_size = _PIPE  # type: ignore[attr-defined]
            self._pipes.append(transport)
        self._hang_up_if_unwatched()

    async def receive(self) -> Sequence[Frame]:
        """The lines that have come."""
        while True:
            try:
                chunk = await self._output.read(_CHUNK)
            except OSError:
                chunk = b""
            if not chunk:
                raise await self._end("it closed its output but still runs")
            if frames := self._lines.feed(chunk):
                return frames

    async def send(self, frame: bytes, request_id: int | str | None) -> None:
        """Write a line; waits while the server does not read."""
        del request_id
        if not self._speaks_utf8:
            frame = json.dumps(json.loads(frame)).encode(self._config.encoding)
        if not await self._input.write(frame + b"\n"):
            raise await self._end("it closed its input but still runs")

    async def close(self) -> None:
        """Close the server's input and wait until the reaper says that all of it is gone."""
        reaper, processes = self._reaper, self._reaper.processes
        self._input.close()
        with suppress(OSError):  # there may be nobody to tell
            reaper.control.write(b".")
        self._closing = True
        if self._hurried:
            reaper.control.close()
        processes.wake()  # a server may have stopped it
        with anyio.move_on_after(GRACE + FIRM + _MARGIN) as patience:
            await self._gone.wait()
        if patience.cancelled_caught:
            processes.kill()
        await apart(processes.bury)
        if not self._done:
            await apart(partial(sweep, self._mark))
        reaper.control.close()
        asyncio.get_running_loop().remove_reader(reaper.status)
        reaper.status.close()
        self._input.abort()
        for pipe in self._pipes:
            pipe.close()
        await asyncio.sleep(0)
        for stream in (reaper.stdin, reaper.stdout, reaper.stderr):
            stream.close()

    def hurry(self) -> None:
        """Let it have little time to end: whenever it is closed, or from now on."""
        self._hurried = True
        if self._closing:
            self._reaper.control.close()

    def _on_status(self) -> None:
        """Read what the reaper says: how the server ended, that it is done, then, by closing, that it is gone too."""
        try:
            news = self._reaper.status.recv(256)
        except BlockingIOError:
            return
        except OSError:
            news = b""
        for line in news.decode("ascii", "replace").splitlines():
            if line == "done":
                self._done = True
            elif self._exit is None:
                self._exit = _exit_in_words(line)
                self._told.set()
        if not news:
            asyncio.get_running_loop().remove_reader(self._reaper.status)
            self._gone.set()
            self._told.set()
            self._hang_up_if_unwatched()

    def _hang_up_if_unwatched(self) -> None:
        """A reaper that ended without a word was killed: a server that nobody would end is not listened to."""
        if self._gone.is_set() and self._exit is None and self._pipes:
            self._exit = "the process that watches over it was killed"
            self._pipes[0].close()

    async def _end(self, otherwise: str) -> ChannelClosed:
        """Why the server is gone, with its last words; `otherwise` if it turns out to be still there."""
        with anyio.move_on_after(_EXIT_NEWS):
            await self._told.wait()
        command = blanked(" ".join([self._config.command or "", *self._config.args]), self._config.secrets)
        return ChannelClosed(
            self._exit or otherwise,
            detail=self.last_words,
            hint=f"Run `{command}` by hand to see what it says.",
        )

    @property
    def last_words(self) -> str:
        """The end of what the server wrote to stderr, fit to be shown."""
        words = blanked(visible(self._last_words.text()), self._config.secrets).strip()
        return "\n".join(line[:_LONGEST_LINE] for line in words.splitlines()[-_SHOWN_LINES:])

    @property
    def last_lines(self) -> tuple[str, ...]:
        """More of it, for somebody who looks into why a server does what it does."""
        text = self._last_words.text()
        if len(text) > _TAIL:
            text = text[-_TAIL:].partition("\n")[2]  # from a line's beginning: of a secret no half may be left
        words = blanked(visible(text), self._config.secrets)
        return tuple(line[:_LONGEST_LINE] for line in words.splitlines()[-_TAIL_LINES:] if line.strip())


def _exit_in_words(line: str) -> str:
    kind, _, number = line.partition(" ")
    match kind:
        case "exit":
            return f"it exited with code {number}"
        case "signal":
            with suppress(ValueError):
                return f"it was killed by {signal.Signals(int(number)).name}"
            return f"it was killed by signal {number}"
        case _:
            return f"it could not be executed: {os.strerror(int(number))}"


class _Input(asyncio.BaseProtocol):
    """The server's standard input, which waits only when the pipe is full."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._lost = True
        self._room.set()

    async def write(self, line: bytes) -> bool:
        """Hand over one line; False if there is nobody to read it."""
        if not self._room.is_set():
            await self._room.wait()
        if self._lost or self._transport is None or self._transport.is_closing():
            return False
        self._transport.write(line)
        return True

    def close(self) -> None:
        """End the input once all that was written has been read."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Forget what nobody will read any more."""
        if self._transport is not None and not self._lost:
            self._transport.abort()


class _LastWords(asyncio.Protocol):
    """The end of what a server wrote to stderr; the rest is read and forgotten."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def data_received(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > 2 * _LAST_WORDS:
            del self._kept[:-_LAST_WORDS]

    def text(self) -> str:
        """What is kept, as text, from a line's beginning: of a secret no half may be left."""
        kept = bytes(self._kept[-_LAST_WORDS:])
        if len(self._kept) >= _LAST_WORDS:
            kept = kept.partition(b"\n")[2]
        return kept.decode("utf-8", "replace")
