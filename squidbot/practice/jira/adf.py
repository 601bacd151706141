"""Texts in two forms: plain, as the API v2 has them, and the Atlassian Document Format, as v3 does."""

from typing import Any

from squidbot.practice.store import Document

_BLOCKS = {"paragraph", "heading", "codeBlock", "blockquote", "panel", "bulletList", "orderedList", "rule", "listItem"}


def is_document(value: object) -> bool:
    """Whether this could be a document; what is inside is taken as it comes."""
    return (
        isinstance(value, dict)
        and value.get("type") == "doc"
        and value.get("version") == 1
        and isinstance(value.get("content"), list)
        and all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in value["content"])
    )


def to_document(text: str | Document | None) -> Document | None:
    """A text as a document: paragraphs at empty lines, breaks at the others."""
    if text is None or isinstance(text, dict):
        return text
    return {"type": "doc", "version": 1, "content": [_paragraph(part) for part in text.split("\n\n") if part]}


def to_text(value: str | Document | None) -> str | None:
    """A document as people would type it."""
    if value is None or isinstance(value, str):
        return value
    return _blocks(value.get("content")).strip()


def _paragraph(text: str) -> Document:
    content: list[Document] = []
    for line in text.split("\n"):
        if content:
            content.append({"type": "hardBreak"})
        if line:
            content.append({"type": "text", "text": line})
    return {"type": "paragraph", "content": content}


def _blocks(nodes: Any) -> str:
    return "\n\n".join(_block(node) for node in nodes or () if isinstance(node, dict))


def _block(node: Document) -> str:
    inner = node.get("content") or []
    attributes = node.get("attrs") or {}
    match node.get("type"):
        case "heading":
            return f"h{attributes.get('level', 1)}. {_inline(inner)}"
        case "codeBlock":
            return f"{{code}}\n{_inline(inner)}\n{{code}}"
        case "bulletList":
            return "\n".join(f"* {_block(item)}" for item in inner)
        case "orderedList":
            return "\n".join(f"# {_block(item)}" for item in inner)
        case "rule":
            return "----"
        case _:
            return _blocks(inner) if any(child.get("type") in _BLOCKS for child in inner) else _inline(inner)


def _inline(nodes: list[Document]) -> str:
    return "".join(_word(node) for node in nodes)


def _word(node: Document) -> str:
    attributes = node.get("attrs") or {}
    match node.get("type"):
        case "hardBreak":
            return "\n"
        case "mention" | "emoji":
            return str(attributes.get("text", ""))
        case "inlineCard":
            return str(attributes.get("url", ""))
        case _:
            return str(node.get("text", "")) or _inline(node.get("content") or [])
