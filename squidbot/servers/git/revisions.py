"""Names that a caller gives, resolved to commits before anything is done with them, so that git sees only ids."""

import difflib

from squidbot.servers.git.command import Git, Head
from squidbot.servers.refusal import Refused


async def resolved(git: Git, revision: str) -> str:
    """The id of the commit that a branch, tag, id or expression such as 'main~2' names."""
    commit = await git.line("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if commit is None:
        raise Refused(f"there is no branch, tag or commit {revision!r}: {await _instead(git, revision)}")
    return commit


async def start_of(git: Git, start: str | None, head: Head) -> str:
    """Where a new branch begins: at `start`, else at the current commit."""
    if start is not None:
        return await resolved(git, start)
    if head.commit is None:
        raise Refused("there is no commit yet, so no branch can begin at one: make a first commit with git_commit")
    return head.commit


async def new_name(git: Git, name: str) -> None:
    """Refuse what cannot be the name of a new branch."""
    if await git.line("check-ref-format", "--branch", name) != name:
        raise Refused(f"{name!r} cannot be the name of a branch: use letters, digits, '-', '_', '.' and '/'")
    if await git.tip(name):
        raise Refused(f"there is a branch {name!r} already: git_checkout switches to it; or use another name")


async def _instead(git: Git, revision: str) -> str:
    known = [*await git.branches(), *await git.branches("refs/remotes"), *await git.branches("refs/tags")]
    if nearest := difflib.get_close_matches(revision, known, n=3):
        return f"did you mean {' or '.join(repr(name) for name in nearest)}?"
    return "git_branch lists the branches, git_log the commits" if known else "this repository has no commit yet"
