"""The board, its sprints and its backlog."""

from collections.abc import Callable

from squidbot.practice import clock
from squidbot.practice.jira import fields, search, shapes, workflow
from squidbot.practice.jira.manners import Desk, refusal, window
from squidbot.practice.jira.tickets import touch
from squidbot.practice.store import Document
from squidbot.practice.web import Answer

_BOARD = 1


def list_boards(desk: Desk) -> Answer:
    query = desk.call.query
    board = _board(desk)
    fits = (
        query.get("projectKeyOrId", workflow.PROJECT_KEY) in {workflow.PROJECT_KEY, workflow.PROJECT_ID}
        and query.get("name", "").lower() in board["name"].lower()
        and query.get("type", "scrum") == "scrum"
    )
    return Answer(window(desk, [board] if fits else [], "values"))


def get_board(desk: Desk) -> Answer:
    _must_be_board(desk)
    return Answer(_board(desk))


def list_sprints(desk: Desk) -> Answer:
    _must_be_board(desk)
    states = [state for state in desk.call.query.get("state", "").lower().split(",") if state]
    if unknown := sorted(set(states) - {"active", "closed", "future"}):
        raise refusal(400, f"The state '{unknown[0]}' is none of active, closed, future.")
    found = [sprint for sprint in desk.store.all("sprint") if not states or sprint["state"] in states]
    return Answer(window(desk, [shapes.sprint(desk, sprint) for sprint in found], "values"))


def board_issues(desk: Desk) -> Answer:
    _must_be_board(desk)
    return _issues(desk, lambda _ticket: True)


def backlog(desk: Desk) -> Answer:
    """What is in no sprint that is open or to come, and not done."""
    _must_be_board(desk)
    current = {sprint["id"] for sprint in desk.store.all("sprint") if sprint["state"] != "closed"}
    return _issues(desk, lambda ticket: not current & set(ticket["sprints"]) and ticket["status"] != "Done")


def get_sprint(desk: Desk) -> Answer:
    return Answer(shapes.sprint(desk, _existing(desk)))


def create_sprint(desk: Desk) -> Answer:
    name = desk.body.get("name")
    if not isinstance(name, str) or not name.strip() or desk.body.get("originBoardId") != _BOARD:
        raise refusal(400, f"A sprint needs a name, and the board {_BOARD} as originBoardId.")
    sprint: Document = {"id": desk.store.new_id("sprint"), "name": name, "state": "future", "complete": None}
    sprint |= {"goal": str(desk.body.get("goal") or ""), "start": None, "end": None}
    desk.store.put("sprint", sprint)
    return Answer(shapes.sprint(desk, sprint), 201)


def update_sprint(desk: Desk) -> Answer:
    """The name, the goal, and the state, which goes from future to active to closed."""
    sprint = _existing(desk)
    state = desk.body.get("state", sprint["state"])
    if (sprint["state"], state) not in {("future", "active"), ("active", "closed"), (sprint["state"], sprint["state"])}:
        raise refusal(400, f"A sprint that is {sprint['state']} cannot become {state}.")
    names = {name: str(desk.body[name]) for name in ("name", "goal") if desk.body.get(name) is not None}
    dates = {"active": {"start": sprint["start"] or clock.now()}, "closed": {"complete": clock.now()}}
    changed = sprint | names | (dates[state] | {"state": state} if state != sprint["state"] else {})
    desk.store.put("sprint", changed)
    return Answer(shapes.sprint(desk, changed))


def sprint_issues(desk: Desk) -> Answer:
    number = _existing(desk)["id"]
    return _issues(desk, lambda ticket: number in ticket["sprints"])


def move_to_sprint(desk: Desk) -> Answer:
    sprint = _existing(desk)
    if sprint["state"] == "closed":
        raise refusal(400, "Issues can only be moved to sprints that are open or to come.")
    return _moved(desk, [sprint["id"]])


def move_to_backlog(desk: Desk) -> Answer:
    return _moved(desk, [])


def _moved(desk: Desk, sprints: list[int]) -> Answer:
    keys = desk.body.get("issues")
    found = [(str(key), fields.by_key(desk, str(key))) for key in keys] if isinstance(keys, list) else []
    if not found:
        raise refusal(400, "'issues' must be a list of keys.")
    if missing := [key for key, ticket in found if ticket is None]:
        raise refusal(400, f"Issue does not exist or you do not have permission to see it: {', '.join(missing)}")
    closed = {sprint["id"] for sprint in desk.store.all("sprint") if sprint["state"] == "closed"}
    for _, ticket in found:
        if ticket is not None:
            past = [number for number in ticket["sprints"] if number in closed]
            touch(desk, ticket, {"sprints": [*past, *sprints]})
    return Answer(status=204)


def _issues(desk: Desk, fits: Callable[[Document], bool]) -> Answer:
    asked = search.asked_for(desk)
    found = [ticket for ticket in search.found_by(desk, str(asked.get("jql") or "ORDER BY key")) if fits(ticket)]
    return Answer(search.window(desk, found, asked, agile=True))


def _existing(desk: Desk) -> Document:
    sprint = desk.store.get("sprint", desk.call.path["id"])
    if sprint is None:
        raise refusal(404, f"Sprint does not exist: {desk.call.path['id']}.")
    return sprint


def _must_be_board(desk: Desk) -> None:
    if desk.call.path["id"] != _BOARD:
        raise refusal(404, f"The requested board cannot be viewed: there is no board {desk.call.path['id']}.")


def _board(desk: Desk) -> Document:
    return {
        "id": _BOARD,
        "self": f"{desk.call.base}/rest/agile/1.0/board/{_BOARD}",
        "name": f"{workflow.PROJECT_KEY} board",
        "type": "scrum",
        "location": {
            "projectId": int(workflow.PROJECT_ID),
            "projectKey": workflow.PROJECT_KEY,
            "projectName": workflow.PROJECT_NAME,
            "displayName": f"{workflow.PROJECT_NAME} ({workflow.PROJECT_KEY})",
            "name": f"{workflow.PROJECT_NAME} ({workflow.PROJECT_KEY})",
        },
    }
