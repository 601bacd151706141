"""What each tool gives: small results, filled straight from GitHub's answers."""

from typing import Annotated, Any, Final, Literal

from pydantic import AliasChoices, AliasPath, BeforeValidator, ConfigDict, Field

from squidbot.servers import tools
from squidbot.servers.rest import cut, objects

MAX_DIFF: Final = 100_000
"""Bytes of a diff; what comes after is cut, with a note."""
_MAX_TEXT: Final = 20_000
_MAX_REMARK: Final = 4_000
_MAX_FRAGMENT: Final = 1_000
_MAX_FRAGMENTS: Final = 5


class Result(tools.Result):
    """Made from GitHub's JSON by the aliases, or by the names of its fields."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)


def _named(items: Any, key: str) -> Any:
    """GitHub gives labels, people and matches as objects, and a model needs one word of each."""
    return (
        [item.get(key) if isinstance(item, dict) else item for item in items]
        if isinstance(items, list)
        else items or []
    )


def _short(limit: int) -> BeforeValidator:
    """A text that may be null, and may be long."""
    return BeforeValidator(lambda text: cut(text, limit) if isinstance(text, str) else text or "")


def _visibility(value: Any) -> Any:
    """Older Enterprise servers only say whether a repository is private."""
    return ("private" if value else "public") if isinstance(value, bool) else value


def _granted(value: Any) -> Any:
    return [name for name, granted in value.items() if granted] if isinstance(value, dict) else value


def _fragments(matches: Any) -> Any:
    return [cut(str(match.get("fragment") or ""), _MAX_FRAGMENT) for match in objects(matches)[:_MAX_FRAGMENTS]]


Url = Annotated[str, Field(validation_alias="html_url")]
Author = Annotated[str | None, Field(validation_alias=AliasPath("user", "login"))]
"""Null if the account is gone."""
Text = Annotated[str, _short(_MAX_TEXT)]
Remark = Annotated[str, _short(_MAX_REMARK)]
Labels = Annotated[list[str], BeforeValidator(lambda labels: _named(labels, "name"))]
Logins = Annotated[list[str], BeforeValidator(lambda people: _named(people, "login"))]


class PullRequest(Result):
    """What create_pull_request answers."""

    number: int
    title: str
    state: Literal["open", "closed"]
    merged: bool = False
    draft: bool = False
    url: Url
    author: Author = None
    head: str = Field(validation_alias=AliasPath("head", "ref"), description="The branch with the changes.")
    head_sha: str = Field(validation_alias=AliasPath("head", "sha"))
    base: str = Field(validation_alias=AliasPath("base", "ref"), description="The branch to merge into.")
    mergeable: bool | None = Field(default=None, description="False on conflicts; null while GitHub is finding out.")


class ChangedFile(Result):
    """A file of a pull request."""

    path: str = Field(validation_alias="filename")
    status: str
    additions: int
    deletions: int


class Review(Result):
    """A review of a pull request."""

    author: Author = None
    state: str = Field(description="APPROVED, CHANGES_REQUESTED, COMMENTED, DISMISSED or PENDING.")
    url: Url
    body: Remark = ""
    submitted_at: str | None = None


class Checks(Result):
    """How the checks of the last commit went."""

    passed: int
    failed: int
    pending: int
    failing: list[str] = Field(description="Names of those that failed.")


class PullRequestDetails(PullRequest):
    """What get_pull_request answers."""

    body: Text
    labels: Labels = Field(default=[])
    commits: int = 0
    additions: int = 0
    deletions: int = 0
    changed_files: int = 0
    updated_at: str | None = None
    files: list[ChangedFile] = Field(default=[])
    reviews: list[Review] = Field(default=[])
    checks: Checks | None = Field(default=None, description="Null if the token may not see them.")
    diff: str | None = None
    notes: list[str] = Field(default=[], description="What was left out.")


class PullRequestUpdated(PullRequest):
    """What update_pull_request answers."""

    changed: list[str] = Field(default=[], description="What was changed, of title, body, state and base.")
    review: Review | None = Field(default=None, description="The submitted review.")


class Merged(Result):
    """What merge_pull_request answers."""

    number: int
    merged: bool
    sha: str = Field(description="The commit that the merge made.")
    approved: bool = Field(description="An approving review was submitted first.")
    base: str
    url: str


class Issue(Result):
    """What create_issue answers."""

    number: int
    title: str
    state: Literal["open", "closed"]
    url: Url
    author: Author = None
    labels: Labels = Field(default=[])
    assignees: Logins = Field(default=[])
    comments: int = 0
    created_at: str | None = None
    updated_at: str | None = None


class Comment(Result):
    """What add_issue_comment answers."""

    id: int
    url: Url
    author: Author = None
    created_at: str | None = None
    body: Remark


class IssueDetails(Issue):
    """What get_issue answers."""

    body: Text
    is_pull_request: bool = Field(default=False, description="True for a pull request: get_pull_request tells more.")
    discussion: list[Comment] = Field(default=[], description="The comments.")


class Issues(Result):
    """What list_issues answers."""

    issues: list[Issue]
    more: bool = Field(description="True if there are more than these.")


class RepositoryDetails(Result):
    """What get_repository answers."""

    repository: str = Field(validation_alias="full_name")
    description: str | None = None
    url: Url
    clone_url: str | None = None
    default_branch: str
    visibility: Annotated[str, BeforeValidator(_visibility)] = Field(
        validation_alias=AliasChoices("visibility", "private")
    )
    archived: bool = False
    language: str | None = None
    topics: list[str] = Field(default=[])
    open_issues: int = Field(
        default=0, validation_alias="open_issues_count", description="Open issues and pull requests."
    )
    pushed_at: str | None = None
    permissions: Annotated[list[str], BeforeValidator(_granted)] = Field(
        default=[], description="What the token may do here, such as 'pull' and 'push'."
    )


class CodeMatch(Result):
    """A file that search_code found."""

    path: str
    url: Url
    fragments: Annotated[list[str], BeforeValidator(_fragments)] = Field(
        default=[], validation_alias="text_matches", description="Lines around the matches."
    )


class CodeMatches(Result):
    """What search_code answers."""

    matches: list[CodeMatch]
    more: bool = Field(description="True if there are more than these, or the search was not complete.")
