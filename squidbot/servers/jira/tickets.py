"""The tools that change one ticket or read it."""

from typing import Any

from squidbot.servers.jira import arguments, people, results
from squidbot.servers.jira.api import Jira
from squidbot.servers.jira.words import ticket_in_words
from squidbot.servers.refusal import Refused
from squidbot.servers.rest import Query, count, objects
from squidbot.servers.tools import Answer, said


async def create_ticket(jira: Jira, asked: arguments.CreateTicket) -> Answer:
    """A new ticket."""
    person = await people.assignable(jira, asked.assignee, project=asked.project) if asked.assignee else None
    fields = {
        "project": {"key": asked.project},
        "issuetype": {"name": asked.type},
        "summary": asked.summary,
        "description": await jira.text(asked.description) if asked.description else None,
        "priority": {"name": asked.priority} if asked.priority else None,
        "labels": asked.labels or None,
        "assignee": people.reference(person) if person else None,
        "parent": {"key": asked.parent} if asked.parent else None,
        "duedate": asked.due_date,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    data = await jira.rest.send("POST", await jira.path("/issue"), {"fields": given})
    key = str(data.get("key")) if isinstance(data, dict) else ""
    created = jira.rest.parsed(
        results.TicketCreated,
        data,
        url=jira.page(key),
        project=asked.project,
        summary=asked.summary,
        assignee=person.display_name if person else None,
    )
    return said(created, f"created {created.ticket} {created.summary!r}: {created.url}")


async def get_ticket(jira: Jira, asked: arguments.GetTicket) -> Answer:
    """A ticket with the last of its comments."""
    data = await jira.rest.get(await _path(jira, asked.ticket), {"fields": results.DETAILED})
    comments, total = await _comments(jira, asked)
    ticket = jira.rest.parsed(
        results.TicketDetails,
        data,
        url=jira.page(asked.ticket),
        comments=comments,
        more_comments=max(0, total - len(comments)),
    )
    return said(ticket, ticket_in_words(ticket))


async def update_ticket(jira: Jira, asked: arguments.UpdateTicket) -> Answer:
    """Other words, another type, priority, labels or date."""
    fields = {
        "summary": asked.summary,
        "description": None if asked.description is None else await jira.text(asked.description),
        "issuetype": {"name": asked.type} if asked.type else None,
        "priority": {"name": asked.priority} if asked.priority else None,
        "labels": asked.labels,
        "duedate": asked.due_date,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    await jira.rest.send("PUT", await _path(jira, asked.ticket), {"fields": given})
    changed = list(asked.model_dump(exclude={"ticket"}, exclude_none=True))
    updated = results.TicketUpdated(ticket=asked.ticket, url=jira.page(asked.ticket), changed=changed)
    return said(updated, f"{asked.ticket}: set {', '.join(changed)}: {updated.url}")


async def add_comment(jira: Jira, asked: arguments.AddComment) -> Answer:
    """A comment."""
    path = await _path(jira, asked.ticket, "/comment")
    comment = jira.rest.parsed(
        results.Comment, await jira.rest.send("POST", path, {"body": await jira.text(asked.body)})
    )
    url = f"{jira.page(asked.ticket)}?focusedCommentId={comment.id}"
    return said(
        results.CommentAdded(ticket=asked.ticket, id=comment.id, url=url), f"commented on {asked.ticket}: {url}"
    )


async def change_status(jira: Jira, asked: arguments.ChangeStatus) -> Answer:
    """Another status, by the transition that leads there."""
    data = await jira.rest.get(await _path(jira, asked.ticket), {"fields": results.LISTED})
    ticket = jira.rest.parsed(results.Ticket, data, url=jira.page(asked.ticket))
    path = await _path(jira, asked.ticket, "/transitions")
    transition = _leading_to(jira, asked.status, await jira.rest.get(path), ticket)
    if transition is not None:
        body: dict[str, Any] = {"transition": {"id": transition.id}}
        body |= {"fields": {"resolution": {"name": asked.resolution}}} if asked.resolution else {}
        await jira.rest.send("POST", path, body)
    changed = results.StatusChanged(
        ticket=ticket.ticket,
        url=ticket.url,
        before=ticket.status,
        status=transition.status if transition else ticket.status,
        changed=transition is not None,
        transition=transition.name if transition else None,
    )
    how = f"is now {changed.status!r}, was {changed.before!r}" if transition else f"is {ticket.status!r} already"
    return said(changed, f"{ticket.ticket} {how}: {ticket.url}")


async def assign_ticket(jira: Jira, asked: arguments.AssignTicket) -> Answer:
    """Somebody else's ticket, or nobody's."""
    path = await _path(jira, asked.ticket, "/assignee")
    if asked.assignee is None:
        person = None
        body: dict[str, Any] = {"accountId" if await jira.is_cloud() else "name": None}
    else:
        person = await people.assignable(jira, asked.assignee, ticket=asked.ticket)
        body = people.reference(person)
    await jira.rest.send("PUT", path, body)
    name = person.display_name if person else None
    assigned = results.Assigned(ticket=asked.ticket, url=jira.page(asked.ticket), assignee=name)
    return said(assigned, f"{asked.ticket} is assigned to {name or 'nobody'}: {assigned.url}")


async def _path(jira: Jira, ticket: str, rest: str = "") -> str:
    return await jira.path(f"/issue/{ticket}{rest}")


async def _comments(jira: Jira, asked: arguments.GetTicket) -> tuple[list[results.Comment], int]:
    """The last ones, in the order in which they were written, and how many there are in all."""
    query: Query = {"orderBy": "-created", "maxResults": asked.comments}
    data = await jira.rest.get(await _path(jira, asked.ticket, "/comment"), query)
    comments = [jira.rest.parsed(results.Comment, item) for item in objects(data, "comments")][: asked.comments]
    total = count(data.get("total")) if isinstance(data, dict) else 0
    return sorted(comments, key=lambda comment: comment.created or ""), total


def _leading_to(jira: Jira, wanted: str, data: Any, ticket: results.Ticket) -> results.Transition | None:
    """By the status it leads to, else by its own name; None if the ticket is there already."""
    possible = [jira.rest.parsed(results.Transition, item) for item in objects(data, "transitions")]
    name = wanted.strip().lower()
    for transition in possible:
        if transition.status.lower() == name:
            return transition
    if ticket.status.lower() == name:
        return None
    for transition in possible:
        if transition.name.lower() == name:
            return transition
    ways = ", ".join(f"{way.status!r} (by {way.name!r})" for way in possible) or "none that you may choose"
    raise Refused(
        f"{ticket.ticket} is {ticket.status!r}, and {wanted!r} cannot be reached from there; possible: {ways}"
    )
