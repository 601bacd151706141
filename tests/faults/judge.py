"""Judges one cell: what the faulty server did to its caller, to its neighbours and to the machine.

`python -m tests.faults.judge` reads the names of cells, one a line, and writes a verdict for each as a line of JSON.
"""

import asyncio
import json
import re
import sys
import time
from dataclasses import asdict, dataclass, field

from squidbot import MCPClient, MCPConfig
from squidbot.core.domain.text import visible
from tests.faults.case import REQUEST, STARTUP, Cell
from tests.faults.cases import EVERYTHING
from tests.faults.measure import Figures, Machine, children, clock, descriptors, marked, settle, watched, whole_log
from tests.faults.scene import CANARY, ROOT, Scene, staged
from tests.fixtures.running import until

SLACK = 0.5
NEIGHBOUR = 0.2
LAG = 0.25
RISE, KEPT = 100.0, 20.0
LINES = 100
OUTCOME = 500
CLOSING = 5.0
GENEROUS = 4.0
"""Seconds by which a deadline may be missed on a busy machine before it is no deadline at all."""


@dataclass
class Verdict:
    """What came of one cell.

    `broken` holds on any machine. `late` is what did not come in time at all, `missed` are figures: a machine that has
    other things to do can be the cause of both.
    """

    cell: str
    outcome: str = ""
    broken: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    seconds: float = 0.0
    limit: float = 0.0
    p99: float = 0.0
    lag: float = 0.0
    risen: float = 0.0
    kept: float = 0.0
    attempts: int = 1
    """How often it was measured; this is the last time."""
    others: float = 0.0
    """The part of the machine that had other things to do meanwhile."""

    @property
    def held(self) -> bool:
        return not self.broken and not self.late and not self.missed

    @property
    def in_doubt(self) -> bool:
        """Whether what is wrong may be the machine's fault."""
        return not self.broken and not self.held


async def judge(cell: Cell) -> Verdict:
    """Play one cell through and look at all of it."""
    verdict = Verdict(str(cell))
    figures, before = Figures(), Machine.now()
    async with staged(cell) as scene:
        settle(figures)
        figures.base = figures.after
        tasks, open_before = asyncio.all_tasks(), descriptors()
        with whole_log(scene.log):
            await _play(scene, verdict, figures)
            for _ in range(3):
                await asyncio.sleep(0)
        scene.forget()
        settle(figures)
        _look_for_leftovers(scene, verdict, tasks, open_before)
        _read_the_log(scene, verdict)
        if scene.trap.hits:
            verdict.broken.append(f"{len(scene.trap.hits)} visits to the trap")
    _compare(verdict, figures)
    verdict.others = Machine.now().others_since(before)
    return verdict


async def _play(scene: Scene, verdict: Verdict, figures: Figures) -> None:
    config = MCPConfig.from_dict(scene.settings)
    async with MCPClient(config, state=scene.folder / "state", on_event=scene.events.append) as client:
        scene.client = client
        if not await client.connect("healthy"):
            verdict.broken.append(f"the healthy server did not start: {client.status('healthy').error}")
            return
        async with watched(client, figures):
            await _connect(scene, verdict)
            if scene.connected and scene.cell.case.connects:
                await _call(scene, verdict)
                await _call_again(scene, verdict)
            if scene.cell.case.check is not None and not verdict.late and (wrong := await scene.cell.case.check(scene)):
                verdict.broken.append(wrong)
            _look_at_status(scene, verdict)
            began = clock()
            await client.disconnect("faulty")
            _hold(verdict, "closing", clock() - began, CLOSING)


async def _connect(scene: Scene, verdict: Verdict) -> None:
    case = scene.cell.case
    began = clock()
    scene.connected = await scene.client.connect("faulty")
    verdict.seconds, verdict.limit = clock() - began, case.setting("startup_timeout", STARTUP)
    _hold(verdict, "connecting", verdict.seconds, verdict.limit)
    error = scene.status.error or ""
    if scene.connected != case.connects:
        (verdict.broken if scene.connected else verdict.late).append(f"connect was {scene.connected}: {error}")
    elif not scene.connected:
        verdict.outcome = f"no connection: {error}"
        _judge_words(verdict, error, case.says)
        _hold_at_once(verdict, at_once=case.at_once)
        where = scene.entry.get("command") or "127.0.0.1"
        if where not in error:
            verdict.broken.append(f"the error does not name {where!r}: {error!r}")


async def _call(scene: Scene, verdict: Verdict) -> None:
    case = scene.cell.case
    verdict.limit = case.setting("request_timeout", REQUEST)
    began, asked = clock(), time.monotonic()
    scene.result = result = await scene.client.call_tool("faulty", "act", {"text": "x", **case.arguments})
    verdict.seconds, scene.seconds = clock() - began, time.monotonic() - asked
    _hold(verdict, "the call", verdict.seconds, verdict.limit)
    # Cut: a verdict that held a large answer would be taken for memory that squidbot kept.
    verdict.outcome = f"{'error' if result.is_error else 'ok'}: {result.text[:OUTCOME]}"
    timed_out = result.failure is not None and result.failure.kind == "timeout"
    if timed_out and (case.answers == "ok" or case.at_once or re.search(case.says, result.text) is None):
        verdict.late.append(f"the call was answered by its deadline: {result.text[:200]!r}")
        return
    if case.answers != "either" and result.is_error != (case.answers == "error"):
        verdict.broken.append(f"the call was {'an error' if result.is_error else 'ok'}: {result.text[:200]!r}")
    if not result.is_error or result.failure is None or result.failure.kind == "tool":
        if case.says and not re.search(case.says, result.text):
            verdict.broken.append(f"the answer lacks {case.says!r}: {result.text[:300]!r}")
        return
    _judge_words(verdict, result.text, case.says)
    if "'faulty'" not in result.text and result.failure.kind != "protocol":
        verdict.broken.append(f"the error does not name the server: {result.text[:300]!r}")
    for secret in (str(ROOT), sys.prefix, "Traceback"):
        if secret in result.text:
            verdict.broken.append(f"the error tells a model of {secret!r}: {result.text[:300]!r}")
    _hold_at_once(verdict, at_once=case.at_once)


async def _call_again(scene: Scene, verdict: Verdict) -> None:
    match scene.cell.case.then:
        case "works":
            result = await scene.client.call_tool("faulty", "echo", {"text": "again"})
            if result.text != "again":
                timed_out = result.failure is not None and result.failure.kind == "timeout"
                (verdict.late if timed_out else verdict.broken).append(
                    f"the next call did not work: {result.text[:300]!r}"
                )
        case "returns":
            began = clock()
            last = ""

            async def back() -> bool:
                nonlocal last
                last = (await scene.client.call_tool("faulty", "echo", {"text": "again"})).text
                return last == "again"

            try:
                await until(back, what="the server to be back", within=scene.cell.case.recovery + GENEROUS)
            except AssertionError as never:
                verdict.late.append(f"{never}; it says {last[:300]!r}")
            _hold(verdict, "coming back", clock() - began, scene.cell.case.recovery)
        case "nothing":
            pass


def _hold(verdict: Verdict, what: str, seconds: float, limit: float) -> None:
    if seconds > limit + GENEROUS:
        verdict.late.append(f"{what} took {seconds:.2f} s where {limit:g} were allowed")
    elif seconds > limit + SLACK:
        verdict.missed.append(f"{what} took {seconds:.2f} s where {limit:g} were allowed")


def _hold_at_once(verdict: Verdict, *, at_once: bool) -> None:
    if at_once and verdict.seconds > 1.0:
        verdict.missed.append(f"the error took {verdict.seconds:.2f} s, not at once")


def _judge_words(verdict: Verdict, words: str, pattern: str) -> None:
    if not words:
        verdict.broken.append("the error has no words")
    if pattern and not re.search(pattern, words):
        verdict.broken.append(f"the error lacks {pattern!r}: {words[:300]!r}")
    if visible(words) != words:
        verdict.broken.append(f"the error has what cannot be seen: {words[:300]!r}")
    if CANARY in words:
        verdict.broken.append(f"the error tells a secret: {words[:300]!r}")


def _look_at_status(scene: Scene, verdict: Verdict) -> None:
    status = scene.status
    if verdict.late:
        return
    if not scene.connected and status.state not in ("failed", "degraded", "connecting"):
        verdict.broken.append(f"a server that does not work is {status.state!r}")
    if not scene.connected and not status.error:
        verdict.broken.append("the status does not say why")
    if scene.cell.case.then in ("works", "returns") and scene.connected and status.state != "ready":
        verdict.broken.append(f"a server that works is {status.state!r}: {status.error}")


def _look_for_leftovers(
    scene: Scene, verdict: Verdict, tasks: set[asyncio.Task[object]], open_before: dict[str, str]
) -> None:
    if left := [task.get_name() for task in asyncio.all_tasks() - tasks]:
        verdict.broken.append(f"tasks are left: {left}")
    if left := marked(scene.mark):
        verdict.broken.append(f"processes are left: {left}")
    more = {name: what for name, what in descriptors().items() if open_before.get(name) != what}
    if len(descriptors()) > len(open_before):
        verdict.broken.append(f"open files are left: {sorted(more.values())[:5]}")


def _read_the_log(scene: Scene, verdict: Verdict) -> None:
    lines = [line for line in scene.log if line]
    if escaped := [line for line in lines if "ESCAPED" in line or "Traceback" in line]:
        verdict.broken.append(f"exceptions escaped: {escaped[:3]}")
    if len(lines) > LINES:
        verdict.broken.append(f"the log has {len(lines)} lines, such as {lines[50]!r}")
    if raw := [line for line in lines if visible(line) != line]:
        verdict.broken.append(f"the log has what cannot be seen: {raw[0]!r}")
    if any(CANARY in line for line in lines):
        verdict.broken.append("the log tells a secret")


def _compare(verdict: Verdict, figures: Figures) -> None:
    verdict.p99, verdict.lag, verdict.risen, verdict.kept = figures.p99, figures.lag, figures.risen, figures.kept
    if figures.failures:
        verdict.broken.append(f"{len(figures.failures)} calls to the neighbour failed: {figures.failures[0]!r}")
    for what, found, most, unit in (
        ("the neighbour's p99 was", figures.p99 * 1000, NEIGHBOUR * 1000, "ms"),
        ("the loop was blocked for", figures.lag * 1000, LAG * 1000, "ms"),
        ("memory rose by", figures.risen, RISE, "MB"),
        ("memory stayed higher by", figures.kept, KEPT, "MB"),
    ):
        if found > most:
            verdict.missed.append(f"{what} {found:.0f} {unit} (at most {most:g})")


async def _main() -> None:
    cells = {str(cell): cell for cell in EVERYTHING}
    for warm in ("behaves-stdio", "behaves-sse", "behaves-websocket", "behaves-http"):
        await judge(cells[warm])
    print("ready", flush=True)
    while name := (await asyncio.to_thread(sys.stdin.readline)).strip():
        print(json.dumps(asdict(await judge(cells[name]))), flush=True)


if __name__ == "__main__":
    assert children() == []
    asyncio.run(_main())
