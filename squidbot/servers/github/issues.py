"""The tools for issues, for repositories and for the code in them."""

import re
from typing import Any, Final

from squidbot.servers.github import results
from squidbot.servers.github.api import listed
from squidbot.servers.github.arguments import (
    AddIssueComment,
    CreateIssue,
    GetIssue,
    GetRepository,
    ListIssues,
    SearchCode,
)
from squidbot.servers.github.words import code_in_words, issue_in_words, issues_in_words, repository_in_words
from squidbot.servers.refusal import Refused
from squidbot.servers.rest import RestClient, count, objects
from squidbot.servers.tools import Answer, said

_ELSEWHERE: Final = re.compile(r"(?i)\b(repo|org|user|enterprise)\s*:")


async def create_issue(client: RestClient, asked: CreateIssue) -> Answer:
    """An issue."""
    body = asked.model_dump(include={"title", "body", "labels", "assignees"}, exclude_defaults=True)
    issue = client.parsed(results.Issue, await client.send("POST", f"/repos/{asked.repository}/issues", body))
    # GitHub drops in silence what the token may not set; what is then missing must be seen.
    lost = [name for name in asked.labels if name not in issue.labels]
    lost += [login for login in asked.assignees if login.lower() not in map(str.lower, issue.assignees)]
    remark = f"; GitHub did not take {', '.join(map(repr, lost))}" if lost else ""
    return said(issue, f"opened #{issue.number} {issue.title!r}: {issue.url}{remark}")


async def get_issue(client: RestClient, asked: GetIssue) -> Answer:
    """An issue and its comments."""
    path = f"/repos/{asked.repository}/issues/{asked.number}"
    data = await client.get(path)
    comments, _ = await listed(client, f"{path}/comments", {}, limit=asked.comments) if asked.comments else ([], False)
    issue = client.parsed(
        results.IssueDetails,
        data,
        is_pull_request=isinstance(data, dict) and "pull_request" in data,
        discussion=[client.parsed(results.Comment, comment) for comment in comments],
    )
    return said(issue, issue_in_words(issue))


async def add_issue_comment(client: RestClient, asked: AddIssueComment) -> Answer:
    """A comment on an issue or pull request."""
    path = f"/repos/{asked.repository}/issues/{asked.number}/comments"
    comment = client.parsed(results.Comment, await client.send("POST", path, {"body": asked.body}))
    return said(comment, f"commented on #{asked.number}: {comment.url}")


async def list_issues(client: RestClient, asked: ListIssues) -> Answer:
    """Issues, without the pull requests that GitHub mixes into their list."""
    query = {"state": asked.state, "labels": ",".join(asked.labels), "assignee": asked.assignee or ""}
    found, more = await listed(
        client,
        f"/repos/{asked.repository}/issues",
        {name: value for name, value in query.items() if value},
        limit=asked.limit,
        wanted=lambda item: "pull_request" not in item,
    )
    issues = [client.parsed(results.Issue, item) for item in found]
    answer = results.Issues(issues=issues, more=more)
    return said(answer, issues_in_words(answer))


async def get_repository(client: RestClient, asked: GetRepository) -> Answer:
    """What a repository is."""
    found = client.parsed(results.RepositoryDetails, await client.get(f"/repos/{asked.repository}"))
    return said(found, repository_in_words(found))


async def search_code(client: RestClient, asked: SearchCode) -> Answer:
    """Files of one repository that have some words."""
    if _ELSEWHERE.search(asked.query):
        raise Refused("the query may not name another place to search: leave out repo:, org:, user: and enterprise:")
    data = await client.get(
        "/search/code",
        {"q": f"{asked.query} repo:{asked.repository}", "per_page": asked.limit},
        accept="application/vnd.github.text-match+json",
    )
    # Whatever GitHub makes of the query: what was not asked about is not shown.
    items = [item for item in objects(data, "items") if _is_of(item, asked.repository)]
    matches = [client.parsed(results.CodeMatch, item) for item in items]
    found = data if isinstance(data, dict) else {}
    more = found.get("incomplete_results") is True or count(found.get("total_count")) > len(items)
    answer = results.CodeMatches(matches=matches, more=more)
    return said(answer, code_in_words(answer))


def _is_of(item: dict[str, Any], repository: str) -> bool:
    of = item.get("repository")
    return isinstance(of, dict) and str(of.get("full_name")).lower() == repository.lower()
