"""The tools that change this repository alone: git_branch, git_checkout, git_commit."""

import os
from pathlib import Path

from squidbot.servers.git import models
from squidbot.servers.git.command import Git, Head, World
from squidbot.servers.git.parsing import BRANCH_FORMAT, Worktree, branches, file_changes
from squidbot.servers.git.reading import described, state, visible
from squidbot.servers.git.revisions import new_name, resolved, start_of
from squidbot.servers.git.words import listed
from squidbot.servers.refusal import Refused
from squidbot.servers.tools import Answer, said

_MAX_BRANCHES = 500


async def git_branch(world: World, asked: models.Branch) -> Answer:
    """The branches, or a new one."""
    git = world.git(asked.repository)
    if asked.name is not None:
        async with git.change("references"):
            await new_name(git, asked.name)
            start = await start_of(git, asked.start, await git.head())
            await git.output("branch", "--no-track", asked.name, start)
        found, cut = await _branches(git, f"refs/heads/{asked.name}")
    else:
        found, cut = await _branches(git, "refs/heads", *(["refs/remotes"] if asked.remotes else []))
    current = (await git.head()).branch
    result = models.BranchFound(
        repository=git.repository.name, current=current, created=asked.name, branches=found, truncated=cut
    )
    if asked.name is not None:
        return said(result, f"created branch {asked.name!r} at {found[0].commit[:12]}; git_checkout switches to it")
    lines = [_branch_text(branch) for branch in found] or ["no branches: there is no commit yet"]
    return said(result, "\n".join([*lines, *([f"[only the latest {_MAX_BRANCHES}]"] if cut else [])]))


async def _branches(git: Git, *where: str) -> tuple[list[models.BranchInfo], bool]:
    output = await git.output(
        "for-each-ref", f"--format={BRANCH_FORMAT}", "--sort=-committerdate", f"--count={_MAX_BRANCHES + 1}", *where
    )
    found = branches(output)
    return found[:_MAX_BRANCHES], len(found) > _MAX_BRANCHES


def _branch_text(branch: models.BranchInfo) -> str:
    upstream = f" [{branch.upstream}{f': {branch.track}' if branch.track else ''}]" if branch.upstream else ""
    return f"{'*' if branch.current else ' '} {branch.name} {branch.commit[:12]}{upstream} {branch.subject}"


async def git_checkout(world: World, asked: models.Checkout) -> Answer:
    """Another branch, tag or commit in the working tree; uncommitted work is never overwritten."""
    git = world.git(asked.repository)
    async with git.change("files"):
        before = await git.head()
        await git.output("switch", "--quiet", *await _switch(git, asked, before))
        after = await git.head()
    result = models.CheckedOut(
        repository=git.repository.name,
        branch=after.branch,
        commit=after.commit,
        previous=before.branch,
        created=asked.create,
    )
    at = f" at {after.commit[:12]}" if after.commit else ", without a commit yet"
    if after.branch is None:
        return said(result, f"{asked.branch!r} is checked out{at}, with no branch: to commit, create one first")
    return said(result, f"on {'new ' if asked.create else ''}branch {after.branch!r}{at}")


async def _switch(git: Git, asked: models.Checkout, head: Head) -> list[str]:
    """What tells git to do as asked, with nothing left to guess."""
    name = asked.branch
    if asked.create:
        await new_name(git, name)
        if asked.start is None and head.commit is None:
            return [f"--create={name}"]
        return ["--no-track", f"--create={name}", await start_of(git, asked.start, head)]
    if await git.tip(name):
        return ["--no-guess", name]
    if tracked := [remote for remote in await git.branches("refs/remotes") if remote.partition("/")[2] == name]:
        if len(tracked) > 1:
            raise Refused(
                f"{name!r} is a branch of several remotes: set 'create', and 'start' to one of {listed(tracked)}"
            )
        return ["--track", f"--create={name}", f"refs/remotes/{tracked[0]}"]
    if head.branch == name:
        raise Refused(f"{name!r} is the current branch already; it has no commit yet")
    return ["--detach", await resolved(git, name)]


async def git_commit(world: World, asked: models.MakeCommit) -> Answer:
    """A commit of the named paths, or of every change."""
    git = world.git(asked.repository)
    async with git.change("files"):
        found = await _committable(git, asked)
        variables = await identity(git, asked.author_name, asked.author_email)
        paths = b"\0".join(found.paths)
        only = ("--only", "--pathspec-from-file=-", "--pathspec-file-nul") if asked.paths else ()
        await git.output("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", given=paths)
        await git.output(
            *("commit", "--quiet", "--no-verify", "--no-gpg-sign", "--no-status", "--cleanup=whitespace"),
            *(f"--message={asked.message}", *only),
            given=paths if only else b"",
            variables=variables,
        )
        head = await git.head()
    assert head.commit
    files = await changed_by(git, head.commit)
    result = models.Committed(
        repository=git.repository.name,
        commit=head.commit,
        branch=head.branch,
        subject=asked.message.strip().splitlines()[0],
        files=files[: models.MAX_FILES],
        left_out=found.left_out[: models.MAX_FILES],
        truncated=len(files) > models.MAX_FILES,
    )
    where = (
        f"to {head.branch!r}" if head.branch else "to no branch (detached head: git_checkout with 'create' keeps it)"
    )
    lines = [f"committed {head.commit[:12]} {where}: {result.subject}", *map(described, result.files)]
    if found.left_out:
        lines.append(f"[submodules and nested repositories are not committed here: {listed(result.left_out)}]")
    return said(result, "\n".join(lines))


async def _committable(git: Git, asked: models.MakeCommit) -> Worktree:
    """What the commit is to take. All that can be wrong is found out before anything is staged."""
    found, cut = await state(git, paths=asked.paths)
    if found.conflicts:
        raise Refused(
            f"conflicts are not resolved in {listed(found.conflicts)}: a {git.under_way() or 'merge'} is under way"
        )
    if cut:
        raise Refused("there are too many changes for one commit here: commit them in parts, with 'paths'")
    if asked.paths and (unknown := [path for path in asked.paths if not await _is_known(git, path)]):
        raise Refused(f"there is no file {listed(unknown)}: git_status shows what has changed")
    if found.paths:
        return found
    if asked.paths is None:
        left = f" but submodules and nested repositories: {listed(found.left_out)}" if found.left_out else ""
        raise Refused(f"nothing to commit: no file has changed{left}")
    others = [visible(path) for path in (await state(git))[0].tracked_changes]
    hint = f"changed are {listed(others)}" if others else "no tracked file has changed"
    raise Refused(f"nothing to commit in {listed(asked.paths)}: {hint}")


async def _is_known(git: Git, path: str) -> bool:
    """Whether a path is there, or was when it was last staged or committed."""
    if _is_there(git.repository.root / path):
        return True
    committed = ["--with-tree=HEAD"] if (await git.head()).commit else []
    return bool(await git.output("ls-files", "-z", *committed, "--", path))


def _is_there(path: Path) -> bool:
    return os.path.lexists(path)


async def identity(git: Git, name: str | None = None, email: str | None = None) -> dict[str, str]:
    """The variables by which git knows who commits; raises Refused if nobody is known."""
    author = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email} if name and email else {}
    committer = {"GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": email} if name and email else {}
    if await git.line("var", "GIT_COMMITTER_IDENT"):
        committer = {}
    elif not author:
        raise Refused(
            "nobody is known to be the author: give git_commit 'author_name' and 'author_email', or have the operator "
            "set them: git config user.name NAME, git config user.email ADDRESS"
        )
    return {key: value for key, value in (author | committer).items() if value}


async def changed_by(git: Git, commit: str, *, since: str | None = None) -> list[models.FileChange]:
    """The files that differ from `since`, else from the commit before."""
    plain = ("diff-tree", "-r", "--raw", "--numstat", "-z", "--no-ext-diff", "--no-textconv", "--find-renames")
    ends = [since, commit] if since else ["--root", "--no-commit-id", commit]
    return file_changes(await git.output(*plain, *ends))
