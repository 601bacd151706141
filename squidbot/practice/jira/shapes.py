"""What people, tickets, comments and sprints look like in Jira's JSON."""

from squidbot.practice.jira import workflow
from squidbot.practice.jira.adf import to_document, to_text
from squidbot.practice.jira.manners import Desk
from squidbot.practice.people import Person, by_login
from squidbot.practice.store import Document

KEY = workflow.PROJECT_KEY
_NAVIGABLE_ONLY = {"comment"}
"""Left out of search results unless asked for by name."""


def key_of(ticket: Document) -> str:
    return f"{KEY}-{ticket['id']}"


def moment(stamp: str | None) -> str | None:
    """The world's time as Jira writes it."""
    return stamp.removesuffix("Z") + ".000+0000" if stamp else None


def user(desk: Desk, person: Person | None) -> Document | None:
    if person is None:
        return None
    pictures = {f"{size}x{size}": f"{desk.call.site}/avatars/{person.login}.svg" for size in (16, 24, 32, 48)}
    shape: Document = {"emailAddress": person.email, "displayName": person.name, "active": True, "timeZone": "UTC"}
    shape["avatarUrls"] = pictures
    if desk.cloud:
        url = f"{desk.api}/user?accountId={person.account_id}"
        return {"self": url, "accountId": person.account_id, "accountType": "atlassian", "locale": "en_US"} | shape
    url = f"{desk.api}/user?username={person.login}"
    return {"self": url, "name": person.login, "key": f"JIRAUSER{workflow.FIRST_ID + person.id}"} | shape


def project(desk: Desk) -> Document:
    return {
        "self": f"{desk.api}/project/{workflow.PROJECT_ID}",
        "id": workflow.PROJECT_ID,
        "key": KEY,
        "name": workflow.PROJECT_NAME,
        "projectTypeKey": "software",
        "simplified": False,
        "avatarUrls": {},
    }


def issue_type(desk: Desk, name: str) -> Document:
    number = workflow.TYPES[name]
    level = {"Epic": 1, "Sub-task": -1}.get(name, 0)
    return {
        "self": f"{desk.api}/issuetype/{number}",
        "id": number,
        "name": name,
        "description": "",
        "subtask": level == -1,
        "hierarchyLevel": level,
    }


def status(desk: Desk, name: str) -> Document:
    number, category = workflow.STATUSES[name]
    return {
        "self": f"{desk.api}/status/{number}",
        "id": number,
        "name": name,
        "description": "",
        "statusCategory": status_category(desk, category),
    }


def status_category(desk: Desk, name: str) -> Document:
    number, key, colour = workflow.CATEGORIES[name]
    url = f"{desk.api}/statuscategory/{number}"
    return {"self": url, "id": number, "key": key, "colorName": colour, "name": name}


def priority(desk: Desk, name: str) -> Document:
    number = workflow.PRIORITIES[name]
    return {"self": f"{desk.api}/priority/{number}", "id": number, "name": name}


def resolution(desk: Desk) -> Document:
    return {"self": f"{desk.api}/resolution/10000", "id": "10000", "name": "Done", "description": "Work has been done."}


def words(desk: Desk, value: str | Document | None) -> str | Document | None:
    """A text in the form of the version that was asked."""
    return to_document(value) if desk.rich else to_text(value)


def comment(desk: Desk, found: Document) -> Document:
    author = user(desk, by_login(found["author"]))
    ticket = workflow.FIRST_ID + found["ticket"]
    return {
        "self": f"{desk.api}/issue/{ticket}/comment/{workflow.FIRST_ID + found['id']}",
        "id": str(workflow.FIRST_ID + found["id"]),
        "author": author,
        "updateAuthor": author,
        "body": words(desk, found["body"]),
        "created": moment(found["created"]),
        "updated": moment(found.get("updated", found["created"])),
        "jsdPublic": True,
    }


def comments_of(desk: Desk, ticket: Document) -> list[Document]:
    return [found for found in desk.store.all("ticket_comment") if found["ticket"] == ticket["id"]]


def sprint(desk: Desk, found: Document) -> Document:
    dates = {"startDate": found["start"], "endDate": found["end"], "completeDate": found["complete"]}
    return {
        "id": found["id"],
        "self": f"{desk.call.base}/rest/agile/1.0/sprint/{found['id']}",
        "state": found["state"],
        "name": found["name"],
        **{name: stamp.removesuffix("Z") + ".000Z" for name, stamp in dates.items() if stamp},
        "originBoardId": 1,
        "goal": found["goal"],
    }


def issue(desk: Desk, ticket: Document, wanted: list[str] | None = None, *, agile: bool = False) -> Document:
    """A ticket with the fields that are asked for: all of them, or those that a list names."""
    fields = _fields(desk, ticket, agile=agile)
    return {
        "expand": "renderedFields,names,schema,operations,editmeta,changelog,versionedRepresentations",
        "id": str(workflow.FIRST_ID + ticket["id"]),
        "self": f"{desk.api}/issue/{workflow.FIRST_ID + ticket['id']}",
        "key": key_of(ticket),
        "fields": fields if wanted is None else _chosen(fields, wanted),
    }


def _chosen(fields: Document, wanted: list[str]) -> Document:
    excluded = {name[1:] for name in wanted if name.startswith("-")}
    plain = [name for name in wanted if not name.startswith("-")] or ["*all"]
    if "*all" in plain:
        kept = set(fields)
    elif "*navigable" in plain:
        kept = (set(fields) - _NAVIGABLE_ONLY) | set(plain)
    else:
        kept = set(plain)
    return {name: value for name, value in fields.items() if name in kept - excluded}


def _fields(desk: Desk, ticket: Document, *, agile: bool) -> Document:
    sprints = [found for number in ticket["sprints"] if (found := desk.store.get("sprint", number))]
    parent = desk.store.get("ticket", ticket["parent"]) if ticket["parent"] else None
    comments = [comment(desk, found) for found in comments_of(desk, ticket)]
    fields: Document = {
        "summary": ticket["summary"],
        "description": words(desk, ticket["description"]),
        "issuetype": issue_type(desk, ticket["type"]),
        "project": project(desk),
        "status": status(desk, ticket["status"]),
        "priority": priority(desk, ticket["priority"]),
        "assignee": user(desk, by_login(ticket["assignee"])),
        "reporter": user(desk, by_login(ticket["reporter"])),
        "creator": user(desk, by_login(ticket["reporter"])),
        "labels": ticket["labels"],
        "created": moment(ticket["created"]),
        "updated": moment(ticket["updated"]),
        "duedate": ticket["due"],
        "resolution": resolution(desk) if ticket["resolved"] else None,
        "resolutiondate": moment(ticket["resolved"]),
        "components": [],
        "fixVersions": [],
        "versions": [],
        "subtasks": [],
        "issuelinks": [],
        "attachment": [],
        workflow.POINTS_FIELD: ticket["points"],
        workflow.SPRINT_FIELD: [_sprint_field(desk, found) for found in sprints] or None,
        "comment": {"comments": comments, "maxResults": len(comments), "total": len(comments), "startAt": 0},
    }
    if parent is not None:
        fields["parent"] = issue(desk, parent, ["summary", "status", "priority", "issuetype"])
    if agile:
        current = [found for found in sprints if found["state"] != "closed"]
        fields["sprint"] = sprint(desk, current[-1]) if current else None
        fields["closedSprints"] = [sprint(desk, found) for found in sprints if found["state"] == "closed"]
    return fields


def _sprint_field(desk: Desk, found: Document) -> Document | str:
    """Cloud tells a sprint as an object, Data Center as a Java object's words."""
    dates = {"startDate": found["start"], "endDate": found["end"], "completeDate": found["complete"]}
    if desk.cloud:
        shape = sprint(desk, found)
        return {name: shape[name] for name in ("id", "name", "state", *dates, "goal") if name in shape} | {"boardId": 1}
    parts = {"id": found["id"], "rapidViewId": 1, "state": found["state"].upper(), "name": found["name"]}
    parts |= {name: value or "<null>" for name, value in dates.items()} | {"goal": found["goal"]}
    told = ",".join(f"{name}={value}" for name, value in parts.items())
    return f"com.atlassian.greenhopper.service.sprint.Sprint@{found['id']:x}[{told}]"
