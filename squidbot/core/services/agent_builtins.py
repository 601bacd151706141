"""The few tools that squidbot itself gives to a model, and how what a model writes as arguments is read."""

import json
import secrets
from collections.abc import Mapping
from typing import Any, NoReturn

from squidbot.core.domain.content import TextContent
from squidbot.core.domain.conversation import CallAsked, ModelTool
from squidbot.core.domain.errors import InvalidArguments
from squidbot.core.domain.foreign import marked
from squidbot.core.domain.tools import ToolResult

LONGEST_ARGUMENTS = 1_000_000
_PAGE = 10_000
_LONGEST_PAGE = 20_000

SEARCH_TOOLS = ModelTool(
    "search_tools",
    "Find tools by words: what you want to do, and with what. Answers with their names, descriptions and parameters. "
    "There are more tools than can be listed; search before you say that something cannot be done.",
    {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "A few words, such as 'create pull request'"}},
        "required": ["query"],
    },
)
CALL_TOOL = ModelTool(
    "call_tool",
    "Call a tool that search_tools has found.",
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The tool's name, as search_tools gave it"},
            "arguments": {"type": "object", "description": "What the tool's parameters ask for"},
        },
        "required": ["name", "arguments"],
    },
)
READ_RESULT = ModelTool(
    "read_result",
    "Read on in a result that was too long to be shown whole; the note below it gives its name.",
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name that the note gives"},
            "offset": {"type": "integer", "minimum": 0, "description": "From which character on; 0 is the first"},
            "length": {
                "type": "integer",
                "minimum": 1,
                "maximum": _LONGEST_PAGE,
                "description": f"How many characters, else {_PAGE}",
            },
        },
        "required": ["name"],
    },
)
OWN = frozenset({SEARCH_TOOLS.name, CALL_TOOL.name, READ_RESULT.name})


def parsed(arguments: str) -> dict[str, Any]:
    """What a model wrote as arguments. Raises InvalidArguments that says what is wrong with it."""
    if len(arguments) > LONGEST_ARGUMENTS:
        raise InvalidArguments(f"the arguments are longer than {LONGEST_ARGUMENTS:,} characters")
    if not arguments.strip():
        return {}
    try:
        value = json.loads(arguments, object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidArguments(f"the arguments are not valid JSON ({reason}); send one JSON object") from None
    if not isinstance(value, dict):
        raise InvalidArguments("the arguments are JSON, but no object; send one JSON object, such as {}")
    return value


def inner_call(call: CallAsked, arguments: Mapping[str, Any]) -> CallAsked:
    """The call that `call_tool` is asked to make. Raises InvalidArguments."""
    name, inner = text_argument(arguments, "name"), arguments.get("arguments", {})
    if name in OWN:
        raise InvalidArguments(f"{name!r} is called by itself, not through {CALL_TOOL.name}")
    # Some models write the inner object as text.
    return CallAsked(call.id, name, inner if isinstance(inner, str) else json.dumps(inner))


def text_argument(arguments: Mapping[str, Any], name: str) -> str:
    """An argument that must be there, and be text. Raises InvalidArguments."""
    value = arguments.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidArguments(f"{name!r} is needed, and is text")
    return value


def page(text: str, arguments: Mapping[str, Any]) -> ToolResult:
    """A part of a kept result."""
    offset, length = _number(arguments, "offset", 0), _number(arguments, "length", _PAGE)
    part = text[offset : offset + min(max(length, 1), _LONGEST_PAGE)]
    end = offset + len(part)
    rest = f"; go on with offset={end}" if end < len(text) else "; this is the end"
    words = marked(part, key=secrets.token_hex(8), source="a kept result")
    return ToolResult((TextContent(f"{words}\n[Characters {offset:,} to {end:,} of {len(text):,}{rest}.]"),))


def _number(arguments: Mapping[str, Any], name: str, default: int) -> int:
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidArguments(f"{name!r} is a whole number, 0 or more")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears twice")
    return found


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number in JSON")
