"""Tickets: made, read, changed, commented, moved along the workflow."""

from collections.abc import Mapping
from typing import Any

from squidbot.practice import clock
from squidbot.practice.jira import fields, shapes, workflow
from squidbot.practice.jira.adf import to_text
from squidbot.practice.jira.manners import Desk, no_issue, refusal, window
from squidbot.practice.store import Document
from squidbot.practice.web import Answer

_REQUIRED = {
    "project": "valid project is required",
    "issuetype": "Specify an issue type",
    "summary": "You must specify a summary of the issue.",
}


def create_ticket(desk: Desk) -> Answer:
    given = _mapping(desk.body, "fields")
    missing = {name: problem for name, problem in _REQUIRED.items() if given.get(name) is None}
    if missing:
        raise refusal(400, **missing)
    changes = fields.read(desk, given)
    del changes["project"]
    moment = clock.now()
    ticket: Document = {"id": desk.store.new_id("ticket"), "status": "To Do", "description": None, "due": None}
    ticket |= {"reporter": desk.call.person.login, "assignee": None, "priority": "Medium", "labels": [], "sprints": []}
    ticket |= {"points": None, "parent": None, "resolved": None, "created": moment, "updated": moment, **changes}
    desk.store.put("ticket", ticket)
    shape = shapes.issue(desk, ticket, [])
    return Answer({name: shape[name] for name in ("id", "key", "self")}, 201)


def get_ticket(desk: Desk) -> Answer:
    wanted = [name for name in desk.call.query.get("fields", "").split(",") if name]
    shape = shapes.issue(desk, existing(desk), wanted or None)
    if "transitions" in desk.call.query.get("expand", ""):
        shape["transitions"] = _transitions(desk, existing(desk))
    return Answer(shape)


def update_ticket(desk: Desk) -> Answer:
    ticket = existing(desk)
    changes = fields.read(desk, _mapping(desk.body, "fields"))
    changes |= _updates(desk, ticket, _mapping(desk.body, "update"))
    changes.pop("project", None)
    touch(desk, ticket, changes)
    return Answer(status=204)


def delete_ticket(desk: Desk) -> Answer:
    ticket = existing(desk)
    for comment in shapes.comments_of(desk, ticket):
        desk.store.remove("ticket_comment", comment["id"])
    desk.store.remove("ticket", ticket["id"])
    return Answer(status=204)


def assign(desk: Desk) -> Answer:
    """Null, or -1 as Jira's default, is nobody."""
    ticket = existing(desk)
    name = "accountId" if desk.cloud else "name"
    if name not in desk.body:
        raise refusal(400, f"The body needs {name!r}, null for nobody.")
    reference = desk.body[name]
    person = desk.named(reference)
    if person is None and reference not in {None, "-1"}:
        raise refusal(400, assignee=f"User '{reference}' cannot be assigned issues.")
    touch(desk, ticket, {"assignee": person.login if person else None})
    return Answer(status=204)


def list_comments(desk: Desk) -> Answer:
    found = shapes.comments_of(desk, existing(desk))
    if desk.call.query.get("orderBy", "").lstrip("+") == "-created":
        found.reverse()
    return Answer(window(desk, [shapes.comment(desk, comment) for comment in found], "comments"))


def add_comment(desk: Desk) -> Answer:
    ticket = existing(desk)
    comment = _new_comment(desk, ticket, desk.body.get("body"))
    desk.store.put("ticket_comment", comment)
    touch(desk, ticket, {})
    return Answer(shapes.comment(desk, comment), 201)


def get_comment(desk: Desk) -> Answer:
    return Answer(shapes.comment(desk, _existing_comment(desk)))


def update_comment(desk: Desk) -> Answer:
    comment = _existing_comment(desk)
    comment |= {"body": _words(desk, desk.body.get("body")), "updated": clock.now()}
    desk.store.put("ticket_comment", comment)
    return Answer(shapes.comment(desk, comment))


def delete_comment(desk: Desk) -> Answer:
    desk.store.remove("ticket_comment", _existing_comment(desk)["id"])
    return Answer(status=204)


def list_transitions(desk: Desk) -> Answer:
    return Answer({"expand": "transitions", "transitions": _transitions(desk, existing(desk))})


def do_transition(desk: Desk) -> Answer:
    ticket = existing(desk)
    wanted = _mapping(desk.body, "transition").get("id")
    if wanted is None:
        raise refusal(400, "Missing 'transition' identifier")
    for transition in workflow.transitions_from(ticket["status"]):
        if transition.id == str(wanted):
            break
    else:
        raise refusal(400, f"Transition id '{wanted}' is not valid for this issue.")
    # A resolution may come with the transition; the workflow sets the only one there is.
    given = {name: value for name, value in _mapping(desk.body, "fields").items() if name != "resolution"}
    changes = fields.read(desk, given) | _updates(desk, ticket, _mapping(desk.body, "update"))
    resolved = clock.now() if transition.target == "Done" else None
    touch(desk, ticket, changes | {"status": transition.target, "resolved": resolved})
    return Answer(status=204)


def existing(desk: Desk) -> Document:
    """The ticket that the path names."""
    ticket = fields.by_key(desk, desk.call.path["key"])
    if ticket is None:
        raise no_issue()
    return ticket


def touch(desk: Desk, ticket: Document, changes: Document) -> None:
    desk.store.put("ticket", ticket | changes | {"updated": clock.now()})


def _updates(desk: Desk, ticket: Document, given: Mapping[str, Any]) -> Document:
    """Jira's other way of changing: a list of add, remove and set for each field."""
    values: dict[str, Any] = {}
    comments = []
    for name, operations in given.items():
        for operation in operations if isinstance(operations, list) else [None]:
            if not isinstance(operation, dict) or len(operation) != 1:
                raise refusal(400, **{name: "each operation is an object with one of add, remove, set"})
            verb, value = next(iter(operation.items()))
            if name == "comment" and verb == "add":
                body = value.get("body") if isinstance(value, dict) else None
                comments.append(_new_comment(desk, ticket, body))
            elif verb == "set":
                values[name] = value
            elif name == "labels" and verb in {"add", "remove"}:
                values.setdefault(name, ticket["labels"])
                others = [label for label in values[name] if label != value]
                values[name] = [*others, value] if verb == "add" else others
            else:
                raise refusal(400, **{name: f"Field does not support update '{verb}'"})
    changes = fields.read(desk, values)
    for comment in comments:
        desk.store.put("ticket_comment", comment)
    return changes


def _new_comment(desk: Desk, ticket: Document, body: Any) -> Document:
    words = _words(desk, body)
    comment: Document = {"id": desk.store.new_id("ticket_comment"), "ticket": ticket["id"]}
    return comment | {"author": desk.call.person.login, "body": words, "created": clock.now()}


def _words(desk: Desk, body: Any) -> str | Document:
    try:
        words = fields.text(desk, body)
    except fields.BadField as problem:
        raise refusal(400, comment=str(problem)) from None
    if not words or not (to_text(words) or "").strip():
        raise refusal(400, comment="Comment body can not be empty!")
    return words


def _existing_comment(desk: Desk) -> Document:
    ticket = existing(desk)
    for comment in shapes.comments_of(desk, ticket):
        if str(workflow.FIRST_ID + comment["id"]) == desk.call.path["id"]:
            return comment
    raise refusal(404, f"Can not find a comment for the id: {desk.call.path['id']}.")


def _transitions(desk: Desk, ticket: Document) -> list[Document]:
    return [
        {
            "id": transition.id,
            "name": transition.name,
            "to": shapes.status(desk, transition.target),
            "hasScreen": False,
            "isGlobal": False,
            "isInitial": False,
            "isAvailable": True,
            "isConditional": False,
            "isLooped": False,
        }
        for transition in workflow.transitions_from(ticket["status"])
    ]


def _mapping(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = body.get(name)
    if value is not None and not isinstance(value, dict):
        raise refusal(400, f"{name!r} must be an object.")
    return value or {}
