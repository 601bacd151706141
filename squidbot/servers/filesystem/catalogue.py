"""How each tool is announced: its name, its schemas, and honest hints of what it does to files."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcp_types import ToolAnnotations

from squidbot.servers.filesystem import models, tools
from squidbot.servers.filesystem.sandbox import Sandbox
from squidbot.servers.filesystem.tools import Answer


@dataclass(frozen=True, slots=True)
class FileTool:
    """One tool: how it is announced, and what it does."""

    name: str
    title: str
    description: str
    arguments: type[models.Arguments]
    result: type[models.Result]
    annotations: ToolAnnotations
    run: Callable[[Sandbox, Any], Answer]

    @property
    def changes(self) -> bool:
        return not self.annotations.read_only_hint


def _reading() -> ToolAnnotations:
    return ToolAnnotations(read_only_hint=True, open_world_hint=False)


def _changing(*, destructive: bool, idempotent: bool) -> ToolAnnotations:
    return ToolAnnotations(
        read_only_hint=False, destructive_hint=destructive, idempotent_hint=idempotent, open_world_hint=False
    )


TOOLS: tuple[FileTool, ...] = (
    FileTool(
        "read_file",
        "Read a file",
        "Read a file. Text comes by lines, from 'offset' on; images, sounds and other binary files come whole.",
        models.ReadFile,
        models.FileContent,
        _reading(),
        tools.read_file,
    ),
    FileTool(
        "write_file",
        "Write a file",
        "Create a file, or replace all of its content. To change a part of a file, use edit_file.",
        models.WriteFile,
        models.Written,
        _changing(destructive=True, idempotent=True),
        tools.write_file,
    ),
    FileTool(
        "edit_file",
        "Edit a file",
        "Replace a text in a file by another. The text must be there exactly once, unless replace_all is set.",
        models.EditFile,
        models.Edited,
        _changing(destructive=True, idempotent=False),
        tools.edit_file,
    ),
    FileTool(
        "list_directory",
        "List a directory",
        "List files and directories, with 'depth' also those further down.",
        models.ListDirectory,
        models.Listing,
        _reading(),
        tools.list_directory,
    ),
    FileTool(
        "search_files",
        "Search files",
        "Find files by name ('glob'), lines by text ('text'), or lines in the files of that name (both).",
        models.SearchFiles,
        models.Found,
        _reading(),
        tools.search_files,
    ),
    FileTool(
        "move_file",
        "Move a file",
        "Move or rename a file or a directory. The directory of the destination must exist.",
        models.MoveFile,
        models.Moved,
        _changing(destructive=True, idempotent=False),
        tools.move_file,
    ),
    FileTool(
        "file_info",
        "Show file details",
        "Tell kind, size, time of change and permissions of a file or directory, without its content.",
        models.FileInfo,
        models.Info,
        _reading(),
        tools.file_info,
    ),
    FileTool(
        "create_directory",
        "Create a directory",
        "Create a directory, and those above it that are missing. It may exist already.",
        models.CreateDirectory,
        models.Made,
        _changing(destructive=False, idempotent=True),
        tools.create_directory,
    ),
    FileTool(
        "delete_file",
        "Delete a file",
        "Delete a file, a link or an empty directory, for good.",
        models.DeleteFile,
        models.Deleted,
        _changing(destructive=True, idempotent=False),
        tools.delete_file,
    ),
)
