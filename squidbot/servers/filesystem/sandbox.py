"""One folder and nothing outside it: paths are walked directory by directory, and no link is followed.

Nothing is checked first and used later. Every component is opened relative to the descriptor of the
one before it, with O_NOFOLLOW, so that a directory that is swapped for a link in the meantime fails
to open instead of leading outside.
"""

import contextlib
import difflib
import errno
import itertools
import os
import secrets
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from squidbot.servers.refusal import Refused

Kind: TypeAlias = Literal["file", "directory", "symlink", "other"]
Parts: TypeAlias = tuple[str, ...]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a FIFO must not wait for a writer before we can see that it is one.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CANDIDATES = 2_000


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in the folder, by its path from the folder."""

    path: str
    kind: Kind
    size: int
    modified: float
    mode: int


def parts_of(path: str) -> Parts:
    """The components of a path from the folder; `()` is the folder itself."""
    if "\0" in path or not _is_text(path):
        raise Refused(f"path {path!r} has characters that no file name can have")
    if path.startswith("/"):
        relative = path.strip("/") or "."
        raise Refused(f"path {path!r} is absolute: paths start at the folder of this server, for example {relative!r}")
    parts: list[str] = []
    for name in path.split("/"):
        if name == ".." and not parts:
            raise Refused(f"path {path!r} leaves the folder of this server: only what is inside can be used")
        if name == "..":
            parts.pop()
        elif name not in {"", "."}:
            parts.append(name)
    return tuple(parts)


def changeable(path: str) -> Parts:
    """The components of a path at which something may be changed: nothing of git's own, whose files can name programs to run."""
    parts = parts_of(path)
    if any(name.casefold() == ".git" for name in parts):
        raise Refused(f"path {path!r} is git's own, and is not changed here: use git's tools")
    return parts


def shown(parts: Parts) -> str:
    """A path as it is written in answers; bytes of a name that are no UTF-8 come out escaped."""
    return os.fsencode("/".join(parts) or ".").decode("utf-8", "backslashreplace")


class Sandbox:
    """The folder behind one descriptor. Safe to use from several threads."""

    def __init__(self, root: int) -> None:
        self.root = root
        self.changing = threading.Lock()
        """To be held by whoever changes something, so that looking, deciding and writing are one step."""
        self.closing = threading.Event()
        """Set when nobody waits for answers any more; whoever is still searching stops."""

    @classmethod
    def open(cls, folder: Path) -> "Sandbox":
        """Raises OSError if `folder` is no directory that can be read."""
        return cls(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))

    def close(self) -> None:
        self.closing.set()
        os.close(self.root)

    @contextlib.contextmanager
    def directory(self, parts: Parts) -> Iterator[int]:
        """A descriptor of the directory at `parts`, for as long as the context lasts."""
        # Opened anew, not duplicated: duplicates share one reading position, and two listings would cut each other short.
        descriptor = os.open(".", _DIRECTORY, dir_fd=self.root)
        try:
            for depth, name in enumerate(parts, 1):
                with self._explained(descriptor, parts[:depth], wanted="directory"):
                    inner = os.open(name, _DIRECTORY, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def file(self, parts: Parts) -> Iterator[int]:
        """A descriptor, for reading, of the regular file at `parts`."""
        with self._parent(parts) as (parent, name):
            with self._explained(parent, parts):
                # Opening a device can do something to it, so it is looked at before as well as after.
                _must_be_file(os.stat(name, dir_fd=parent, follow_symlinks=False), parts)
                descriptor = os.open(name, _FILE, dir_fd=parent)
            try:
                _must_be_file(os.fstat(descriptor), parts)
                yield descriptor
            finally:
                os.close(descriptor)

    def entry(self, parts: Parts) -> Entry:
        """What is at `parts`; a link is described, not followed."""
        if not parts:
            return _entry(parts, os.fstat(self.root))
        with self._parent(parts) as (parent, name), self._explained(parent, parts):
            return _entry(parts, os.stat(name, dir_fd=parent, follow_symlinks=False))

    def find(self, parts: Parts) -> Entry | None:
        """What is at `parts`, or None; a directory on the way that is missing is still refused."""
        with self._parent(parts) as (parent, name), self._explained(parent, parts):
            try:
                return _entry(parts, os.stat(name, dir_fd=parent, follow_symlinks=False))
            except FileNotFoundError:
                return None

    def walk(self, parts: Parts, depth: int) -> Iterator[Entry]:
        """Everything below `parts` down to `depth` levels, each directory sorted by name and before its content."""
        with self.directory(parts) as descriptor:
            yield from _walk(descriptor, parts, depth)

    def write(self, parts: Parts, data: bytes) -> bool:
        """Put `data` at `parts`, whole or not at all; True if there was no such file before.

        The file is replaced, never written into: readers see the old or the new content, and another
        hard link to the old one keeps it.
        """
        before = self.find(parts)
        if before is not None:
            _must_be(before, "file")
        with self._parent(parts) as (parent, name), self._explained(parent, parts):
            temporary = f".{secrets.token_hex(8)}.tmp"
            descriptor = os.open(temporary, _NEW_FILE, 0o666, dir_fd=parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    if before is not None:
                        os.fchmod(descriptor, before.mode & 0o777)
                    file.write(data)
                    file.flush()
                    os.fsync(descriptor)
                os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=parent)
                raise
        return before is None

    def make_directory(self, parts: Parts) -> bool:
        """Make a directory and those above it; True if it was not there before."""
        made = False
        for depth in range(1, len(parts) + 1):
            with self._parent(parts[:depth]) as (parent, name), self._explained(parent, parts[:depth]):
                try:
                    os.mkdir(name, dir_fd=parent)
                    made = True
                except FileExistsError:
                    made = False
        with self.directory(parts):
            return made

    def move(self, source: Parts, destination: Parts) -> None:
        """Rename, over a file that is already there too."""
        with (
            self._parent(source) as (from_parent, from_name),
            self._parent(destination) as (to_parent, to_name),
            self._explained(from_parent, source),
        ):
            os.rename(from_name, to_name, src_dir_fd=from_parent, dst_dir_fd=to_parent)

    def remove(self, parts: Parts) -> Entry:
        """Delete a file, a link or an empty directory."""
        entry = self.entry(parts)
        with self._parent(parts) as (parent, name), self._explained(parent, parts):
            if entry.kind == "directory":
                os.rmdir(name, dir_fd=parent)
            else:
                os.unlink(name, dir_fd=parent)
        return entry

    @contextlib.contextmanager
    def _parent(self, parts: Parts) -> Iterator[tuple[int, str]]:
        if not parts:
            raise Refused("path '.' is the folder of this server itself: name something inside it")
        with self.directory(parts[:-1]) as descriptor:
            yield descriptor, parts[-1]

    @contextlib.contextmanager
    def _explained(
        self, parent: int, parts: Parts, *, wanted: Literal["directory", "file or directory"] = "file or directory"
    ) -> Iterator[None]:
        """Turn what the system says about `parts` into words, without its own idea of the path."""
        try:
            yield
        except FileNotFoundError:
            raise Refused(f"no {wanted} {shown(parts)!r}: {self._instead(shown(parts), wanted)}") from None
        except OSError as error:
            raise Refused(_words(error, parent, parts)) from None

    def _instead(self, path: str, wanted: str) -> str:
        """What was perhaps meant, by the same name elsewhere or a path that looks alike, or how to go on."""
        known = [entry.path for entry in itertools.islice(self.walk((), depth=8), _CANDIDATES)]
        if path in known:
            return "its name as it is shown stands for bytes that are no UTF-8, and cannot be given here"
        name = path.rpartition("/")[2]
        alike = [other for other in known if other.rpartition("/")[2] == name]
        alike += difflib.get_close_matches(path, known, n=3)
        if nearest := list(dict.fromkeys(alike))[:3]:
            return f"did you mean {' or '.join(repr(other) for other in nearest)}?"
        return f"list_directory shows what is there{', create_directory makes one' if wanted == 'directory' else ''}"


def _words(error: OSError, parent: int, parts: Parts) -> str:
    path = shown(parts)
    match error.errno:
        case errno.ELOOP | errno.ENOTDIR if _is_link(parent, parts[-1]):
            return f"{path!r} is a symbolic link, and links are never followed here: use the file's own path"
        case errno.ENOTDIR:
            return f"{path!r} is not a directory"
        case errno.ENOTEMPTY:
            return f"directory {path!r} is not empty: delete or move what is in it first"
        case errno.EACCES | errno.EPERM:
            return f"the system gives no permission for {path!r}"
        case code:
            return f"{path!r}: {os.strerror(code or 0)}"


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_link(parent: int, name: str) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    return False


def _entry(parts: Parts, status: os.stat_result) -> Entry:
    return Entry(shown(parts), _kind(status), status.st_size, status.st_mtime, stat.S_IMODE(status.st_mode))


def _kind(status: os.stat_result) -> Kind:
    match stat.S_IFMT(status.st_mode):
        case stat.S_IFREG:
            return "file"
        case stat.S_IFDIR:
            return "directory"
        case stat.S_IFLNK:
            return "symlink"
        case _:
            return "other"


def _must_be_file(status: os.stat_result, parts: Parts) -> None:
    _must_be(_entry(parts, status), "file")


def _must_be(entry: Entry, kind: Kind) -> None:
    if entry.kind == kind:
        return
    match entry.kind:
        case "directory":
            raise Refused(f"{entry.path!r} is a directory: list_directory shows what is in it")
        case "symlink":
            raise Refused(
                f"{entry.path!r} is a symbolic link, and links are never followed here: use the file's own path"
            )
        case _:
            raise Refused(f"{entry.path!r} is no regular file but a device, pipe or socket: it cannot be used here")


def _walk(descriptor: int, parts: Parts, depth: int) -> Iterator[Entry]:
    for name in sorted(os.listdir(descriptor)):
        try:
            entry = _entry((*parts, name), os.stat(name, dir_fd=descriptor, follow_symlinks=False))
        except FileNotFoundError:
            continue
        yield entry
        if entry.kind == "directory" and depth > 1:
            with contextlib.suppress(OSError):
                inner = os.open(name, _DIRECTORY, dir_fd=descriptor)
                try:
                    yield from _walk(inner, (*parts, name), depth - 1)
                finally:
                    os.close(inner)
