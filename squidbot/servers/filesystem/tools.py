"""The tools: what each does in the sandbox, and what it tells a model."""

import base64
import binascii
import os
import stat
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    TextContent,
)

from squidbot.servers.filesystem import models
from squidbot.servers.filesystem.editing import replace_exactly, unified_diff
from squidbot.servers.filesystem.reading import HEAD, kind_of, mime_type, read_lines
from squidbot.servers.filesystem.sandbox import Entry, Sandbox, changeable, parts_of, shown
from squidbot.servers.filesystem.search import MAX_FILE, Query, search
from squidbot.servers.refusal import Refused
from squidbot.servers.tools import Answer, said


def read_file(sandbox: Sandbox, asked: models.ReadFile) -> Answer:
    """The lines of a text file, or the whole of a binary one."""
    parts = parts_of(asked.path)
    path = shown(parts)
    with sandbox.file(parts) as descriptor, open(descriptor, "rb", closefd=False) as file:
        size = os.fstat(descriptor).st_size
        kind, mime = kind_of(path, file.read(HEAD))
        bound = MAX_FILE if kind == "text" else models.MAX_BINARY
        if size > bound:
            raise Refused(f"{path!r} has {size} bytes, and a {kind} file may have {bound} to be read here")
        file.seek(0)
        if kind != "text":
            return _binary(models.FileContent(path=path, kind=kind, mime_type=mime, size=size), file.read(bound))
        lines = read_lines(file, offset=asked.offset, limit=asked.limit, size=models.MAX_TEXT)
    if lines is None:
        raise Refused(f"{path!r} has fewer than {asked.offset} lines: use a smaller offset")
    result = models.FileContent(
        path=path,
        kind=kind,
        mime_type=mime,
        size=size,
        text=lines.text,
        first_line=lines.first,
        last_line=lines.last,
        next_offset=lines.following,
        note=lines.note,
    )
    more = f"lines {lines.first} to {lines.last}; go on with offset {lines.following}" if lines.following else None
    remarks = "; ".join(remark for remark in (more, lines.note) if remark)
    return Answer(result, (_text(lines.text), *([_text(f"[{remarks}]")] if remarks else [])))


def write_file(sandbox: Sandbox, asked: models.WriteFile) -> Answer:
    """A new file, or a new content for one."""
    parts = changeable(asked.path)
    data = _decoded(asked)
    _bounded(data)
    created = sandbox.write(parts, data)
    result = models.Written(path=shown(parts), size=len(data), created=created)
    return said(result, f"{'created' if created else 'replaced'} {result.path!r}, {len(data)} bytes")


def edit_file(sandbox: Sandbox, asked: models.EditFile) -> Answer:
    """A text replaced in a file, and the difference."""
    parts = changeable(asked.path)
    path = shown(parts)
    with sandbox.file(parts) as descriptor, open(descriptor, "rb", closefd=False) as file:
        data = file.read(models.MAX_BINARY + 1)
    _bounded(data)
    try:
        before = data.decode()
    except UnicodeDecodeError:
        raise Refused(f"{path!r} is no UTF-8 text, and editing would damage it: use write_file") from None
    after, count = replace_exactly(before, asked.old_text, asked.new_text, every=asked.replace_all)
    changed = after.encode()
    _bounded(changed)
    sandbox.write(parts, changed)
    result = models.Edited(path=path, replacements=count, diff=unified_diff(path, before, after))
    return said(result, result.diff or "nothing changed: old_text and new_text are the same")


def list_directory(sandbox: Sandbox, asked: models.ListDirectory) -> Answer:
    """What is in a directory."""
    parts = parts_of(asked.path)
    entries: list[models.EntryInfo] = []
    truncated = False
    for entry in sandbox.walk(parts, asked.depth):
        if truncated := len(entries) == models.MAX_ENTRIES:
            break
        entries.append(models.EntryInfo(**_described(entry)))
    result = models.Listing(path=shown(parts), entries=entries, truncated=truncated)
    lines = [_line(entry) for entry in entries] or ["(empty)"]
    if truncated:
        lines.append(f"[only the first {models.MAX_ENTRIES}: list a directory below, or use search_files]")
    return said(result, "\n".join(lines))


def search_files(sandbox: Sandbox, asked: models.SearchFiles) -> Answer:
    """Files by name, lines by text."""
    if asked.glob is None and asked.text is None:
        raise Refused("nothing to look for: give 'glob' for names, 'text' for lines, or both")
    found = search(sandbox, Query(**asked.model_dump()))
    result = models.Found(
        matches=[models.FoundLine(path=match.path, line=match.line, text=match.text) for match in found.matches],
        searched=found.searched,
        truncated=found.cut,
    )
    lines = [
        match.path if match.line is None else f"{match.path}:{match.line}: {match.text}" for match in found.matches
    ] or [f"nothing found in {found.searched} files and directories"]
    if found.cut:
        lines.append(f"[{found.cut}: there may be more; narrow the path, glob or text]")
    return said(result, "\n".join(lines))


def move_file(sandbox: Sandbox, asked: models.MoveFile) -> Answer:
    """A file or directory under another path."""
    source, destination = changeable(asked.source), changeable(asked.destination)
    moved, there = sandbox.entry(source), sandbox.find(destination)
    if there and there.kind == "directory":
        inside = shown((*destination, *source[-1:]))
        raise Refused(f"{there.path!r} is a directory: to move into it, use destination {inside!r}")
    if destination[: len(source)] == source and destination != source:
        raise Refused(f"{moved.path!r} cannot be moved into itself: use a destination outside it")
    if there and moved.kind == "directory":
        raise Refused(f"{there.path!r} exists, and a directory cannot replace it: use another destination")
    if there and not asked.overwrite:
        raise Refused(f"{there.path!r} exists: use another destination, or set overwrite to replace it")
    sandbox.move(source, destination)
    result = models.Moved(source=moved.path, destination=shown(destination), replaced=there is not None)
    return said(result, f"moved {result.source!r} to {result.destination!r}")


def file_info(sandbox: Sandbox, asked: models.FileInfo) -> Answer:
    """What is known about a file without reading it."""
    entry = sandbox.entry(parts_of(asked.path))
    result = models.Info(
        **_described(entry),
        mode=stat.filemode(entry.mode)[1:],
        mime_type=mime_type(entry.path) if entry.kind == "file" else None,
    )
    return said(result, "\n".join(f"{name}: {value}" for name, value in result.model_dump(exclude_none=True).items()))


def create_directory(sandbox: Sandbox, asked: models.CreateDirectory) -> Answer:
    """A directory, and those above it."""
    parts = changeable(asked.path)
    result = models.Made(path=shown(parts), created=sandbox.make_directory(parts))
    return said(result, f"{'created' if result.created else 'already there:'} {result.path!r}")


def delete_file(sandbox: Sandbox, asked: models.DeleteFile) -> Answer:
    """A file, a link or an empty directory less."""
    entry = sandbox.remove(changeable(asked.path))
    return said(models.Deleted(path=entry.path, kind=entry.kind), f"deleted {entry.kind} {entry.path!r}")


def _binary(result: models.FileContent, data: bytes) -> Answer:
    encoded = base64.b64encode(data).decode()
    match result.kind:
        case "image":
            return Answer(result, (ImageContent(data=encoded, mime_type=result.mime_type),))
        case "audio":
            return Answer(result, (AudioContent(data=encoded, mime_type=result.mime_type),))
        case _:
            blob = BlobResourceContents(uri=_uri(result.path), mime_type=result.mime_type, blob=encoded)
            return Answer(result, (EmbeddedResource(resource=blob),))


def _uri(path: str) -> str:
    # Not file://: that would promise an absolute path, which nobody outside is told.
    return f"workspace:///{quote(path)}"


def _decoded(asked: models.WriteFile) -> bytes:
    if asked.encoding == "utf-8":
        return asked.content.encode()
    try:
        return base64.b64decode(asked.content, validate=True)
    except binascii.Error as error:
        raise Refused(f"content is no base64 ({error}): encode it, or use encoding 'utf-8' for text") from None


def _bounded(data: bytes) -> None:
    if len(data) > models.MAX_BINARY:
        raise Refused(
            f"a file that is written or edited here may have {models.MAX_BINARY} bytes, not {len(data)} or more"
        )


def _described(entry: Entry) -> dict[str, Any]:
    modified = datetime.fromtimestamp(entry.modified, UTC).isoformat(timespec="seconds")
    return {"path": entry.path, "kind": entry.kind, "size": entry.size, "modified": modified}


def _line(entry: models.EntryInfo) -> str:
    match entry.kind:
        case "directory":
            return f"{entry.path}/"
        case "file":
            return f"{entry.path} ({entry.size} bytes)"
        case other:
            return f"{entry.path} ({other})"


def _text(text: str) -> TextContent:
    return TextContent(text=text)
