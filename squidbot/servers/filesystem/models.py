"""What each tool takes and gives: the schemas that a model reads."""

from typing import Annotated, Literal

from pydantic import Field

from squidbot.servers.filesystem.sandbox import Kind
from squidbot.servers.tools import Arguments, Result

MAX_TEXT = 256_000
"""Characters of one answer of read_file; more is read in parts."""
MAX_BINARY = 5_000_000
"""Bytes of a binary file in an answer, and of any file that is written."""
MAX_LINES = 10_000
MAX_ENTRIES = 1_000

Path = Annotated[
    str,
    Field(min_length=1, max_length=4096, description="Path from the folder of this server, such as 'docs/plan.md'."),
]


class ReadFile(Arguments):
    """Arguments of read_file."""

    path: Path
    offset: int = Field(default=1, ge=1, description="First line to read, counted from 1.")
    limit: int = Field(default=2_000, ge=1, le=MAX_LINES, description="How many lines to read at most.")


class FileContent(Result):
    """What read_file answers; bytes of an image, a sound or another binary file are in the content block."""

    path: str
    kind: Literal["text", "image", "audio", "binary"]
    mime_type: str
    size: int = Field(description="Bytes of the whole file.")
    text: str | None = Field(default=None, description="The lines, for a text file.")
    first_line: int | None = None
    last_line: int | None = None
    next_offset: int | None = Field(default=None, description="Where to go on reading; null at the end of the file.")
    note: str | None = Field(default=None, description="What is not as it is in the file.")


class WriteFile(Arguments):
    """Arguments of write_file."""

    path: Path
    content: str = Field(description="The whole new content.")
    encoding: Literal["utf-8", "base64"] = Field(default="utf-8", description="'base64' for binary content.")


class Written(Result):
    """What write_file answers."""

    path: str
    size: int = Field(description="Bytes written.")
    created: bool = Field(description="False if a file was replaced.")


class EditFile(Arguments):
    """Arguments of edit_file."""

    path: Path
    old_text: str = Field(
        min_length=1, description="Text to replace, exactly as it is in the file, line ends included."
    )
    new_text: str = Field(description="Text to put in its place.")
    replace_all: bool = Field(default=False, description="Replace every occurrence; otherwise there must be just one.")


class Edited(Result):
    """What edit_file answers."""

    path: str
    replacements: int
    diff: str = Field(description="The change as a unified diff.")


class ListDirectory(Arguments):
    """Arguments of list_directory."""

    path: Path = "."
    depth: int = Field(default=1, ge=1, le=20, description="How many levels to show.")


class EntryInfo(Result):
    """One entry of a directory."""

    path: str
    kind: Kind
    size: int = Field(description="Bytes.")
    modified: str = Field(description="Time of the last change, UTC.")


class Listing(Result):
    """What list_directory answers."""

    path: str
    entries: list[EntryInfo]
    truncated: bool = Field(description=f"True if there are more than {MAX_ENTRIES} entries.")


class SearchFiles(Arguments):
    """Arguments of search_files."""

    path: Path = Field(default=".", description="Directory to search.")
    glob: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="Names to look at: '*.py' anywhere below, 'src/**/*.py' for paths from the searched directory.",
    )
    text: str | None = Field(default=None, min_length=1, max_length=1_000, description="Text that a line must have.")
    regex: bool = Field(default=False, description="Read 'text' as a regular expression (Python's).")
    ignore_case: bool = Field(default=False, description="Upper and lower case of 'text' are the same.")
    limit: int = Field(default=100, ge=1, le=1_000, description="How many matches at most.")


class FoundLine(Result):
    """One match of search_files."""

    path: str
    line: int | None = Field(default=None, description="Number of the line, if 'text' was given.")
    text: str | None = None


class Found(Result):
    """What search_files answers."""

    matches: list[FoundLine]
    searched: int = Field(description="How many files and directories were looked at.")
    truncated: str | None = Field(default=None, description="Why this is not all, or null.")


class MoveFile(Arguments):
    """Arguments of move_file."""

    source: Path
    destination: Path = Field(description="The new path, with the new name.")
    overwrite: bool = Field(default=False, description="Replace a file that is already at the destination.")


class Moved(Result):
    """What move_file answers."""

    source: str
    destination: str
    replaced: bool


class FileInfo(Arguments):
    """Arguments of file_info."""

    path: Path


class Info(EntryInfo):
    """What file_info answers."""

    mode: str = Field(description="Permissions, such as 'rw-r--r--'.")
    mime_type: str | None = None


class CreateDirectory(Arguments):
    """Arguments of create_directory."""

    path: Path


class Made(Result):
    """What create_directory answers."""

    path: str
    created: bool = Field(description="False if it was there already.")


class DeleteFile(Arguments):
    """Arguments of delete_file."""

    path: Path


class Deleted(Result):
    """What delete_file answers."""

    path: str
    kind: Kind
