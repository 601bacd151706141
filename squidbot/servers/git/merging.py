"""git_merge, and the merge within git_pull: all of it or nothing."""

from pathlib import Path

from squidbot.servers.git import models
from squidbot.servers.git.changing import changed_by, identity
from squidbot.servers.git.command import Git, World
from squidbot.servers.git.parsing import records
from squidbot.servers.git.reading import described, state
from squidbot.servers.git.revisions import resolved
from squidbot.servers.git.words import listed, shown
from squidbot.servers.refusal import Refused
from squidbot.servers.tools import Answer, said


async def git_merge(world: World, asked: models.Merge) -> Answer:
    """Another branch, tag or commit merged into the current branch."""
    git = world.git(asked.repository)
    async with git.change("files"):
        branch = await target(git)
        commit = await resolved(git, asked.source)
        message = asked.message or f"Merge {asked.source!r} into {branch}"
        return await merge(
            git, branch=branch, source=asked.source, commit=commit, message=message, fast=asked.fast_forward
        )


async def target(git: Git) -> str:
    """The branch to merge into, if there is one and nothing is in the way."""
    if work := git.under_way():
        raise Refused(f"a {work} is under way in this repository: a person must finish or abort it first")
    branch = (await git.head()).branch
    if branch is None:
        raise Refused("no branch is checked out (detached head): git_checkout a branch first")
    return branch


async def merge(git: Git, *, branch: str, source: str, commit: str, message: str, fast: bool = True) -> Answer:
    """Merge `commit`, called `source`, into the current branch. A conflict leaves everything as it was."""
    before = (await git.head()).commit
    outcome: models.MergeOutcome
    if before and await _contains(git, before, commit):
        outcome = "up to date"
    elif before is None or (fast and await _contains(git, commit, before)):
        await git.output(
            "merge", "--quiet", "--ff-only", "--no-stat", "--no-autostash", "--no-verify-signatures", commit
        )
        outcome = "fast-forward"
    else:
        await _commit_merge(git, commit, source=source, message=message)
        outcome = "merged"
    after = (await git.head()).commit
    assert after
    files = [] if before == after else await changed_by(git, after, since=before)
    result = models.Merged(
        repository=git.repository.name,
        branch=branch,
        source=source,
        outcome=outcome,
        before=before,
        commit=after,
        files=files[: models.MAX_FILES],
        truncated=len(files) > models.MAX_FILES,
    )
    what = "has all of" if outcome == "up to date" else "was brought up to" if outcome == "fast-forward" else "merged"
    return said(
        result, "\n".join([f"{branch!r} {what} {source!r}, now at {after[:12]}", *map(described, result.files)])
    )


async def _commit_merge(git: Git, commit: str, *, source: str, message: str) -> None:
    # What is not committed could not be put back as it was if the merge has to be aborted.
    found, _ = await state(git)
    if changed := found.tracked_changes:
        raise Refused(f"there are uncommitted changes in {listed(changed)}: commit them first with git_commit")
    variables = await identity(git)
    drafts = _drafts(git)
    try:
        merged = await git.run(
            *(
                "merge",
                "--quiet",
                "--no-ff",
                "--no-stat",
                "--no-edit",
                "--no-verify",
                "--no-gpg-sign",
                "--no-autostash",
            ),
            *("--no-verify-signatures", "--no-squash", "--commit", f"-m{message}", commit),
            variables=variables,
        )
    except Refused:
        await _undo(git)
        for path in _drafts(git) - drafts:
            path.unlink()
        raise
    if merged.code:
        conflicts = await _conflicts(git)
        await _undo(git)
        if conflicts:
            raise Refused(
                f"{source!r} conflicts with the current branch in {listed(conflicts, 100)}. The merge was aborted and "
                "nothing has changed. Bring the two versions of these files together in a commit, then merge again"
            )
        raise Refused(git.complaint(merged))


async def _conflicts(git: Git) -> list[str]:
    entries = records(await git.output("ls-files", "--unmerged", "-z"))
    return list(dict.fromkeys(shown(entry.partition(b"\t")[2]) for entry in entries))


def _drafts(git: Git) -> set[Path]:
    """What a merge driver reads and writes; git leaves them behind when it is ended."""
    return set(git.repository.root.glob(".merge_file_??????"))


async def _undo(git: Git) -> None:
    if git.under_way() == "merge":
        await git.output("merge", "--abort")


async def _contains(git: Git, commit: str, ancestor: str) -> bool:
    return (await git.run("merge-base", "--is-ancestor", ancestor, commit)).code == 0
