"""The git program in one repository: every command pinned to it, made safe, bounded, and its failures put into words."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from squidbot.servers.git import safety
from squidbot.servers.git.process import Outcome, Overdue, run
from squidbot.servers.git.repositories import Repository, find
from squidbot.servers.git.words import complaint, shown
from squidbot.servers.refusal import Refused

MAX_RECORDS = 4_000_000
"""Bytes of git's output that are taken apart; what is longer is cut, and the answer says so."""

_UNDER_WAY = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
}


@dataclass(frozen=True, slots=True)
class Head:
    """Where the repository stands: `branch` is None when detached, `commit` None before the first one."""

    branch: str | None
    commit: str | None


class Git:
    """Commands in one repository."""

    def __init__(self, repository: Repository, *, program: str, deadline: float) -> None:
        self.repository = repository
        self.changing = anyio.Lock()
        """Held by whoever changes something, so that looking, deciding and doing are one step."""
        self._program = program
        self._deadline = deadline

    async def run(
        self,
        *arguments: str,
        given: bytes = b"",
        head: int = MAX_RECORDS,
        tail: int = 0,
        variables: dict[str, str] | None = None,
    ) -> Outcome:
        """However it ends; raises Refused only if it does not."""
        switched = [word for setting in safety.SETTINGS for word in ("-c", setting)]
        pinned = {
            "GIT_DIR": str(self.repository.git_dir),
            "GIT_COMMON_DIR": str(self.repository.common_dir),
            "GIT_WORK_TREE": str(self.repository.root),
        }
        try:
            return await run(
                [self._program, "--no-pager", *switched, *arguments],
                folder=self.repository.root,
                environment=safety.environment(os.environ) | pinned | (variables or {}),
                deadline=self._deadline,
                given=given,
                head=head,
                tail=tail,
            )
        except Overdue:
            raise Refused(
                f"git {arguments[0]} did not end within {self._deadline:g} seconds and was stopped: narrow what you "
                "ask for, or have the operator start this server with a longer --deadline"
            ) from None

    async def output(self, *arguments: str, given: bytes = b"", variables: dict[str, str] | None = None) -> bytes:
        """What it writes; raises Refused, in words, if it fails."""
        outcome = await self.run(*arguments, given=given, variables=variables)
        if outcome.code:
            raise Refused(self.complaint(outcome))
        return outcome.head

    async def line(self, *arguments: str) -> str | None:
        """The one line it writes; None if it fails or is silent, for questions whose answer may be no."""
        outcome = await self.run(*arguments)
        return shown(outcome.head).strip() or None if outcome.code == 0 else None

    def complaint(self, outcome: Outcome) -> str:
        return complaint(outcome.messages, str(self.repository.root))

    async def trusted(self, *purposes: safety.Purpose) -> None:
        """Refuse where the repository's own configuration would have git run something for one of `purposes`."""
        keys = safety.repository_keys(await self.output("config", "--list", "--show-scope", "--includes", "-z"))
        for purpose in purposes:
            safety.refuse_programs(keys, purpose)

    @asynccontextmanager
    async def change(self, *purposes: safety.Purpose) -> AsyncIterator[None]:
        """One change at a time, and none where git would run a program of the repository's."""
        async with self.changing:
            await self.trusted(*purposes)
            yield

    async def head(self) -> Head:
        branch = await self.line("symbolic-ref", "--quiet", "HEAD")
        commit = await self.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return Head(branch.removeprefix("refs/heads/") if branch else None, commit)

    async def branches(self, where: str = "refs/heads") -> list[str]:
        """Names below `where`, such as those of the local branches."""
        names = await self.output("for-each-ref", f"--format=%(refname:lstrip={where.count('/') + 1})", where)
        return shown(names).splitlines()

    async def tip(self, branch: str) -> str | None:
        """The commit of a local branch of exactly this name, not of an expression such as 'main~1'."""
        return await self.line("show-ref", "--verify", "--hash", f"refs/heads/{branch}")

    def under_way(self) -> str | None:
        """What somebody began here and did not finish, such as a merge."""
        return next((what for mark, what in _UNDER_WAY.items() if (self.repository.git_dir / mark).exists()), None)


@dataclass(frozen=True, slots=True)
class World:
    """All that the tools work on: the repositories of this server."""

    repositories: tuple[Git, ...]

    @classmethod
    def of(cls, repositories: Sequence[Repository], *, program: str | Path, deadline: float) -> "World":
        return cls(tuple(Git(one, program=str(program), deadline=deadline) for one in repositories))

    def git(self, repository: str | None) -> Git:
        """The repository that an argument names; raises Refused for one that is not ours."""
        found = find([git.repository for git in self.repositories], repository)
        return next(git for git in self.repositories if git.repository is found)

    def holds(self, path: Path) -> bool:
        """Whether a real path is in one of the repositories."""
        return any(git.repository.holds(path) for git in self.repositories)
