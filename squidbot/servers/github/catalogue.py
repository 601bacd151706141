"""How each tool is announced: its name, its schemas, and honest hints of what it does on GitHub."""

from typing import Final

from squidbot.servers.github import arguments, issues, pulls, results
from squidbot.servers.rest import RestClient
from squidbot.servers.tools import Tool, changing, reading

INSTRUCTIONS: Final = (
    "Pull requests, issues and code on GitHub. Every tool takes the repository as 'owner/name'. "
    "A branch must be pushed before a pull request can be opened from it."
)

TOOLS: Final[tuple[Tool[RestClient], ...]] = (
    Tool(
        "create_pull_request",
        "Open a pull request",
        "Open a pull request from a pushed branch.",
        arguments.CreatePullRequest,
        results.PullRequest,
        changing(destructive=False, idempotent=False, open_world=True),
        pulls.create_pull_request,
    ),
    Tool(
        "get_pull_request",
        "Read a pull request",
        "Read a pull request: state, text, changed files, reviews, checks, and the diff if asked for.",
        arguments.GetPullRequest,
        results.PullRequestDetails,
        reading(open_world=True),
        pulls.get_pull_request,
    ),
    Tool(
        "update_pull_request",
        "Change or review a pull request",
        "Change title, text, state or base branch of a pull request, or submit a review "
        "(comment, request_changes, approve). To comment without a review, use add_issue_comment.",
        arguments.UpdatePullRequest,
        results.PullRequestUpdated,
        changing(destructive=True, idempotent=False, open_world=True),
        pulls.update_pull_request,
    ),
    Tool(
        "merge_pull_request",
        "Merge a pull request",
        "Merge an open pull request, after an approving review of your own if 'approve' is set. "
        "Give expected_head to merge only what was reviewed.",
        arguments.MergePullRequest,
        results.Merged,
        changing(destructive=True, idempotent=False, open_world=True),
        pulls.merge_pull_request,
    ),
    Tool(
        "create_issue",
        "Open an issue",
        "Open an issue, with labels and assignees if given.",
        arguments.CreateIssue,
        results.Issue,
        changing(destructive=False, idempotent=False, open_world=True),
        issues.create_issue,
    ),
    Tool(
        "get_issue",
        "Read an issue",
        "Read an issue and its comments.",
        arguments.GetIssue,
        results.IssueDetails,
        reading(open_world=True),
        issues.get_issue,
    ),
    Tool(
        "add_issue_comment",
        "Comment on an issue",
        "Comment on an issue or a pull request.",
        arguments.AddIssueComment,
        results.Comment,
        changing(destructive=False, idempotent=False, open_world=True),
        issues.add_issue_comment,
    ),
    Tool(
        "list_issues",
        "List issues",
        "List issues, the newest first, by state, labels and assignee. Pull requests are not among them.",
        arguments.ListIssues,
        results.Issues,
        reading(open_world=True),
        issues.list_issues,
    ),
    Tool(
        "get_repository",
        "Describe a repository",
        "Tell what a repository is: main branch, addresses, visibility, what the token may do there.",
        arguments.GetRepository,
        results.RepositoryDetails,
        reading(open_world=True),
        issues.get_repository,
    ),
    Tool(
        "search_code",
        "Search code",
        "Find files by words in them, on the main branch of one repository.",
        arguments.SearchCode,
        results.CodeMatches,
        reading(open_world=True),
        issues.search_code,
    ),
)
