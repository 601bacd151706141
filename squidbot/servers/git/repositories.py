"""Which repositories may be used: found once, by hand, and pinned, so that git itself never looks for one.

git finds a repository by walking up, through `.git` files, `commondir` files and `core.worktree`, and each of these can
be written by whoever can write in the working tree. So the three folders are handed to git by name (GIT_DIR,
GIT_COMMON_DIR, GIT_WORK_TREE). That also passes by git's question whether the owner of the repository can be trusted
(safe.directory): the operator who named it on the command line has answered it.
"""

import os
import stat
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from squidbot.servers.refusal import Refused


@dataclass(frozen=True, slots=True)
class Repository:
    """A working tree and the folders that git keeps for it; all three are real paths."""

    name: str
    root: Path
    git_dir: Path
    common_dir: Path

    def holds(self, path: Path) -> bool:
        """Whether `path`, a real one, is in the working tree or in git's own folders."""
        return any(path.is_relative_to(folder) for folder in (self.root, self.git_dir, self.common_dir))


def open_all(paths: Sequence[Path]) -> tuple[Repository, ...]:
    """The repositories at `paths`, named by their folders; raises Refused, in words, for what is none."""
    roots = list(dict.fromkeys(_root(path) for path in paths))
    count = Counter(root.name for root in roots)
    return tuple(_open(root, root.name if count[root.name] == 1 else str(root)) for root in roots)


def find(repositories: Sequence[Repository], asked: str | None) -> Repository:
    """The repository called `asked`, by its name or path; None is the only one there is."""
    names = ", ".join(repr(repository.name) for repository in repositories)
    if asked is None:
        if len(repositories) > 1:
            raise Refused(f"which repository? Set 'repository' to one of {names}")
        found = repositories[0]
    else:
        real = os.path.realpath(asked) if asked.startswith("/") and "\0" not in asked else None
        matching = [one for one in repositories if asked == one.name or real == str(one.root)]
        if not matching:
            raise Refused(f"repository {asked!r} may not be used here: set 'repository' to {names}, or leave it out")
        found = matching[0]
    _must_be_unmoved(found)
    return found


def _root(path: Path) -> Path:
    try:
        root = path.resolve(strict=True)
    except OSError as error:
        raise Refused(f"cannot use the repository {str(path)!r}: {error.strerror}") from None
    if not root.is_dir():
        raise Refused(f"cannot use the repository {str(path)!r}: Not a directory")
    return root


def _open(root: Path, name: str) -> Repository:
    git = root / ".git"
    match _kind(git):
        case stat.S_IFDIR:
            git_dir = common_dir = git
        case stat.S_IFREG:
            git_dir = _linked(git)
            common_dir = (git_dir / _line(git_dir / "commondir")).resolve()
        case stat.S_IFLNK:
            raise Refused(f"cannot use the repository {str(root)!r}: its .git is a symbolic link; name the real one")
        case _:
            raise Refused(_no_repository(root))
    if not (git_dir / "HEAD").exists():
        raise Refused(f"cannot use the repository {str(root)!r}: its .git holds no repository")
    return Repository(name, root, git_dir, common_dir)


def _linked(git: Path) -> Path:
    """The folder of a linked working tree. It must name this one in turn: anybody can write a `.git` file."""
    git_dir = (git.parent / _line(git).removeprefix("gitdir:").strip()).resolve()
    if os.path.realpath(git_dir / (_line(git_dir / "gitdir") or "-")) != str(git):
        raise Refused(
            f"cannot use the repository {str(git.parent)!r}: its .git file leads to a repository that does not know it "
            "as a working tree. Of a submodule, make a clone of its own and name that"
        )
    return git_dir


def _must_be_unmoved(repository: Repository) -> None:
    """A folder may have been replaced by a link to another since the start."""
    linked = repository.git_dir != repository.root / ".git"
    if os.path.realpath(repository.root) != str(repository.root) or (
        _linked(repository.root / ".git") != repository.git_dir if linked else _kind(repository.git_dir) != stat.S_IFDIR
    ):
        raise Refused(
            f"repository {repository.name!r} is not where it was when this server started: restart the server"
        )


def _no_repository(root: Path) -> str:
    if (root / "HEAD").exists() and (root / "objects").is_dir():
        return f"cannot use the repository {str(root)!r}: it is bare; name a clone of it, which has files to work on"
    above = next((parent for parent in root.parents if (parent / ".git").exists()), None)
    hint = f"it is inside one, {str(above)!r}: name that" if above else "make one with: git init"
    return f"cannot use the repository {str(root)!r}: there is no .git in it; {hint}"


def _kind(path: Path) -> int | None:
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except OSError:
        return None


def _line(path: Path) -> str:
    """The first line of one of git's small files; nothing if there is none."""
    try:
        with path.open("rb") as file:
            return os.fsdecode(file.read(4_096).partition(b"\n")[0])
    except OSError:
        return ""
