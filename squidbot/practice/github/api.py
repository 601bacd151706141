"""The routes of the forge."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from squidbot.practice.github import code, comments, issues, pulls, reviews, search, shapes
from squidbot.practice.github.manners import LIMIT, GitHubManners, not_found
from squidbot.practice.people import ORGANISATION, by_login
from squidbot.practice.web import Answer, Call, Handler, endpoint, response
from squidbot.practice.world import REPOSITORY, World


def get_user(call: Call) -> Answer:
    private = dict.fromkeys(("collaborators", "disk_usage", "owned_private_repos", "private_gists"), 0)
    more = {"total_private_repos": 1, "two_factor_authentication": False}
    return Answer(shapes.profile(call, call.person) | private | more)


def get_account(call: Call) -> Answer:
    person = by_login(call.path["login"])
    if person is None and call.path["login"].lower() == ORGANISATION:
        return Answer(shapes.organisation(call))
    if person is None:
        raise not_found()
    return Answer(shapes.profile(call, person))


def list_repositories(call: Call) -> Answer:
    return Answer([shapes.repository(call)])


def get_rate_limit(_call: Call) -> Answer:
    rate = {
        "limit": LIMIT,
        "used": 1,
        "remaining": LIMIT - 1,
        "reset": int(GitHubManners().headers()["X-RateLimit-Reset"]),
    }
    return Answer({"resources": dict.fromkeys(("core", "search", "graphql", "code_search"), rate), "rate": rate})


# Paths below /repos/{owner}/{repo}.
_REPOSITORY: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "", code.get_repository),
    ("GET", "/branches", code.list_branches),
    ("GET", "/branches/{branch:path}", code.get_branch),
    ("GET", "/git/refs", code.list_references),
    ("POST", "/git/refs", code.create_reference),
    ("GET", "/git/matching-refs/{ref:path}", code.list_references),
    ("GET", "/git/ref/{ref:path}", code.get_reference),
    ("GET", "/git/refs/{ref:path}", code.get_reference),
    ("PATCH", "/git/refs/{ref:path}", code.update_reference),
    ("DELETE", "/git/refs/{ref:path}", code.delete_reference),
    ("GET", "/git/commits/{sha}", code.get_git_commit),
    ("GET", "/commits", code.list_commits),
    ("GET", "/commits/{ref:path}/status", code.get_status),
    ("GET", "/commits/{ref:path}/check-runs", code.list_check_runs),
    ("GET", "/commits/{ref:path}", code.get_commit),
    ("GET", "/compare/{basehead:path}", code.compare),
    ("GET", "/contents", code.get_contents),
    ("GET", "/contents/{path:path}", code.get_contents),
    ("GET", "/labels", issues.list_labels),
    ("GET", "/assignees", issues.list_assignees),
    ("GET", "/collaborators", issues.list_assignees),
    ("GET", "/issues", issues.list_issues),
    ("POST", "/issues", issues.create_issue),
    ("GET", "/issues/comments", comments.list_all_comments),
    ("GET", "/issues/comments/{id:int}", comments.get_comment),
    ("PATCH", "/issues/comments/{id:int}", comments.update_comment),
    ("DELETE", "/issues/comments/{id:int}", comments.delete_comment),
    ("GET", "/issues/{number:int}", issues.get_issue),
    ("PATCH", "/issues/{number:int}", issues.update_issue),
    ("GET", "/issues/{number:int}/comments", comments.list_comments),
    ("POST", "/issues/{number:int}/comments", comments.create_comment),
    ("GET", "/issues/{number:int}/labels", issues.list_issue_labels),
    ("POST", "/issues/{number:int}/labels", issues.change_issue_labels),
    ("PUT", "/issues/{number:int}/labels", issues.change_issue_labels),
    ("DELETE", "/issues/{number:int}/labels/{name}", issues.remove_issue_label),
    ("POST", "/issues/{number:int}/assignees", issues.change_assignees),
    ("DELETE", "/issues/{number:int}/assignees", issues.change_assignees),
    ("GET", "/pulls", pulls.list_pulls),
    ("POST", "/pulls", pulls.create_pull),
    ("GET", "/pulls/{number:int}", pulls.get_pull),
    ("PATCH", "/pulls/{number:int}", pulls.update_pull),
    ("GET", "/pulls/{number:int}/files", pulls.list_files),
    ("GET", "/pulls/{number:int}/commits", pulls.list_commits),
    ("GET", "/pulls/{number:int}/merge", pulls.is_merged),
    ("PUT", "/pulls/{number:int}/merge", pulls.merge_pull),
    ("PUT", "/pulls/{number:int}/update-branch", pulls.update_branch),
    ("GET", "/pulls/{number:int}/requested_reviewers", pulls.list_reviewers),
    ("POST", "/pulls/{number:int}/requested_reviewers", pulls.change_reviewers),
    ("DELETE", "/pulls/{number:int}/requested_reviewers", pulls.change_reviewers),
    ("GET", "/pulls/{number:int}/comments", reviews.list_review_comments),
    ("GET", "/pulls/{number:int}/reviews", reviews.list_reviews),
    ("POST", "/pulls/{number:int}/reviews", reviews.create_review),
    ("GET", "/pulls/{number:int}/reviews/{id:int}", reviews.get_review),
    ("POST", "/pulls/{number:int}/reviews/{id:int}/events", reviews.submit_review),
)
_OTHER: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/user", get_user),
    ("GET", "/user/repos", list_repositories),
    ("GET", "/users/{login}", get_account),
    ("GET", "/orgs/{login}", get_account),
    ("GET", "/orgs/{login}/repos", list_repositories),
    ("GET", "/rate_limit", get_rate_limit),
    ("GET", "/search/code", search.search_code),
    ("GET", "/search/issues", search.search_issues),
    ("GET", "/search/repositories", search.search_repositories),
)


def build(world: World) -> Starlette:
    """The forge as an application, wherever it is mounted."""
    manners = GitHubManners()
    own = [
        Route(f"/repos/{{owner}}/{{repo}}{path}", endpoint(world, manners, _in_repository(handler)), methods=[method])
        for method, path, handler in _REPOSITORY
    ]
    others = [Route(path, endpoint(world, manners, handler), methods=[method]) for method, path, handler in _OTHER]

    async def unknown(_request: Request, _error: Exception) -> Response:
        refusal = not_found()
        return response(Answer(refusal.body, refusal.status), manners)

    # A path that GitHub has, but not with this method, is as unknown there as any other.
    return Starlette(routes=[*own, *others], exception_handlers={404: unknown, 405: unknown})


def _in_repository(handler: Handler) -> Handler:
    """There is one repository; every other is not found."""

    def handle(call: Call) -> Answer:
        if (call.path["owner"].lower(), call.path["repo"].lower()) != (ORGANISATION, REPOSITORY):
            raise not_found()
        return handler(call)

    return handle
