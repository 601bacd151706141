"""Merges branches in the bare repository: whether it can be done, and the three ways of doing it."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

from squidbot.practice.git import GitFailed, git, run
from squidbot.practice.people import Person
from squidbot.practice.repository import Commit, Repository

Way: TypeAlias = Literal["merge", "squash", "rebase"]


class Conflict(Exception):
    """Two branches change the same lines; `paths` are the files in which they do."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__(f"conflicts in {', '.join(paths)}")
        self.paths = paths


def merged_tree(repository: Repository, base: str, head: str) -> str:
    """The tree of a merge of two commits. Raises Conflict."""
    ended = run(repository.path, "merge-tree", "--write-tree", "--name-only", "--no-messages", base, head, fine=(0, 1))
    tree, *paths = ended.stdout.decode(errors="replace").splitlines()
    if ended.returncode:
        raise Conflict([path for path in paths if path])
    return tree


def merge(repository: Repository, *, base: str, head: str, way: Way, message: str, by: Person) -> str:
    """The new tip of `base` with `head` in it; no branch is moved yet. Raises Conflict."""
    return _WAYS[way](repository, base, head, message, by)


def _merge(repository: Repository, base: str, head: str, message: str, by: Person) -> str:
    return _commit(repository, merged_tree(repository, base, head), (base, head), message, by)


def _squash(repository: Repository, base: str, head: str, message: str, by: Person) -> str:
    return _commit(
        repository, merged_tree(repository, base, head), (base,), message, by, author=repository.commit(head)
    )


def _rebase(repository: Repository, base: str, head: str, _message: str, by: Person) -> str:
    """Each commit again on top of `base`; in a worktree of its own, because only there git can do it in 2.38."""
    with tempfile.TemporaryDirectory(prefix="practice-rebase-") as parent:
        scratch = Path(parent) / "tree"
        git(repository.path, "worktree", "add", "--quiet", "--detach", str(scratch), base)
        try:
            git(
                scratch,
                "cherry-pick",
                "--allow-empty",
                "--keep-redundant-commits",
                f"{base}..{head}",
                env=_identity(by),
            )
            return git(scratch, "rev-parse", "HEAD").decode().strip()
        except GitFailed:
            unmerged = git(scratch, "diff", "--name-only", "--diff-filter=U").decode().splitlines()
            raise Conflict(unmerged or ["a merge commit"]) from None
        finally:
            git(repository.path, "worktree", "remove", "--force", str(scratch))


_WAYS: dict[Way, Callable[[Repository, str, str, str, Person], str]] = {
    "merge": _merge,
    "squash": _squash,
    "rebase": _rebase,
}


def _commit(
    repository: Repository,
    tree: str,
    parents: tuple[str, ...],
    message: str,
    by: Person,
    *,
    author: Commit | None = None,
) -> str:
    arguments = [part for parent in parents for part in ("-p", parent)]
    who = _identity(by)
    if author is not None:
        who |= {"GIT_AUTHOR_NAME": author.author.name, "GIT_AUTHOR_EMAIL": author.author.email}
    made = git(repository.path, "commit-tree", tree, *arguments, stdin=message.encode(), env=who)
    return made.decode().strip()


def _identity(person: Person) -> dict[str, str]:
    return {
        "GIT_AUTHOR_NAME": person.name,
        "GIT_AUTHOR_EMAIL": person.email,
        "GIT_COMMITTER_NAME": person.name,
        "GIT_COMMITTER_EMAIL": person.email,
    }
