"""git's outputs for programs, taken apart; whatever was cut off at the end is left away."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from squidbot.servers.git.models import BranchInfo, Change, Commit, FileChange
from squidbot.servers.git.words import shown

LOG_FORMAT = "%H%x00%P%x00%an%x00%ae%x00%aI%x00%D%x00%s%x00%b"
BRANCH_FORMAT = (
    "%00".join(
        f"%({part})"
        for part in (
            "HEAD",
            "refname",
            "objectname",
            "committerdate:iso-strict",
            "upstream:short",
            "upstream:track,nobracket",
        )
    )
    + "%00%(contents:subject)%00%(symref)%00"
)

_MAX_BODY = 4_000
_CHANGES: dict[str, Change] = {
    "A": "added",
    "M": "modified",
    "D": "deleted",
    "R": "renamed",
    "C": "copied",
    "T": "type changed",
    "U": "conflicting",
}


@dataclass(slots=True)
class Worktree:
    """What `git status --porcelain=v2 --branch -z` tells."""

    commit: str | None = None
    branch: str | None = None
    upstream: str | None = None
    ahead: int | None = None
    behind: int | None = None
    staged: list[FileChange] = field(default_factory=list)
    unstaged: list[FileChange] = field(default_factory=list)
    untracked: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    paths: list[bytes] = field(default_factory=list)
    """All that a commit of everything takes, as git has the names."""
    left_out: list[str] = field(default_factory=list)
    """Submodules and nested repositories, which it does not."""

    @property
    def tracked_changes(self) -> list[str]:
        return sorted({change.path for change in (*self.staged, *self.unstaged)} | set(self.conflicts))


def records(output: bytes) -> list[bytes]:
    """What is ended by a NUL each."""
    return output.split(b"\0")[:-1]


def worktree(output: bytes) -> Worktree:
    """The state of a working tree."""
    found = Worktree()
    entries = iter(records(output))
    for entry in entries:
        match entry[:1]:
            case b"#":
                _header(found, shown(entry))
            case b"1":
                *fields, path = entry.split(b" ", 8)
                _changed(found, fields, path, None)
            case b"2":
                *fields, path = entry.split(b" ", 9)
                _changed(found, fields, path, next(entries, b""))
            case b"u":
                found.conflicts.append(shown(entry.split(b" ", 10)[-1]))
            case b"?":
                _untracked(found, entry[2:])
            case _:
                pass
    return found


def _header(found: Worktree, line: str) -> None:
    match line.split(" "):
        case ["#", "branch.oid", commit] if commit != "(initial)":
            found.commit = commit
        case ["#", "branch.head", branch] if branch != "(detached)":
            found.branch = branch
        case ["#", "branch.upstream", upstream]:
            found.upstream = upstream
        case ["#", "branch.ab", ahead, behind]:
            found.ahead, found.behind = int(ahead), -int(behind)
        case _:
            pass


def _changed(found: Worktree, fields: list[bytes], path: bytes, old: bytes | None) -> None:
    for letter, changes in zip(shown(fields[1]), (found.staged, found.unstaged), strict=True):
        if letter in _CHANGES:
            origin = shown(old) if old is not None and letter in "RC" else None
            changes.append(FileChange(path=shown(path), change=_CHANGES[letter], old_path=origin))
    if fields[2].startswith(b"S"):
        found.left_out.append(shown(path))
    else:
        found.paths += [path] if old is None else [path, old]


def _untracked(found: Worktree, path: bytes) -> None:
    found.untracked.append(shown(path))
    # Only a repository within the repository is listed as a directory.
    if path.endswith(b"/"):
        found.left_out.append(shown(path))
    else:
        found.paths.append(path)


def file_changes(output: bytes) -> list[FileChange]:
    """The files of a diff, from `--raw --numstat -z`."""
    changes: dict[bytes, FileChange] = {}
    entries = iter(records(output))
    for entry in entries:
        if entry.startswith(b":"):
            letter = shown(entry.rpartition(b" ")[2][:1])
            path = next(entries, b"")
            old = path if letter in "RC" else None
            path = next(entries, b"") if old is not None else path
            change = _CHANGES.get(letter, "modified")
            # A conflict comes first, and once more as a modification.
            changes.setdefault(path, FileChange(path=shown(path), change=change, old_path=shown(old) if old else None))
        else:
            added, deleted, path = entry.split(b"\t", 2)
            if not path:
                next(entries, b"")
                path = next(entries, b"")
            if path in changes and added != b"-":
                counted = {"added": int(added), "deleted": int(deleted)}
                changes[path] = changes[path].model_copy(update=counted)
    return list(changes.values())


def _fields(output: bytes, count: int) -> Iterator[list[str]]:
    parts = [shown(part) for part in records(output)]
    for start in range(0, len(parts) - count + 1, count):
        yield parts[start : start + count]


def commits(output: bytes) -> list[Commit]:
    """Commits of `git log -z` in LOG_FORMAT."""
    return [
        Commit(
            id=commit,
            parents=parents.split(),
            author=author,
            email=email,
            date=date,
            refs=refs.split(", ") if refs else [],
            subject=subject,
            body=body.strip() if len(body) <= _MAX_BODY else f"{body[:_MAX_BODY].strip()} […]",
        )
        for commit, parents, author, email, date, refs, subject, body in _fields(output, 8)
    ]


def branches(output: bytes) -> list[BranchInfo]:
    """Branches of `git for-each-ref` in BRANCH_FORMAT; what only points to another branch is left away."""
    return [
        BranchInfo(
            name=reference.split("/", 2)[2],
            commit=commit,
            date=date,
            subject=subject,
            current=mark.strip() == "*",
            remote=reference.startswith("refs/remotes/"),
            upstream=upstream or None,
            track=track or None,
        )
        for mark, reference, commit, date, upstream, track, subject, symbolic in _fields(output, 8)
        if not symbolic
    ]
