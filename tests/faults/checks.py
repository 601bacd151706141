"""What else must be true after certain faults, beyond what holds for all."""

import asyncio
import json
import time

from squidbot import MCPClient, MCPConfig
from squidbot.core.domain.servers import ServerEvent
from squidbot.core.domain.text import visible
from tests.faults.scene import Scene
from tests.fixtures.running import plain_entry


async def remembered(scene: Scene) -> str | None:
    """The second connection costs no slow probe."""
    probes = scene.notes.count("discover")
    await scene.client.disconnect("faulty")
    began = time.perf_counter()
    await scene.client.connect("faulty")
    if scene.notes.count("discover") > probes:
        return "a server that ignores discover was probed a second time"
    took = time.perf_counter() - began
    return f"the second connection took {took:.2f} s" if took > 0.9 + 3 else None


async def one_effect(scene: Scene) -> str | None:
    """A call is never sent twice by itself."""
    sent = scene.notes.count("effect") + scene.notes.count("act")
    return None if sent == 1 else f"the call reached the server {sent} times"


async def told_to_stop(scene: Scene) -> str | None:
    """Whoever is no longer waited for is told so."""
    for _ in range(100):
        if "cancelled" in scene.notes:
            return None
        await asyncio.sleep(0.01)
    return "the server was never told that nobody waits any more"


async def late_is_counted(scene: Scene) -> str | None:
    """A late answer is nobody's, and is counted."""
    counted = scene.status.counters.get("late", 0)
    return None if counted else f"the late answer was not counted: {dict(scene.status.counters)}"


async def noise_is_counted(scene: Scene) -> str | None:
    """Noise is counted, and spoken of once."""
    if not scene.status.counters.get("noise"):
        return f"the noise was not counted: {dict(scene.status.counters)}"
    spoken = sum("what is no message" in line for line in scene.log)
    return f"the noise was spoken of {spoken} times" if spoken > 1 else None


async def valid_json(scene: Scene) -> str | None:
    """What is kept of an answer can be sent on."""
    assert scene.result is not None
    try:
        json.dumps(scene.result.raw, allow_nan=False).encode()
        scene.result.text.encode()
    except (ValueError, UnicodeEncodeError) as error:
        return f"what is kept of the answer is no JSON: {error}"
    return None


async def good_tools_only(scene: Scene) -> str | None:
    """The good tools are there, and what is bad is not."""
    names = [tool.tool for tool in scene.client.get_available_tools("faulty")]
    if not {"act", "echo"} <= set(names):
        return f"good tools are lost: {names[:10]}"
    return f"a name is there twice: {names}" if len(set(names)) != len(names) else None


async def bounded_tools(scene: Scene) -> str | None:
    """No more tools than a server may have, each with a description of a bearable size."""
    tools = scene.client.get_available_tools("faulty")
    if len(tools) > 2_000:
        return f"{len(tools)} tools were taken"
    longest = max((len(tool.description) for tool in tools), default=0)
    return f"a description has {longest} characters" if longest > 4096 else None


async def bounded_pages(scene: Scene) -> str | None:
    """No more pages than a list may have."""
    asked = scene.notes.count("page")
    return f"{asked} pages were asked for" if asked > 110 else None


async def bounded_lists(scene: Scene) -> str | None:
    """At most one look per half second, and fewer for nothing."""
    before, began = scene.notes.count("list"), time.perf_counter()
    await asyncio.sleep(2.0)
    looks, seconds = scene.notes.count("list") - before, time.perf_counter() - began
    return f"{looks} looks in {seconds:.1f} s" if looks > seconds / 0.5 + 1 else None


async def nothing_unseen(scene: Scene) -> str | None:
    """What models and people read of a server has no unseen characters."""
    for tool in scene.client.get_available_tools("faulty"):
        for text in (tool.name, tool.description, tool.title or ""):
            if visible(text) != text:
                return f"tool {tool.tool!r} says {text[:120]!r}"
    return None


async def bounded_rate(scene: Scene) -> str | None:
    """No more notifications are handed on than a server may send in the time."""
    heard = sum(isinstance(event, ServerEvent) and event.kind == "notification" for event in scene.events)
    most = 1_000 * (scene.seconds + 2)
    return f"{heard} notifications were handed on in {scene.seconds:.1f} s" if heard > most else None


async def keeps_text(scene: Scene) -> str | None:
    """A mismatch is an error that keeps the words."""
    assert scene.result is not None
    return None if "done" in scene.result.text else f"the text is lost: {scene.result.text[:200]!r}"


async def still_serves(scene: Scene) -> str | None:
    """A tool whose schema was abused three times loses the check, not the service."""
    for _ in range(4):
        result = await scene.client.call_tool("faulty", "act", {}, timeout=5)
    return f"after five calls: {result.text[:200]!r}" if result.is_error else None


async def bounded_rounds(scene: Scene) -> str | None:
    """A server may ask for input a few times, not for ever."""
    rounds = scene.notes.count("round")
    return f"{rounds} rounds" if rounds > 12 else None


async def flushed(scene: Scene) -> str | None:
    """A server that needs a moment to save its work gets it."""
    await scene.client.disconnect("faulty")
    return None if "flushed" in scene.notes else "the server was killed while it saved its work"


async def replaced(scene: Scene) -> str | None:
    """A process that is stuck is ended and started again."""
    return None if scene.notes.count("started") > 1 else "the stuck process was never replaced"


async def always_answered(scene: Scene) -> str | None:
    """However the kind of the answers changes, each call has one, and none is late."""
    for _ in range(12):
        began = time.perf_counter()
        result = await scene.client.call_tool("faulty", "act", {})
        if not result.text and result.is_error:
            return "an error without words"
        if time.perf_counter() - began > scene.cell.case.setting("request_timeout", 1.5) + 4:
            return "a call did not come back"
    return None


async def bounded_listening(scene: Scene) -> str | None:
    """A stream that keeps ending is not opened again and again without a pause."""
    before = scene.notes.count("listen") + scene.notes.count("get")
    await asyncio.sleep(2.0)
    again = scene.notes.count("listen") + scene.notes.count("get") - before
    return f"it was listened to {again} times in two seconds" if again > 8 else None


async def small_heads(scene: Scene) -> str | None:
    """What a server wants to be kept for it is not sent back by the kilobyte."""
    largest = max((int(line.split()[1]) for line in scene.notes if line.startswith("head ")), default=0)
    return f"a request had {largest} bytes of headers" if largest > 10_000 else None


async def nothing_injected(scene: Scene) -> str | None:
    """What a server puts into a schema, or a caller into an argument, is never a header of its own."""
    return "a header was injected" if "injected" in scene.notes else None


async def others_can_be_started(scene: Scene) -> str | None:
    """What one server did to those who start servers must not keep another from being started."""
    began = time.perf_counter()
    async with MCPClient(MCPConfig.from_dict({"servers": {"another": plain_entry()}})) as client:
        if not await client.connect("another"):
            return f"another server can no longer be started: {client.status('another').error}"
    took = time.perf_counter() - began
    return f"starting and ending another server took {took:.2f} s" if took > 5 + 4 else None
