"""How each tool is announced: its name, its schemas, and honest hints of what it does to files."""

import functools
from collections.abc import Callable
from typing import Any

from squidbot.servers.filesystem import models, tools
from squidbot.servers.filesystem.sandbox import Sandbox
from squidbot.servers.tools import Answer, Tool, changing, reading


def _alone(run: Callable[[Sandbox, Any], Answer]) -> Callable[[Sandbox, Any], Answer]:
    """Looking, deciding and writing as one step, whoever else changes something."""

    @functools.wraps(run)
    def alone(sandbox: Sandbox, asked: Any) -> Answer:
        with sandbox.changing:
            return run(sandbox, asked)

    return alone


TOOLS: tuple[Tool[Sandbox], ...] = (
    Tool(
        "read_file",
        "Read a file",
        "Read a file. Text comes by lines, from 'offset' on; images, sounds and other binary files come whole.",
        models.ReadFile,
        models.FileContent,
        reading(),
        tools.read_file,
    ),
    Tool(
        "write_file",
        "Write a file",
        "Create a file, or replace all of its content. To change a part of a file, use edit_file.",
        models.WriteFile,
        models.Written,
        changing(destructive=True, idempotent=True),
        _alone(tools.write_file),
    ),
    Tool(
        "edit_file",
        "Edit a file",
        "Replace a text in a file by another. The text must be there exactly once, unless replace_all is set.",
        models.EditFile,
        models.Edited,
        changing(destructive=True, idempotent=False),
        _alone(tools.edit_file),
    ),
    Tool(
        "list_directory",
        "List a directory",
        "List files and directories, with 'depth' also those further down.",
        models.ListDirectory,
        models.Listing,
        reading(),
        tools.list_directory,
    ),
    Tool(
        "search_files",
        "Search files",
        "Find files by name ('glob'), lines by text ('text'), or lines in the files of that name (both).",
        models.SearchFiles,
        models.Found,
        reading(),
        tools.search_files,
    ),
    Tool(
        "move_file",
        "Move a file",
        "Move or rename a file or a directory. The directory of the destination must exist.",
        models.MoveFile,
        models.Moved,
        changing(destructive=True, idempotent=False),
        _alone(tools.move_file),
    ),
    Tool(
        "file_info",
        "Show file details",
        "Tell kind, size, time of change and permissions of a file or directory, without its content.",
        models.FileInfo,
        models.Info,
        reading(),
        tools.file_info,
    ),
    Tool(
        "create_directory",
        "Create a directory",
        "Create a directory, and those above it that are missing. It may exist already.",
        models.CreateDirectory,
        models.Made,
        changing(destructive=False, idempotent=True),
        _alone(tools.create_directory),
    ),
    Tool(
        "delete_file",
        "Delete a file",
        "Delete a file, a link or an empty directory, for good.",
        models.DeleteFile,
        models.Deleted,
        changing(destructive=True, idempotent=False),
        _alone(tools.delete_file),
    ),
)
