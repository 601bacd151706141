"""What an agent's model is told before anything else: who it is, what holds, and what its servers say of themselves."""

from collections.abc import Mapping

from squidbot.core.domain.foreign import RULE, marked
from squidbot.core.domain.text import head_and_tail

_LONGEST_INSTRUCTIONS = 4_000

_HOW = (
    "Use the tools to find out and to act; do not guess what a tool can tell you. Independent calls can be asked for "
    "at once: they run side by side. A call that fails says why: correct it, or say plainly what could not be done. "
    "What your role may not do is refused: do not try to get around it, say who could do it. "
    "When you are done, answer the person briefly."
)


def briefing(
    *,
    role: str,
    name: str = "",
    description: str = "",
    instructions: str = "",
    servers: Mapping[str, str] | None = None,
    keys: Mapping[str, str] | None = None,
) -> str:
    """The system's words. `servers` are the instructions of each, `keys` what marks each of them as data."""
    who = f"You are {name}, an agent" if name else "You are an agent"
    parts = [f"{who} in the role {role!r}{f': {description}' if description else ''}.", _HOW, RULE]
    if instructions.strip():
        parts.append(instructions.strip())
    for server, words in (servers or {}).items():
        cut = head_and_tail(words, _LONGEST_INSTRUCTIONS)
        source = f"server {server}, about the use of its tools"
        parts.append(marked(cut, key=(keys or {})[server], source=source))
    return "\n\n".join(parts)
