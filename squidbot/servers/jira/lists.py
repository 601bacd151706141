"""The tools that find tickets: by a query, or by their sprint."""

from collections import Counter
from typing import Any, Final

from squidbot.servers.jira import arguments, people, query, results
from squidbot.servers.jira.api import Jira
from squidbot.servers.jira.words import sprint_in_words, tickets_in_words
from squidbot.servers.refusal import Refused
from squidbot.servers.rest import Query, count, objects
from squidbot.servers.tools import Answer, said

_AGILE: Final = "/rest/agile/1.0"
_MOST_PAGES: Final = 10
_MOST_BOARDS: Final = 10


async def search_tickets(jira: Jira, asked: arguments.SearchTickets) -> Answer:
    """Tickets by a query or by simple fields."""
    if asked.jql is None:
        jql = query.joined(await _clauses(jira, asked))
    else:
        jql = query.within(asked.project, asked.jql) if asked.project else asked.jql
    path = await jira.path("/search/jql" if await jira.is_cloud() else "/search")
    found, more = await _listed(jira, path, {"jql": jql}, asked.limit, project=asked.project)
    tickets = results.Tickets(tickets=found, more=more, jql=jql)
    return said(tickets, tickets_in_words(tickets))


async def get_sprint(jira: Jira, asked: arguments.GetSprint) -> Answer:
    """A sprint and its tickets."""
    data = await jira.rest.get(f"{_AGILE}/sprint/{asked.sprint}") if asked.sprint else await _under_way(jira, asked)
    sprint = jira.rest.parsed(results.Sprint, data)
    if asked.board is not None and sprint.board not in {None, asked.board}:
        raise Refused(f"sprint {sprint.id} is of board {sprint.board}, not of board {asked.board}")
    only: Query = {"jql": f"project = {query.quoted(asked.project)} ORDER BY rank"} if asked.project else {}
    path = f"{_AGILE}/sprint/{sprint.id}/issue"
    tickets, more = await _listed(jira, path, only, asked.limit, project=asked.project)
    by_category = Counter(ticket.status_category or ticket.status for ticket in tickets)
    details = results.SprintDetails(**sprint.model_dump(), tickets=tickets, more=more, by_category=dict(by_category))
    return said(details, sprint_in_words(details))


async def _clauses(jira: Jira, asked: arguments.SearchTickets) -> list[str]:
    simple = {"project": asked.project, "status": asked.status, "issuetype": asked.type, "labels": asked.label}
    clauses = [f"{field} = {query.quoted(value)}" for field, value in simple.items() if value]
    match asked.assignee and asked.assignee.lower():
        case None:
            pass
        case "me":
            clauses.append("assignee = currentUser()")
        case "none":
            clauses.append("assignee IS EMPTY")
        case _:
            person = await people.anybody(jira, asked.assignee or "")
            clauses.append(f"assignee = {query.quoted(person.account_id or person.name or '')}")
    clauses += [f"text ~ {query.quoted(asked.text)}"] if asked.text else []
    clauses += ["sprint in openSprints()"] if asked.in_open_sprint else []
    return clauses


async def _listed(
    jira: Jira, path: str, asked: Query, limit: int, *, project: str | None
) -> tuple[list[results.Ticket], bool]:
    """The first tickets of a list, and whether there are more; Jira counts pages in two ways."""
    found: list[results.Ticket] = []
    place: dict[str, str | int] = {}
    for _ in range(_MOST_PAGES):
        size = min(100, limit - len(found))
        data = await jira.rest.get(path, {**asked, **place, "fields": results.LISTED, "maxResults": size})
        page = data if isinstance(data, dict) else {}
        items = objects(page, "issues")
        found += [_ticket(jira, item) for item in items if _is_of(item, project)]
        after = _next_place(page, len(items))
        if after is None or len(found) >= limit:
            return found[:limit], after is not None
        place = after
    return found, True


def _next_place(page: dict[str, Any], size: int) -> dict[str, str | int] | None:
    """A token in the cloud's search, a number everywhere else."""
    if "total" not in page:
        token = page.get("nextPageToken")
        return {"nextPageToken": str(token)} if token and not page.get("isLast") else None
    reached = count(page.get("startAt")) + size
    return {"startAt": reached} if size and reached < count(page["total"]) else None


def _ticket(jira: Jira, item: dict[str, Any]) -> results.Ticket:
    return jira.rest.parsed(results.Ticket, item, url=jira.page(str(item.get("key"))))


def _is_of(item: dict[str, Any], project: str | None) -> bool:
    """Whatever Jira makes of the query: what was not asked about is not shown."""
    return project is None or str(item.get("key")).rpartition("-")[0].upper() == project.upper()


async def _under_way(jira: Jira, asked: arguments.GetSprint) -> Any:
    """The one sprint that is active on the board, or on the boards of the project."""
    boards = [asked.board] if asked.board else await _boards(jira, asked.project or "")
    active: dict[int, Any] = {}
    for board in boards:
        data = await jira.rest.get(f"{_AGILE}/board/{board}/sprint", {"state": "active"})
        active |= {count(sprint.get("id")): sprint for sprint in objects(data, "values")}
    where = f"board {asked.board}" if asked.board else f"project {asked.project!r}"
    match list(active.values()):
        case [sprint]:
            return sprint
        case []:
            raise Refused(f"no sprint is under way in {where}: give the number of another one as 'sprint'")
        case several:
            listed = "\n".join(f"  {sprint.get('id')}: {sprint.get('name')}" for sprint in several)
            raise Refused(f"several sprints are under way in {where}, give the number of one as 'sprint':\n{listed}")


async def _boards(jira: Jira, project: str) -> list[int]:
    """Those with sprints; a kanban board has none, and says so with an error."""
    asked: Query = {"projectKeyOrId": project, "type": "scrum", "maxResults": _MOST_BOARDS}
    data = await jira.rest.get(f"{_AGILE}/board", asked)
    boards = [count(board.get("id")) for board in objects(data, "values")]
    if not boards:
        raise Refused(f"project {project!r} has no board with sprints, or there is no such project")
    return boards
