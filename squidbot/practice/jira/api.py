"""The routes of the tracker."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from squidbot.practice.jira import agile, directory, search, tickets
from squidbot.practice.jira.manners import Desk, DeskHandler, JiraManners, refusal
from squidbot.practice.web import Answer, Call, Handler, endpoint, response
from squidbot.practice.world import World

# Paths below /rest/api/{version}.
_PLATFORM: tuple[tuple[str, str, DeskHandler], ...] = (
    ("GET", "/serverInfo", directory.server_info),
    ("GET", "/myself", directory.myself),
    ("GET", "/user", directory.get_user),
    ("GET", "/user/search", directory.search_users),
    ("GET", "/user/assignable/search", directory.search_users),
    ("GET", "/project", directory.list_projects),
    ("GET", "/project/search", directory.search_projects),
    ("GET", "/project/{project}", directory.get_project),
    ("GET", "/project/{project}/statuses", directory.project_statuses),
    ("GET", "/project/{project}/components", directory.nothing_yet),
    ("GET", "/project/{project}/versions", directory.nothing_yet),
    ("GET", "/issuetype", directory.issue_types),
    ("GET", "/priority", directory.priorities),
    ("GET", "/status", directory.statuses),
    ("GET", "/statuscategory", directory.status_categories),
    ("GET", "/resolution", directory.resolutions),
    ("GET", "/field", directory.list_fields),
    ("GET", "/search", search.search),
    ("POST", "/search", search.search),
    ("GET", "/search/jql", search.search_by_token),
    ("POST", "/search/jql", search.search_by_token),
    ("POST", "/search/approximate-count", search.count),
    ("GET", "/issue/createmeta", directory.create_meta),
    ("GET", "/issue/createmeta/{project}/issuetypes", directory.create_meta_types),
    ("GET", "/issue/createmeta/{project}/issuetypes/{type}", directory.create_meta_fields),
    ("POST", "/issue", tickets.create_ticket),
    ("GET", "/issue/{key}", tickets.get_ticket),
    ("PUT", "/issue/{key}", tickets.update_ticket),
    ("DELETE", "/issue/{key}", tickets.delete_ticket),
    ("GET", "/issue/{key}/editmeta", directory.edit_meta),
    ("PUT", "/issue/{key}/assignee", tickets.assign),
    ("GET", "/issue/{key}/comment", tickets.list_comments),
    ("POST", "/issue/{key}/comment", tickets.add_comment),
    ("GET", "/issue/{key}/comment/{id}", tickets.get_comment),
    ("PUT", "/issue/{key}/comment/{id}", tickets.update_comment),
    ("DELETE", "/issue/{key}/comment/{id}", tickets.delete_comment),
    ("GET", "/issue/{key}/transitions", tickets.list_transitions),
    ("POST", "/issue/{key}/transitions", tickets.do_transition),
)
# Paths below /rest/agile/{version}.
_AGILE: tuple[tuple[str, str, DeskHandler], ...] = (
    ("GET", "/board", agile.list_boards),
    ("GET", "/board/{id:int}", agile.get_board),
    ("GET", "/board/{id:int}/sprint", agile.list_sprints),
    ("GET", "/board/{id:int}/issue", agile.board_issues),
    ("GET", "/board/{id:int}/backlog", agile.backlog),
    ("POST", "/backlog/issue", agile.move_to_backlog),
    ("POST", "/sprint", agile.create_sprint),
    ("GET", "/sprint/{id:int}", agile.get_sprint),
    ("POST", "/sprint/{id:int}", agile.update_sprint),
    ("PUT", "/sprint/{id:int}", agile.update_sprint),
    ("GET", "/sprint/{id:int}/issue", agile.sprint_issues),
    ("POST", "/sprint/{id:int}/issue", agile.move_to_sprint),
)


def build(world: World, *, cloud: bool) -> Starlette:
    """The tracker as an application, as one kind of Jira or the other."""
    manners = JiraManners()
    versions = {"2", "3", "latest"} if cloud else {"2", "latest"}

    def handled(handler: DeskHandler) -> Handler:
        def handle(call: Call) -> Answer:
            if call.path["version"] not in versions | {"1.0"}:
                raise refusal(404, f"There is no version {call.path['version']} of this API here.")
            return handler(Desk(call, cloud))

        return handle

    routes = [
        Route(f"/rest/{part}/{{version}}{path}", endpoint(world, manners, handled(handler)), methods=[method])
        for part, table in (("api", _PLATFORM), ("agile", _AGILE))
        for method, path, handler in table
    ]

    async def unknown(_request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        reason = refusal(
            status, "Nothing here answers to this path." if status == 404 else "This method is not allowed."
        )
        return response(Answer(reason.body, status), manners)

    return Starlette(routes=routes, exception_handlers={404: unknown, 405: unknown})
