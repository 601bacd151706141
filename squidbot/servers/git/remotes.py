"""The tools that talk to a remote: git_push, git_pull."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from squidbot.servers.git import models
from squidbot.servers.git.command import Git, World
from squidbot.servers.git.merging import merge, target
from squidbot.servers.git.process import Outcome
from squidbot.servers.git.safety import REACHING_OUT
from squidbot.servers.git.words import listed, remote_words, shown
from squidbot.servers.refusal import Refused
from squidbot.servers.tools import Answer, said


async def git_push(world: World, asked: models.Push) -> Answer:
    """A branch on the remote as it is here, never by force."""
    git = world.git(asked.repository)
    async with git.change("network"):
        branch, commit = await _pushable(git, asked.branch)
        remote = await _remote(world, git, asked.remote, branch, push=True)
        upstream = await git.line("config", "--get", f"branch.{branch}.merge")
        pushed = await git.run(
            *("push", "--porcelain", "--no-verify", "--no-signed", "--no-force", "--recurse-submodules=no"),
            *(["--set-upstream"] if upstream is None else []),
            *("--receive-pack=git-receive-pack", "--", remote, f"refs/heads/{branch}:refs/heads/{branch}"),
            variables=REACHING_OUT,
        )
    flag, reason = _verdict(pushed)
    if pushed.code:
        raise Refused(_rejection(git, pushed, remote, branch, reason))
    result = models.Pushed(
        repository=git.repository.name,
        remote=remote,
        branch=branch,
        commit=commit,
        outcome="new" if flag == "*" else "up to date" if flag == "=" else "updated",
        upstream_set=upstream is None,
        messages=remote_words(pushed.messages),
    )
    what = {"new": "is new on", "updated": "was pushed to", "up to date": "was already on"}[result.outcome]
    return said(result, "\n".join([f"{branch!r} {what} {remote!r}, at {commit[:12]}", *result.messages]))


async def git_pull(world: World, asked: models.Pull) -> Answer:
    """The remote's branch fetched, and merged into the current one; a conflict leaves everything as it was."""
    git = world.git(asked.repository)
    async with git.change("files", "network"):
        current = await target(git)
        remote = await _remote(world, git, asked.remote, current, push=False)
        branch = asked.branch or await _upstream(git, remote, current)
        # One branch, and not 'a:b', by which git would write it to another.
        if (await git.run("check-ref-format", f"refs/heads/{branch}")).code:
            raise Refused(f"{branch!r} cannot be the name of a branch")
        fetched = await git.run(
            *("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-auto-gc", "--no-prune"),
            # Not what the configuration maps to what: that could be a local branch.
            *("--upload-pack=git-upload-pack", f"--refmap=+refs/heads/*:refs/remotes/{remote}/*"),
            *("--", remote, f"refs/heads/{branch}"),
            variables=REACHING_OUT,
        )
        if fetched.code:
            raise Refused(_fetch_failure(git, fetched, remote, branch))
        commit = await git.line("rev-parse", "--verify", "--quiet", "FETCH_HEAD^{commit}")
        assert commit
        source = f"{remote}/{branch}"
        return await merge(
            git, branch=current, source=source, commit=commit, message=f"Merge {source!r} into {current}"
        )


async def _pushable(git: Git, asked: str | None) -> tuple[str, str]:
    """The branch to push, and its commit."""
    head = await git.head()
    branch = asked or head.branch
    if branch is None:
        raise Refused("no branch is checked out (detached head): set 'branch', or git_checkout one with 'create'")
    commit = await git.tip(branch)
    if commit is None and branch == head.branch:
        raise Refused(f"branch {branch!r} has no commit yet: make one with git_commit")
    if commit is None:
        raise Refused(f"there is no branch {branch!r} here: {listed(await git.branches())} can be pushed")
    return branch, commit


async def _remote(world: World, git: Git, asked: str | None, branch: str, *, push: bool) -> str:
    """The name of the remote that is meant, always one of the configured ones."""
    remotes = shown(await git.output("remote")).splitlines()
    if not remotes:
        raise Refused("this repository has no remote: the operator can add one with: git remote add origin ADDRESS")
    own = await git.line("config", "--get", f"branch.{branch}.remote")
    remote = asked or next((name for name in (own, "origin") if name in remotes), None)
    if remote is None and len(remotes) == 1:
        remote = remotes[0]
    if remote not in remotes:
        which = f"there is no remote {asked!r}" if asked else "which remote?"
        raise Refused(f"{which}: set 'remote' to {listed(remotes)}")
    await _must_be_elsewhere(world, git, remote, push=push)
    return remote


async def _must_be_elsewhere(world: World, git: Git, remote: str, *, push: bool) -> None:
    """A remote within a working tree could be made by whoever writes there, and git runs what its configuration says."""
    addresses = await git.output("remote", "get-url", "--all", *(["--push"] if push else []), "--", remote)
    for address in shown(addresses).splitlines():
        path = _local(address)
        if path is not None and world.holds(_real(git.repository.root / path)):
            raise Refused(f"remote {remote!r} is a path within a repository of this server: it must be outside of them")


def _real(path: Path) -> Path:
    return path.resolve()


def _local(address: str) -> str | None:
    """The path that an address of a remote stands for, if git would take it for one."""
    if address.startswith("file://"):
        return unquote(urlsplit(address).path)
    before, colon, _ = address.partition(":")
    return address if not colon or "/" in before else None


async def _upstream(git: Git, remote: str, current: str) -> str:
    """The branch of the remote that the current one follows, else the one of the same name."""
    merged = await git.line("config", "--get", f"branch.{current}.merge")
    follows = await git.line("config", "--get", f"branch.{current}.remote")
    return merged.removeprefix("refs/heads/") if merged and follows == remote else current


def _verdict(pushed: Outcome) -> tuple[str, str]:
    """The flag of the one branch that was pushed, and git's reason."""
    for line in shown(pushed.head).splitlines():
        if line.count("\t") >= 2:
            flag, _, summary = line.split("\t", 2)
            return flag.strip(), summary
    return "", ""


def _rejection(git: Git, pushed: Outcome, remote: str, branch: str, reason: str) -> str:
    said_there = " ".join(remote_words(pushed.messages))
    if "[remote rejected]" in reason:
        why = reason.partition("(")[2].removesuffix(")") or "no reason given"
        words = f"; it said: {said_there}" if said_there else ""
        return (
            f"{remote!r} refuses this push to {branch!r}: {why}{words}. If the branch is protected, push another branch "
            "and open a pull request"
        )
    if "[rejected]" in reason:
        return f"{remote!r} has commits on {branch!r} that are not here: git_pull first, then push again"
    return git.complaint(pushed)


def _fetch_failure(git: Git, fetched: Outcome, remote: str, branch: str) -> str:
    if b"couldn't find remote ref" in fetched.messages:
        return f"{remote!r} has no branch {branch!r}: set 'branch' to one that it has, or git_push this one first"
    return git.complaint(fetched)
