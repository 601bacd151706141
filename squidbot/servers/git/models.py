"""What each tool takes and gives: the schemas that a model reads."""

from typing import Literal, TypeAlias

from pydantic import BaseModel, Field, model_validator

from squidbot.servers.git.fields import Message, Name, Paths, Person, Repository, Words
from squidbot.servers.tools import Arguments, Result

MAX_COMMITS = 200
MAX_FILES = 1_000
"""Entries of one kind in an answer; what is left out is said."""

Change: TypeAlias = Literal["added", "modified", "deleted", "renamed", "copied", "type changed", "conflicting"]


class Asked(Arguments):
    """What every tool takes."""

    repository: Repository = None


class FileChange(BaseModel):
    """What happened to one file."""

    path: str
    change: Change
    old_path: str | None = Field(default=None, description="Where a renamed or copied file was before.")
    added: int | None = Field(default=None, description="Lines; null for a binary file.")
    deleted: int | None = Field(default=None, description="Lines; null for a binary file.")


class Status(Asked):
    """Arguments of git_status."""


class StatusFound(Result):
    """What git_status answers."""

    repository: str
    branch: str | None = Field(description="Null when no branch is checked out (detached head).")
    commit: str | None = Field(description="Null before the first commit.")
    upstream: str | None
    ahead: int | None = Field(description="Commits that the upstream does not have.")
    behind: int | None = Field(description="Commits of the upstream that are not here.")
    under_way: str | None = Field(description="An unfinished merge, rebase, cherry-pick or revert.")
    clean: bool
    staged: list[FileChange]
    unstaged: list[FileChange]
    untracked: list[str]
    conflicts: list[str]
    truncated: bool = Field(description=f"True if a list had more than {MAX_FILES} entries.")


class Diff(Asked):
    """Arguments of git_diff."""

    base: Name | None = Field(
        default=None, description="Branch, tag or commit to compare from; default: what is staged."
    )
    target: Name | None = Field(default=None, description="Branch, tag or commit to compare to; default: the files.")
    since_fork: bool = Field(
        default=False, description="Compare from where target and base parted: what a branch did, as in a review."
    )
    staged: bool = Field(default=False, description="Compare what is staged instead of the files.")
    paths: Paths = Field(default=[], description="Only these files and directories.")
    context: int = Field(default=3, ge=0, le=100, description="Unchanged lines around each change.")
    summary: bool = Field(default=False, description="Only the list of files, without the text of the diff.")

    @model_validator(mode="after")
    def _fits(self) -> "Diff":
        if self.target and not self.base:
            raise ValueError("'target' needs 'base': what is it to be compared with?")
        if self.staged and self.target:
            raise ValueError("'staged' and 'target' exclude each other")
        if self.since_fork and not self.base:
            raise ValueError("'since_fork' needs 'base'")
        return self


class DiffFound(Result):
    """What git_diff answers."""

    repository: str
    files: list[FileChange]
    added: int
    deleted: int
    diff: str
    omitted: int = Field(description="Bytes that are missing in the middle of a long diff.")
    truncated: bool = Field(description="True if anything is missing.")


class Log(Asked):
    """Arguments of git_log."""

    revision: Name | None = Field(default=None, description="Branch, tag or commit to begin at; default: the current.")
    limit: int = Field(default=20, ge=1, le=MAX_COMMITS, description="How many commits.")
    skip: int = Field(default=0, ge=0, description="How many to pass over first.")
    paths: Paths = Field(default=[], description="Only commits that changed these files and directories.")
    author: Words | None = Field(default=None, description="Only of authors whose name or address contains this.")
    text: Words | None = Field(default=None, description="Only with this text in the message.")
    since: Words | None = Field(default=None, description="Only after this, such as '2026-11-01' or '2 weeks ago'.")
    until: Words | None = Field(default=None, description="Only before this.")


class Commit(BaseModel):
    """One commit of the history."""

    id: str
    parents: list[str]
    author: str
    email: str
    date: str
    subject: str
    body: str
    refs: list[str] = Field(description="Branches and tags that point to it.")


class LogFound(Result):
    """What git_log answers."""

    repository: str
    commits: list[Commit]
    next_skip: int | None = Field(description="'skip' for the commits before these; null if there are none.")


class Branch(Asked):
    """Arguments of git_branch."""

    action: Literal["list", "create"] = Field(default="list", description="Show the branches, or make a new one.")
    name: Name | None = Field(default=None, description="The new branch.")
    start: Name | None = Field(default=None, description="Where it begins; default: the current commit.")
    remotes: bool = Field(default=False, description="List also the branches that remotes had when last heard of.")

    @model_validator(mode="after")
    def _fits(self) -> "Branch":
        if self.action == "create" and self.name is None:
            raise ValueError("to create a branch, give its 'name'")
        if self.action == "list" and (self.name or self.start):
            raise ValueError("'name' and 'start' are for action 'create'")
        return self


class BranchInfo(BaseModel):
    """One branch."""

    name: str
    commit: str
    date: str
    subject: str
    current: bool
    remote: bool
    upstream: str | None
    track: str | None = Field(description="How it stands to its upstream, such as 'ahead 1, behind 2'.")


class BranchFound(Result):
    """What git_branch answers."""

    repository: str
    current: str | None = Field(description="Null when no branch is checked out (detached head).")
    created: str | None
    branches: list[BranchInfo] = Field(description="All of them, latest first, or the one created.")
    truncated: bool


class Checkout(Asked):
    """Arguments of git_checkout."""

    branch: Name = Field(description="Branch to switch to. A tag or commit works too and detaches the head.")
    create: bool = Field(default=False, description="Make the branch first.")
    start: Name | None = Field(default=None, description="Where a new branch begins; default: the current commit.")

    @model_validator(mode="after")
    def _fits(self) -> "Checkout":
        if self.start and not self.create:
            raise ValueError("'start' needs 'create': true")
        return self


class CheckedOut(Result):
    """What git_checkout answers."""

    repository: str
    branch: str | None = Field(description="Null when the head is detached now.")
    commit: str | None
    previous: str | None = Field(description="The branch before.")
    created: bool


class MakeCommit(Asked):
    """Arguments of git_commit."""

    message: Message = Field(description="A short first line; then, after an empty line, more if needed.")
    paths: Paths | None = Field(
        default=None, min_length=1, description="Files and directories to commit, and no others; default: every change."
    )
    author_name: Person | None = Field(default=None, description="Default: the configured one.")
    author_email: Person | None = Field(default=None, description="Needed with author_name.")

    @model_validator(mode="after")
    def _fits(self) -> "MakeCommit":
        if (self.author_name is None) != (self.author_email is None):
            raise ValueError("give both 'author_name' and 'author_email', or neither")
        return self


class Committed(Result):
    """What git_commit answers."""

    repository: str
    commit: str
    branch: str | None
    subject: str
    files: list[FileChange]
    left_out: list[str] = Field(description="Changed submodules and nested repositories, which are not committed here.")
    truncated: bool


class Push(Asked):
    """Arguments of git_push."""

    branch: Name | None = Field(default=None, description="Default: the current branch.")
    remote: Name | None = Field(default=None, description="Name of a configured remote; default: the branch's own.")


class Pushed(Result):
    """What git_push answers."""

    repository: str
    remote: str
    branch: str
    commit: str
    outcome: Literal["new", "updated", "up to date"]
    upstream_set: bool
    messages: list[str] = Field(description="What the remote said.")


class Pull(Asked):
    """Arguments of git_pull."""

    remote: Name | None = Field(default=None, description="Name of a configured remote; default: the branch's own.")
    branch: Name | None = Field(default=None, description="Branch of the remote; default: the upstream.")


class Merge(Asked):
    """Arguments of git_merge."""

    source: Name = Field(description="Branch, tag or commit to merge into the current branch.")
    message: Message | None = Field(default=None, description="Message of the merge commit.")
    fast_forward: bool = Field(default=True, description="False: make a merge commit even if none is needed.")


MergeOutcome: TypeAlias = Literal["up to date", "fast-forward", "merged"]


class Merged(Result):
    """What git_merge and git_pull answer."""

    repository: str
    branch: str
    source: str
    outcome: MergeOutcome
    before: str | None
    commit: str
    files: list[FileChange]
    truncated: bool
