"""What each tool takes: the schemas that a model fills in."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from squidbot.servers.github.results import MAX_DIFF
from squidbot.servers.tools import Arguments, spoken

Repository = Annotated[
    str,
    Field(
        # A name of nothing but dots would climb out of the path that it is put into.
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$",
        max_length=200,
        description="The repository as 'owner/name'.",
    ),
]
Number = Annotated[int, Field(ge=1, le=2**31, description="Number of the issue or pull request, as in '#12'.")]
Title = Annotated[str, Field(min_length=1, max_length=256, description="In one line."), AfterValidator(spoken)]
Body = Annotated[str, Field(max_length=65_536, description="Text in Markdown.")]
Branch = Annotated[str, Field(min_length=1, max_length=255)]
Label = Annotated[str, Field(pattern=r"^[^,]+$", max_length=100)]
Login = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*(\[bot\])?$", max_length=100)]
Limit = Annotated[int, Field(ge=1, le=100)]


class CreatePullRequest(Arguments):
    """Arguments of create_pull_request."""

    repository: Repository
    title: Title
    head: Branch = Field(description="The branch with the changes, already pushed; 'owner:branch' for a fork's.")
    base: Branch | None = Field(
        default=None, description="The branch to merge into; default: the repository's main one."
    )
    body: Body = ""
    draft: bool = Field(default=False, description="Not ready for review yet.")


class GetPullRequest(Arguments):
    """Arguments of get_pull_request."""

    repository: Repository
    number: Number
    include_diff: bool = Field(default=False, description=f"Also the diff, its first {MAX_DIFF} bytes.")


class ReviewRequest(Arguments):
    """A review to submit."""

    event: Literal["comment", "request_changes", "approve"] = Field(description="The verdict.")
    body: Body = Field(default="", description="The review's text; only an approval may be without.")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.event != "approve" and not self.body.strip():
            raise ValueError(f"a review of the kind {self.event!r} needs a body")
        return self


class UpdatePullRequest(Arguments):
    """Arguments of update_pull_request."""

    repository: Repository
    number: Number
    title: Title | None = Field(default=None, description="Another title, in one line.")
    body: Body | None = Field(default=None, description="The whole new text, in Markdown.")
    state: Literal["open", "closed"] | None = Field(default=None, description="'closed' closes it without merging.")
    base: Branch | None = Field(default=None, description="Another branch to merge into.")
    review: ReviewRequest | None = Field(default=None, description="Submit a review.")

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if all(value is None for value in (self.title, self.body, self.state, self.base, self.review)):
            raise ValueError("nothing to do: give title, body, state, base or review")
        return self


class MergePullRequest(Arguments):
    """Arguments of merge_pull_request."""

    repository: Repository
    number: Number
    method: Literal["merge", "squash", "rebase"] = Field(
        default="merge", description="'merge' keeps the commits, 'squash' makes one of them, 'rebase' puts them on top."
    )
    approve: bool = Field(default=False, description="Submit an approving review first.")
    expected_head: Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")] | None = Field(
        default=None, description="Full id of the commit that was reviewed; another head is not merged."
    )
    title: Title | None = Field(default=None, description="First line of the merge commit; default: GitHub's.")
    message: Body | None = Field(default=None, description="Rest of the merge commit's message; default: GitHub's.")


class CreateIssue(Arguments):
    """Arguments of create_issue."""

    repository: Repository
    title: Title
    body: Body = ""
    labels: list[Label] = Field(default=[], max_length=50, description="Names of labels.")
    assignees: list[Login] = Field(default=[], max_length=10, description="Logins.")


class GetIssue(Arguments):
    """Arguments of get_issue."""

    repository: Repository
    number: Number
    comments: int = Field(default=30, ge=0, le=100, description="How many comments at most, the first ones first.")


class AddIssueComment(Arguments):
    """Arguments of add_issue_comment."""

    repository: Repository
    number: Number
    body: Annotated[
        str, Field(min_length=1, max_length=65_536, description="The comment, in Markdown."), AfterValidator(spoken)
    ]


class ListIssues(Arguments):
    """Arguments of list_issues."""

    repository: Repository
    state: Literal["open", "closed", "all"] = Field(default="open", description="Only issues in this state.")
    labels: list[Label] = Field(default=[], max_length=20, description="Only issues that have all of these.")
    assignee: Annotated[str, Field(pattern=r"^(\*|none|[A-Za-z0-9][A-Za-z0-9_-]*(\[bot\])?)$")] | None = Field(
        default=None, description="A login, 'none' for issues of nobody, '*' for issues of anybody."
    )
    limit: Limit = Field(default=30, description="How many at most, the newest first.")


class GetRepository(Arguments):
    """Arguments of get_repository."""

    repository: Repository


class SearchCode(Arguments):
    """Arguments of search_code."""

    repository: Repository
    query: Annotated[str, AfterValidator(spoken)] = Field(
        min_length=1,
        max_length=200,
        description="Words to find in the files of the main branch; 'path:src', 'extension:py' and 'language:go' narrow it.",
    )
    limit: Limit = Field(default=20, description="How many files at most.")
