"""The names that agents see: one per tool, within every provider's rules, never two alike."""

import hashlib
import heapq
import re
from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches

from squidbot.core.domain.tools import ToolId

MAX_NAME = 64
_SUFFIX = 8
_COMPARED = 50
"""How many names are looked at closely; that takes time by the square of their length."""
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")


def bare_name(tool: ToolId) -> str:
    """`mcp_{server}_{tool}` with every character that providers refuse turned into `-`."""
    return _FOREIGN.sub("-", f"mcp_{tool.server}_{tool.tool}")


def marked_name(tool: ToolId) -> str:
    """The bare name, cut, with the first hex digits of a digest that only this tool has."""
    digest = hashlib.sha256(f"{tool.server}\0{tool.tool}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{bare_name(tool)[: MAX_NAME - _SUFFIX - 1]}-{digest[:_SUFFIX]}"


def may_have(server: str, name: str) -> bool:
    """Whether `name`, as agents see it or as `SERVER/TOOL`, can be that of something of this server."""
    return name.startswith((f"{server}/", bare_name(ToolId(server, ""))[: MAX_NAME - _SUFFIX - 1]))


def agent_names(tools: Iterable[ToolId]) -> dict[ToolId, str]:
    """A name for each of `tools`, the same whatever their order, and no name twice.

    A bare name that is too long or that two tools would share goes to neither: all of them get
    marked ones. So does a tool whose bare name is another's marked one. Two tools whose marked
    names are equal (a forged digest) get none at all.
    """
    bare = {tool: bare_name(tool) for tool in tools}
    shared = Counter(bare.values())
    marked = {tool: marked_name(tool) for tool, name in bare.items() if len(name) > MAX_NAME or shared[name] > 1}
    while True:
        taken = set(marked.values())
        late = {tool: marked_name(tool) for tool, name in bare.items() if tool not in marked and name in taken}
        if not late:
            break
        marked |= late
    names = bare | marked
    uses = Counter(names.values())
    return {tool: name for tool, name in names.items() if uses[name] == 1}


def nearest(name: str, known: Iterable[str], *, most: int = 3, cutoff: float = 0.6) -> list[str]:
    """The names that were perhaps meant, the likeliest first. A server that lists thousands of long ones gains no time by it."""
    if len(name) > MAX_NAME:
        return []
    matcher = SequenceMatcher(b=name)
    alike: list[tuple[float, str]] = []
    for other in known:
        matcher.set_seq1(other)
        if (
            len(other) <= MAX_NAME
            and matcher.real_quick_ratio() >= cutoff
            and (ratio := matcher.quick_ratio()) >= cutoff
        ):
            alike.append((ratio, other))
    return get_close_matches(name, [other for _, other in heapq.nlargest(_COMPARED, alike)], n=most, cutoff=cutoff)
