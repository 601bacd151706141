"""The tools that only look: git_status, git_diff, git_log."""

from squidbot.servers.git import models
from squidbot.servers.git.command import MAX_RECORDS, Git, World
from squidbot.servers.git.parsing import LOG_FORMAT, Worktree, commits, file_changes, worktree
from squidbot.servers.git.process import Outcome
from squidbot.servers.git.revisions import resolved
from squidbot.servers.git.words import shown
from squidbot.servers.refusal import Refused
from squidbot.servers.tools import Answer, said

_HEAD, _TAIL = 48_000, 16_000
"""Bytes of a long diff that are shown from its start and from its end."""

# Neither programs of the repository's nor git in its submodules: that would obey the submodule's own configuration.
_PLAIN = ("--no-ext-diff", "--no-textconv", "--submodule=short", "--ignore-submodules=dirty", "--find-renames")


async def state(git: Git, *, paths: list[str] | None = None) -> tuple[Worktree, bool]:
    """How the working tree stands, and whether that is too much to tell."""
    outcome = await git.run(
        *("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=dirty"),
        *(["--", *paths] if paths else []),
    )
    if outcome.code:
        raise Refused(git.complaint(outcome))
    return worktree(outcome.head), bool(outcome.omitted)


async def git_status(world: World, asked: models.Status) -> Answer:
    """Branch, upstream, and every change that is not committed."""
    git = world.git(asked.repository)
    await git.trusted("files")
    found, cut = await state(git)
    most = models.MAX_FILES
    lists = (found.staged, found.unstaged, found.untracked, found.conflicts)
    result = models.StatusFound(
        repository=git.repository.name,
        branch=found.branch,
        commit=found.commit,
        upstream=found.upstream,
        ahead=found.ahead,
        behind=found.behind,
        under_way=git.under_way(),
        clean=not any(lists),
        staged=found.staged[:most],
        unstaged=found.unstaged[:most],
        untracked=found.untracked[:most],
        conflicts=found.conflicts[:most],
        truncated=cut or any(len(entries) > most for entries in lists),
    )
    return said(result, _status_text(result))


def _status_text(found: models.StatusFound) -> str:
    lines = [f"on branch {found.branch}" if found.branch else f"no branch checked out, at {found.commit}"]
    if found.commit is None:
        lines.append("no commits yet")
    if found.upstream:
        distance = "" if found.ahead is None else f": {found.ahead} ahead, {found.behind} behind"
        lines.append(f"upstream {found.upstream}{distance}")
    if found.under_way:
        lines.append(f"a {found.under_way} is under way and not finished")
    lines += [f"conflict: {visible(path)}" for path in found.conflicts]
    lines += [f"staged: {described(change)}" for change in found.staged]
    lines += [f"not staged: {described(change)}" for change in found.unstaged]
    lines += [f"untracked: {visible(path)}" for path in found.untracked]
    if found.clean:
        lines.append("nothing to commit")
    if found.truncated:
        lines.append(f"[only the first {models.MAX_FILES} of each kind]")
    return "\n".join(lines)


async def git_diff(world: World, asked: models.Diff) -> Answer:
    """What changed, file by file and line by line."""
    git = world.git(asked.repository)
    await git.trusted("files")
    ends = [await resolved(git, name) for name in (asked.base, asked.target) if name]
    if asked.since_fork:
        ends[0] = await _fork(git, asked, ends)
    compared = [*(["--cached"] if asked.staged else []), *ends, "--", *asked.paths]
    counted = await git.run("diff", *_PLAIN, "--raw", "--numstat", "-z", *compared)
    _must_succeed(git, counted)
    files = file_changes(counted.head)
    patch = None
    if not asked.summary:
        patch = await git.run("diff", *_PLAIN, f"--unified={asked.context}", *compared, head=_HEAD, tail=_TAIL)
        _must_succeed(git, patch)
    result = models.DiffFound(
        repository=git.repository.name,
        files=files[: models.MAX_FILES],
        added=sum(change.added or 0 for change in files),
        deleted=sum(change.deleted or 0 for change in files),
        diff=_joined(patch) if patch else "",
        omitted=patch.omitted if patch else 0,
        truncated=bool(counted.omitted or (patch and patch.omitted) or len(files) > models.MAX_FILES),
    )
    return said(result, _diff_text(result, len(files)))


async def _fork(git: Git, asked: models.Diff, ends: list[str]) -> str:
    fork = await git.line("merge-base", ends[0], ends[1] if len(ends) > 1 else "HEAD")
    if fork is None:
        raise Refused(f"{asked.base!r} and {asked.target or 'HEAD'!r} have no commit in common: leave out 'since_fork'")
    return fork


def _joined(patch: Outcome) -> str:
    if not patch.omitted:
        return shown(patch.head + patch.tail)
    # Whole lines on both sides of the gap.
    head, tail = patch.head.rpartition(b"\n")[0] or patch.head, patch.tail.partition(b"\n")[2] or patch.tail
    note = f"\n[… {patch.omitted} bytes are left out here: name fewer 'paths' to see them …]\n"
    return f"{shown(head)}{note}{shown(tail)}"


def _diff_text(found: models.DiffFound, count: int) -> str:
    if not found.files:
        return "no differences; files that are not tracked yet are shown by git_status only"
    lines = [f"{count} files, {found.added} lines added, {found.deleted} deleted"]
    lines += [described(change) for change in found.files]
    if count > len(found.files):
        lines.append(f"[only the first {len(found.files)} files]")
    return "\n".join([*lines, "", found.diff] if found.diff else lines)


async def git_log(world: World, asked: models.Log) -> Answer:
    """Commits, latest first."""
    git = world.git(asked.repository)
    head = await git.head()
    if asked.revision is None and head.commit is None:
        empty = models.LogFound(repository=git.repository.name, commits=[], next_skip=None)
        return said(empty, "no commits yet")
    begin = await resolved(git, asked.revision) if asked.revision else head.commit
    assert begin
    filters = {"author": asked.author, "grep": asked.text, "since": asked.since, "until": asked.until}
    outcome = await git.run(
        *("log", "-z", f"--format={LOG_FORMAT}", "--encoding=UTF-8", "--no-show-signature", "--decorate=short"),
        *("--fixed-strings", "--regexp-ignore-case", f"--max-count={asked.limit + 1}", f"--skip={asked.skip}"),
        *(f"--{name}={value}" for name, value in filters.items() if value),
        *("--no-ext-diff", "--no-textconv", begin, "--", *asked.paths),
        head=MAX_RECORDS,
    )
    _must_succeed(git, outcome)
    found = commits(outcome.head)
    more = len(found) > asked.limit or outcome.omitted
    kept = found[: asked.limit]
    result = models.LogFound(
        repository=git.repository.name, commits=kept, next_skip=asked.skip + len(kept) if more else None
    )
    lines = [_commit_text(commit) for commit in kept] or ["no such commits"]
    if result.next_skip is not None:
        lines.append(f"[more: go on with skip {result.next_skip}]")
    return said(result, "\n".join(lines))


def _commit_text(commit: models.Commit) -> str:
    refs = f" ({', '.join(commit.refs)})" if commit.refs else ""
    body = "".join(f"\n    {line}" for line in commit.body.splitlines())
    return f"{commit.id[:12]} {commit.date} {commit.author}: {commit.subject}{refs}{body}"


def described(change: models.FileChange) -> str:
    """One file of a change, on one line."""
    count = "" if change.added is None else f" (+{change.added} -{change.deleted})"
    old = f" from {visible(change.old_path)}" if change.old_path else ""
    return f"{change.change} {visible(change.path)}{old}{count}"


def visible(path: str) -> str:
    """A path that cannot be taken for something else, such as for another line."""
    return path if path.isprintable() else repr(path)


def _must_succeed(git: Git, outcome: Outcome) -> None:
    if outcome.code:
        raise Refused(git.complaint(outcome))
