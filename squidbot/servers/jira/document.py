"""Atlassian's document format: made from a plain text, and told as one.

Written is what people write in tickets: paragraphs, line breaks, bullet lists, code blocks, links. Read is everything,
so that no word of a ticket is lost, whoever wrote it.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

Node = dict[str, Any]

_FENCE: Final = re.compile(r"^\s*```\s*([\w+#.-]*)\s*$")
_BULLET: Final = re.compile(r"^\s{0,3}[-*•]\s+(.*)$")
_LINK: Final = re.compile(r"\[([^\[\]\n]+)\]\((https?://[^\s()]+)\)|(https?://[^\s<>\[\]()\"']+[^\s<>\[\]()\"'.,;:!?])")
_DEEPEST: Final = 40
"""Levels of a document that are read; deeper ones come from nobody's editor."""
_BLOCKS: Final = frozenset(
    {
        "paragraph", "heading", "codeBlock", "blockquote", "panel", "bulletList", "orderedList", "taskList", "decisionList",
        "rule", "table", "mediaSingle", "mediaGroup", "expand", "nestedExpand", "layoutSection", "layoutColumn", "blockCard",
    }
)  # fmt: skip


def to_document(text: str) -> Node:
    """A text as a document."""
    return {"type": "doc", "version": 1, "content": list(_blocks(text.splitlines()))}


def _blocks(lines: list[str]) -> Iterator[Node]:
    rest = iter(lines)
    kind, gathered = "", list[str]()
    for line in rest:
        fence, bullet = _FENCE.match(line), _BULLET.match(line)
        now = "code" if fence else "list" if bullet else "text" if line.strip() else ""
        if now != kind or fence:
            yield from _block(kind, gathered)
            kind, gathered = now, []
        if fence:
            yield _code(rest, fence[1])
            kind = ""
        elif line.strip():
            gathered.append(bullet[1] if bullet else line)
    yield from _block(kind, gathered)


def _block(kind: str, lines: list[str]) -> Iterator[Node]:
    if kind == "text":
        yield _paragraph(lines)
    elif kind == "list":
        yield {
            "type": "bulletList",
            "content": [{"type": "listItem", "content": [_paragraph([line])]} for line in lines],
        }


def _code(rest: Iterator[str], language: str) -> Node:
    """The lines up to the closing fence, or up to the end if somebody forgot it."""
    lines = []
    for line in rest:
        if _FENCE.match(line):
            break
        lines.append(line)
    text = "\n".join(lines)
    return {
        "type": "codeBlock",
        **({"attrs": {"language": language}} if language else {}),
        # An empty text node is an error in Jira.
        "content": [{"type": "text", "text": text}] if text else [],
    }


def _paragraph(lines: list[str]) -> Node:
    content: list[Node] = []
    for line in lines:
        content += [{"type": "hardBreak"}] if content else []
        content += _inline(line)
    return {"type": "paragraph", "content": content}


def _inline(line: str) -> Iterator[Node]:
    end = 0
    for link in _LINK.finditer(line):
        if link.start() > end:
            yield {"type": "text", "text": line[end : link.start()]}
        words, url = (link[1], link[2]) if link[1] else (link[3], link[3])
        yield {"type": "text", "text": words, "marks": [{"type": "link", "attrs": {"href": url}}]}
        end = link.end()
    if end < len(line):
        yield {"type": "text", "text": line[end:]}


def to_text(value: Any) -> str:
    """A document, or what already is a text, as a text; nothing is an empty one."""
    if isinstance(value, str):
        return value.replace("\r\n", "\n")
    return _told(value, 0).strip("\n") if isinstance(value, dict) else ""


def _told(node: Any, depth: int) -> str:
    if not isinstance(node, dict) or depth > _DEEPEST:
        return ""
    tell = _TELL.get(str(node.get("type")))
    if tell is not None:
        return tell(node, depth)
    if not _content(node):
        return _named(node)
    return _children(node, depth, "\n\n" if any(map(_is_block, _content(node))) else "")


def _code_block(node: Node, depth: int) -> str:
    return f"```{_attribute(node, 'language')}\n{_children(node, depth, '')}\n```"


def _heading(node: Node, depth: int) -> str:
    level = _attribute(node, "level")
    return f"{'#' * (min(int(level), 6) if level.isdecimal() else 1)} {_children(node, depth, '')}"


def _quote(node: Node, depth: int) -> str:
    return "\n".join(f"> {line}" for line in _children(node, depth, "\n").splitlines())


def _row(node: Node, depth: int) -> str:
    cells = [_told(cell, depth + 1).replace("\n", " ") for cell in _content(node)]
    return f"| {' | '.join(cells)} |"


def _named(node: Node) -> str:
    """What has no text of its own: a person, an emoji, a status, a card, a date, a file."""
    for name in ("text", "shortName", "url", "alt", "timestamp"):
        if told := _attribute(node, name):
            return told
    return "[file]" if node.get("type") in {"media", "mediaInline"} else ""


def _with_link(node: Node) -> str:
    text = str(node.get("text", ""))
    marks = node.get("marks")
    for mark in marks if isinstance(marks, list) else []:
        if isinstance(mark, dict) and mark.get("type") == "link":
            url = _attribute(mark, "href")
            return text if url in {"", text} else f"[{text}]({url})"
    return text


def _items(marker: Callable[[int, Node], str]) -> Callable[[Node, int], str]:
    """How a list is told whose items begin with a marker."""

    def told(node: Node, depth: int) -> str:
        lines = []
        for number, item in enumerate(filter(lambda item: isinstance(item, dict), _content(node)), 1):
            mark = marker(number, item)
            between = "\n" if any(map(_is_block, _content(item))) else ""
            first, *others = _children(item, depth + 1, between).splitlines() or [""]
            lines += [mark + first, *(" " * len(mark) + line for line in others)]
        return "\n".join(lines)

    return told


def _children(node: Node, depth: int, between: str) -> str:
    return between.join(_told(child, depth + 1) for child in _content(node))


def _content(node: Node) -> list[Any]:
    content = node.get("content")
    return content if isinstance(content, list) else []


def _is_block(node: Any) -> bool:
    return isinstance(node, dict) and node.get("type") in _BLOCKS


def _attribute(node: Node, name: str) -> str:
    attributes = node.get("attrs")
    value = attributes.get(name) if isinstance(attributes, dict) else None
    return "" if value is None else str(value)


_TELL: Final[dict[str, Callable[[Node, int], str]]] = {
    "text": lambda node, _depth: _with_link(node),
    "hardBreak": lambda _node, _depth: "\n",
    "rule": lambda _node, _depth: "---",
    "codeBlock": _code_block,
    "heading": _heading,
    "blockquote": _quote,
    "bulletList": _items(lambda _number, _item: "- "),
    "decisionList": _items(lambda _number, _item: "- "),
    "orderedList": _items(lambda number, _item: f"{number}. "),
    "taskList": _items(lambda _number, item: "[x] " if _attribute(item, "state") == "DONE" else "[ ] "),
    "table": lambda node, depth: _children(node, depth, "\n"),
    "tableRow": _row,
}
