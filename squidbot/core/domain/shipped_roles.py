"""The nine roles that ship: what each is for, and which tools of which server it may use."""

from typing import Final

_READ_CODE = ("git_status", "git_diff", "git_log", "git_branch")
_WRITE_CODE = (*_READ_CODE, "git_checkout", "git_commit", "git_push", "git_pull")
_PROPOSE = ("create_pull_request", "get_pull_request", "update_pull_request", "create_issue")

SHIPPED: Final[dict[str, tuple[str, dict[str, tuple[str, ...]]]]] = {
    "project_manager": (
        "Planning, coordination, tickets",
        {
            "github": ("list_issues", "create_issue", "get_repository"),
            "jira": (
                "create_ticket",
                "get_ticket",
                "update_ticket",
                "add_comment",
                "change_status",
                "assign_ticket",
                "search_tickets",
                "get_sprint",
            ),
        },
    ),
    "tech_lead": (
        "Review, architecture, merging",
        {
            "git": (*_READ_CODE, "git_merge"),
            "github": (
                "get_pull_request",
                "update_pull_request",
                "merge_pull_request",
                "add_issue_comment",
                "search_code",
                "get_repository",
            ),
            "jira": ("get_ticket", "add_comment", "search_tickets"),
        },
    ),
    "backend_developer": (
        "Backend code",
        {"git": _WRITE_CODE, "github": (*_PROPOSE, "add_issue_comment", "search_code")},
    ),
    "frontend_developer": (
        "Frontend code",
        {"git": _WRITE_CODE, "github": (*_PROPOSE, "add_issue_comment", "search_code")},
    ),
    "qa_tester": (
        "Testing, bug reports",
        {
            "github": ("create_issue", "get_issue", "add_issue_comment", "list_issues", "get_pull_request"),
            "jira": ("get_ticket", "update_ticket", "add_comment", "change_status", "create_ticket", "search_tickets"),
        },
    ),
    "devops_engineer": (
        "Infrastructure, deployment",
        {
            "git": (*_READ_CODE, "git_checkout", "git_merge", "git_push", "git_pull"),
            "github": ("create_pull_request", "merge_pull_request", "create_issue", "get_repository", "search_code"),
        },
    ),
    "solution_architect": (
        "Design decisions; GitHub read only, comments in Jira",
        {
            "github": ("get_repository", "search_code", "get_pull_request", "list_issues"),
            "jira": ("get_ticket", "add_comment", "search_tickets"),
        },
    ),
    "ai_engineer": (
        "Models and their integration",
        {"git": _WRITE_CODE, "github": (*_PROPOSE, "search_code")},
    ),
    "designer": (
        "Design feedback",
        {"github": ("create_issue", "add_issue_comment", "get_issue", "list_issues")},
    ),
}
