"""What a fault costs its neighbours: their latency, the event loop's, memory, and what is left behind."""

import asyncio
import contextlib
import gc
import io
import logging
import math
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loguru import logger

from squidbot import MCPClient
from squidbot.adapters.telemetry.logging import LIBRARIES, set_up_logging

_BEAT = 0.01
_PULSE = 0.02
_PAGE = os.sysconf("SC_PAGE_SIZE")
MEGABYTE = 1_000_000


@dataclass
class Figures:
    """Measured while a fault was at work."""

    latencies: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """Calls to the healthy neighbour that did not work."""
    lag: float = 0.0
    base: int = 0
    peak: int = 0
    after: int = 0

    @property
    def p99(self) -> float:
        ordered = sorted(self.latencies)
        return ordered[math.ceil(len(ordered) * 0.99) - 1] if ordered else 0.0

    @property
    def risen(self) -> float:
        """Megabytes above the beginning, at the worst moment."""
        return max(0.0, (self.peak - self.base) / MEGABYTE)

    @property
    def kept(self) -> float:
        """Megabytes above the beginning, afterwards."""
        return max(0.0, (self.after - self.base) / MEGABYTE)


def clock() -> float:
    """Seconds, without those in which this thread could have run but a busy machine had no processor for it."""
    now = time.perf_counter()
    with contextlib.suppress(OSError, IndexError):
        now -= int(Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_bytes().split()[1]) / 1e9
    return now


@dataclass(frozen=True, slots=True)
class Machine:
    """What all processors have done since the machine was started, in seconds, and how much of it was for us."""

    busy: float
    all: float
    ours: float

    @classmethod
    def now(cls) -> "Machine":
        ticks = [int(part) for part in Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[1:9]]
        idle, second = ticks[3] + ticks[4], os.sysconf("SC_CLK_TCK")
        return cls((sum(ticks) - idle) / second, sum(ticks) / second, sum(os.times()[:4]))

    def others_since(self, before: "Machine") -> float:
        """Which part of the machine others have used since then: other programs, other machines on the same one."""
        used = (self.busy - before.busy) - (self.ours - before.ours)
        return max(0.0, used / max(self.all - before.all, 0.01))


def resident() -> int:
    """Bytes of memory that this process holds."""
    with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 - read a hundred times a second
        return int(statm.read().split()[1]) * _PAGE


def descriptors() -> dict[str, str]:
    """What this process has open."""
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found[entry.name] = str(entry.readlink())
    return found


def marked(mark: str) -> list[str]:
    """Every process that carries `mark`, by its command."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if mark.encode() in (entry / "environ").read_bytes():
                    found.append(
                        (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")[-120:]
                    )
    return found


def children() -> list[str]:
    """Every child of this process, zombies included."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split()
    return []


@contextlib.asynccontextmanager
async def watched(client: MCPClient, figures: Figures) -> AsyncIterator[None]:
    """Calls the healthy neighbour and looks at the clock all the while."""
    figures.peak = resident()

    async def tick() -> None:
        while True:
            began = clock()
            await asyncio.sleep(_BEAT)
            figures.lag = max(figures.lag, clock() - began - _BEAT)
            figures.peak = max(figures.peak, resident())

    async def pulse() -> None:
        while True:
            began = clock()
            result = await client.call_tool("healthy", "echo", {"text": "pulse"})
            figures.latencies.append(clock() - began)
            if result.is_error or result.text != "pulse":
                figures.failures.append(result.text)
            await asyncio.sleep(_PULSE)

    tasks = [asyncio.create_task(tick()), asyncio.create_task(pulse())]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def settle(figures: Figures) -> None:
    """Take the memory that is left, once nothing is."""
    gc.collect()
    figures.after = resident()


@contextlib.contextmanager
def whole_log(lines: list[str]) -> Iterator[None]:
    """What a person would see on the terminal, and what nobody should: escaped exceptions and lost ones."""
    said = io.StringIO()
    loop = asyncio.get_running_loop()
    libraries = {name: logging.getLogger(name) for name in LIBRARIES}
    kept = {name: (library.handlers, library.propagate, library.level) for name, library in libraries.items()}
    unraisable, handler = sys.unraisablehook, loop.get_exception_handler()

    def escaped(_: Any, context: dict[str, Any]) -> None:
        lines.append(f"ESCAPED {context.get('message')}: {context.get('exception')!r}")

    def lost(found: Any) -> None:
        lines.append(f"ESCAPED {found.err_msg}: {found.exc_value!r} in {found.object!r}")

    loop.set_exception_handler(escaped)
    sys.unraisablehook = lost
    try:
        with contextlib.redirect_stderr(said):
            set_up_logging()
            yield
            gc.collect()
    finally:
        logger.remove()
        logger.disable("squidbot")
        loop.set_exception_handler(handler)
        sys.unraisablehook = unraisable
        for name, (handlers, propagate, level) in kept.items():
            libraries[name].handlers, libraries[name].propagate = handlers, propagate
            libraries[name].setLevel(level)
        lines.extend(said.getvalue().split("\n"))
