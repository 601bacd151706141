"""Adds and removes servers in a settings file, and leaves every other character of it as it was."""

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from squidbot.config import documents
from squidbot.config.documents import Document
from squidbot.config.files import display, read_text
from squidbot.config.imports import kind_of_document
from squidbot.config.jsonc import JSONText, Location, parse_jsonc
from squidbot.config.load import check_document
from squidbot.config.report import did_you_mean
from squidbot.core.domain.errors import ConfigError

_PLACE = ("tools", "mcp_servers")
_INDENT = "  "


def add_server(path: Path, name: str, entry: Mapping[str, Any]) -> None:
    """Write one more server into the file, which is made if it is not there. Raises ConfigError, and writes nothing."""

    def insert(document: JSONText) -> str:
        if name in _servers(document.value):
            raise ConfigError(
                f"{display(path)} has a server {name!r} already", hint=f"'squidbot servers remove {name}' takes it out."
            )
        return inserted(document, _PLACE, name, entry)

    _rewrite(path, insert)


def remove_server(path: Path, name: str) -> None:
    """Take one server out of the file. Raises ConfigError, and writes nothing, if it is not there."""

    def cut(document: JSONText) -> str:
        servers = _servers(document.value)
        if name not in servers:
            raise ConfigError(f"{display(path)} has no server {name!r}", hint=did_you_mean(name, servers))
        return without(document, (*_PLACE, name))

    _rewrite(path, cut)


def _rewrite(path: Path, change: Callable[[JSONText], str]) -> None:
    """Change the text, make sure that what comes out is still good, and only then put it in the file's place."""
    path = path.resolve()  # a link stays a link: what it points to is written
    text = _text(path)
    changed = change(parse_jsonc(text))
    check_document(documents.parse(changed, name=display(path), is_json=True), source=path)
    replace_text(path, changed)


def _text(path: Path) -> str:
    if not path.exists():
        return "{\n}\n"
    document = documents.read(path)
    if path.suffix.lower() in {".yaml", ".yml"}:
        raise ConfigError(
            f"{display(path)} is YAML, which squidbot does not rewrite: your comments and layout would be lost",
            hint="Edit 'tools.mcp_servers' in it by hand, or keep the settings in JSON.",
        )
    if kind_of_document(document.value) is not None:
        raise ConfigError(
            f"{display(path)} is another tool's file, which squidbot reads and does not change",
            hint=f"'squidbot servers import {path.name}' takes its servers into settings of your own.",
        )
    check_document(Document(document.value, document.lines), source=path)
    return read_text(path)


def _servers(document: Any) -> Mapping[str, Any]:
    servers: Mapping[str, Any] = document.get("tools", {}).get("mcp_servers", {})
    return servers


def inserted(document: JSONText, place: tuple[str, ...], name: str, entry: Mapping[str, Any]) -> str:
    """The text with the entry as the last member of `place`; objects on the way to it are made as needed."""
    depth = next(depth for depth in range(len(place), -1, -1) if place[:depth] in document.spans)
    value: Any = {name: dict(entry)}
    for key in reversed(place[depth:]):
        value = {key: value}
    ((key, member),) = value.items()
    margin = _INDENT * (depth + 1)
    body = json.dumps(member, indent=len(_INDENT), ensure_ascii=False).replace("\n", f"\n{margin}")
    return _append(document, place[:depth], f"\n{margin}{json.dumps(key, ensure_ascii=False)}: {body}")


def _append(document: JSONText, place: Location, member: str) -> str:
    text, closing = document.text, document.spans[place].end - 1
    before = text[:closing].rstrip()
    after = text[len(before) : closing] + text[closing:]
    if "\n" not in after[: closing - len(before)]:
        after = f"\n{_INDENT * len(place)}{text[closing:]}"
    children = [span for key, span in document.spans.items() if key[:-1] == place and len(key) == len(place) + 1]
    last = max(children, key=lambda span: span.end, default=None)
    if last is not None and last.comma is None:
        before = f"{before[: last.end]},{before[last.end :]}"
    return before + member + after


def without(document: JSONText, place: Location) -> str:
    """The text without one member: with the comma behind it, or, if it was the last, the one before it."""
    text, span = document.text, document.spans[place]
    start, end = span.key, span.end if span.comma is None else span.comma + 1
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    alone = not text[line_start:start].strip() and line_end >= 0 and not text[end:line_end].strip()
    head, tail = (text[:line_start], text[line_end + 1 :]) if alone else (text[:start], text[end:])
    if span.comma is None:
        siblings = (other.comma for key, other in document.spans.items() if key[:-1] == place[:-1])
        comma = max((comma for comma in siblings if comma is not None), default=None)
        if comma is not None:
            head = head[:comma] + head[comma + 1 :]
    return head + tail


def replace_text(path: Path, text: str, *, mode: int | None = None) -> None:
    """Put the text in the file's place in one step, with `mode`, else the file's; a new file is for its owner alone."""
    if mode is None:
        mode = path.stat().st_mode & 0o7777 if path.exists() else 0o600
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise ConfigError(f"{display(path)} cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise ConfigError(f"{display(path)} cannot be written: {error.strerror}") from None
