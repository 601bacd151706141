"""The bare repository behind the forge: branches, commits, files, diffs, as the git program tells them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from squidbot.practice.git import GitFailed, git, run

DEFAULT_BRANCH = "main"

# What a push may not touch: the protected branch, and the forge's own references to pull requests.
_PRE_RECEIVE = f"""#!/bin/sh
# The default branch is protected: it changes only by merging a pull request, which the forge does itself.
while read -r old new ref; do
    case "$ref" in
    refs/heads/{DEFAULT_BRANCH})
        echo "The branch '{DEFAULT_BRANCH}' is protected: nobody pushes to it." >&2
        echo "Push to a branch of your own, open a pull request, and merge that." >&2
        exit 1 ;;
    refs/pull/*)
        echo "'$ref' belongs to a pull request: push to the request's branch instead." >&2
        exit 1 ;;
    esac
done
"""
_FIELDS = "%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B%x00%x00"
_DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", "--full-index")
_STATUS = {"A": "added", "D": "removed", "M": "modified", "T": "changed", "R": "renamed", "C": "copied"}


@dataclass(frozen=True, slots=True)
class Signature:
    """Who did something to a commit, and when (RFC 3339)."""

    name: str
    email: str
    date: str


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Signature
    committer: Signature
    message: str


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to one file between two commits."""

    path: str
    previous: str | None
    status: str
    blob: str
    additions: int
    deletions: int
    patch: str | None
    """None for a binary file, as GitHub has it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in a tree."""

    path: str
    kind: str
    sha: str
    size: int


class Repository:
    """One bare repository on disk. Names that come from outside are never taken for options."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self, history: bytes) -> None:
        """Make the repository from a stream of `git fast-import`, and protect its default branch."""
        git(self.path.parent, "init", "--quiet", "--bare", f"--initial-branch={DEFAULT_BRANCH}", str(self.path))
        # Said here, because a hooks folder in the settings of whoever pushes would take the place of ours.
        git(self.path, "config", "core.hooksPath", "hooks")
        git(self.path, "fast-import", "--quiet", stdin=history)
        hook = self.path / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(_PRE_RECEIVE, encoding="utf-8")
        hook.chmod(0o755)

    def clone(self, folder: Path, *, name: str, email: str) -> None:
        """A working clone, ready to commit and push."""
        git(folder.parent, "clone", "--quiet", "--no-hardlinks", str(self.path), str(folder))
        git(folder, "config", "user.name", name)
        git(folder, "config", "user.email", email)

    def resolve(self, name: str) -> str | None:
        """The commit that a branch, tag or (abbreviated) id stands for."""
        if not name or name.startswith("-") or set(name) & set("^~:@{}\\*?[ \n\0"):
            return None
        for candidate in (f"refs/heads/{name}", f"refs/tags/{name}", name):
            ended = run(self.path, "rev-parse", "--verify", "--quiet", f"{candidate}^{{commit}}", fine=(0, 1, 128))
            if ended.returncode == 0:
                return ended.stdout.decode().strip()
        return None

    def branch(self, name: str) -> str | None:
        return self.references(f"refs/heads/{name}").get(f"refs/heads/{name}") if is_reference(name) else None

    def references(self, prefix: str = "refs/heads/") -> dict[str, str]:
        """Every reference at or below `prefix`, with the commit it names."""
        lines = git(self.path, "for-each-ref", "--format=%(refname)%00%(objectname)", prefix).decode().splitlines()
        return dict(line.split("\0", 1) for line in lines)

    def move(self, reference: str, new: str | None, old: str | None = None) -> None:
        """Set a reference, or delete it; `old` is what it must be now. Raises GitFailed if it is not."""
        if new is None:
            git(self.path, "update-ref", "-d", reference, *([old] if old else []))
        else:
            git(self.path, "update-ref", reference, new, *([old] if old is not None else []))

    def commit(self, sha: str) -> Commit:
        return next(self._commits("--max-count=1", sha))

    def log(self, revision: str, *, path: str | None = None, limit: int = 1_000) -> list[Commit]:
        """The commits of a revision or a range, newest first."""
        return list(self._commits(f"--max-count={limit}", revision, *(["--", path] if path else [])))

    def merge_base(self, one: str, other: str) -> str | None:
        return git(self.path, "merge-base", one, other, fine=(0, 1)).decode().strip() or None

    def is_ancestor(self, older: str, newer: str) -> bool:
        return run(self.path, "merge-base", "--is-ancestor", older, newer, fine=(0, 1)).returncode == 0

    def diff(self, old: str, new: str) -> bytes:
        """The differences as text."""
        return git(self.path, *_DIFF, old, new)

    def patches(self, old: str, new: str) -> bytes:
        """The commits as mails, which is what GitHub calls a patch."""
        return git(self.path, "format-patch", "--stdout", f"{old}..{new}")

    def changes(self, old: str, new: str) -> list[Change]:
        """The differences, file by file. git tells all three lists in the same order."""
        raw = git(self.path, *_DIFF, "--raw", "-z", old, new).decode(errors="replace").split("\0")[:-1]
        counts = git(self.path, *_DIFF, "--numstat", old, new).decode(errors="replace").splitlines()
        texts = re.split(r"^(?=diff --git )", self.diff(old, new).decode(errors="replace"), flags=re.MULTILINE)[1:]
        return [
            _change(header, names, count, text)
            for (header, names), count, text in zip(_raw_entries(raw), counts, texts, strict=True)
        ]

    def tree(self, commit: str, path: str = "", *, recursive: bool = False) -> list[Entry] | None:
        """What is at a path: a file alone, or what a directory holds; None if nothing is there."""
        where = f"{commit}:{path}" if path else f"{commit}^{{tree}}"
        kind = git(self.path, "cat-file", "-t", where, fine=(0, 128)).decode().strip()
        if not kind:
            return None
        deep = ["-r"] if recursive else []
        if kind == "tree":
            return list(_entries(git(self.path, "ls-tree", "-l", "-z", *deep, where), f"{path}/" if path else ""))
        parent = path.rpartition("/")[0]
        inside = git(self.path, "ls-tree", "-l", "-z", f"{commit}:{parent}" if parent else commit)
        return [entry for entry in _entries(inside, f"{parent}/" if parent else "") if entry.path == path]

    def blob(self, sha: str) -> bytes:
        return git(self.path, "cat-file", "blob", sha)

    def grep(self, commit: str, words: Sequence[str]) -> list[str]:
        """The text files of a commit that have every one of `words` in them, whatever the case."""
        patterns = [part for word in words for part in ("-e", word)]
        found = git(
            self.path, "grep", "-l", "-z", "-I", "-i", "-F", "--all-match", *patterns, commit, "--", fine=(0, 1)
        )
        return [name.partition(":")[2] for name in found.decode(errors="replace").split("\0")[:-1]]

    def _commits(self, *arguments: str) -> Iterator[Commit]:
        records = git(self.path, "log", f"--format={_FIELDS}", *arguments).decode(errors="replace")
        for record in records.split("\0\0\n")[:-1] if records else ():
            sha, tree, parents, *people, message = record.split("\0")
            author, committer = Signature(*people[:3]), Signature(*people[3:])
            yield Commit(sha, tree, tuple(parents.split()), author, committer, message.rstrip("\n"))


def is_reference(name: str) -> bool:
    """Whether this could be a branch's name, as git's own rules have it."""
    return bool(re.fullmatch(r"(?!-)[\w./+#@=-]{1,200}", name)) and not re.search(
        r"(^|/)\.|//|\.\.|@\{|/$|\.lock(/|$)|\.$|^@$", name
    )


def _raw_entries(parts: list[str]) -> Iterator[tuple[str, list[str]]]:
    fields = iter(parts)
    for header in fields:
        two = header.split()[4][0] in "RC"
        yield header, [next(fields), next(fields)] if two else [next(fields)]


def _change(header: str, names: list[str], count: str, text: str) -> Change:
    _, _, old_blob, new_blob, letter = header.split()
    added, deleted, _ = count.split("\t", 2)
    start = text.find("\n@@ ")
    return Change(
        path=names[-1],
        previous=names[0] if len(names) > 1 else None,
        status=_STATUS[letter[0]],
        blob=old_blob if letter == "D" else new_blob,
        additions=0 if added == "-" else int(added),
        deletions=0 if deleted == "-" else int(deleted),
        patch=text[start + 1 :].rstrip("\n") if start >= 0 else None,
    )


def _entries(listing: bytes, prefix: str) -> Iterator[Entry]:
    for line in listing.decode(errors="replace").split("\0")[:-1]:
        meta, _, name = line.partition("\t")
        _, kind, sha, size = meta.split()
        yield Entry(prefix + name, kind, sha, 0 if size == "-" else int(size))


__all__ = ["DEFAULT_BRANCH", "Change", "Commit", "Entry", "GitFailed", "Repository", "Signature", "is_reference"]
