"""The answers in words: what a model reads that is not shown the structured part."""

from squidbot.servers.jira import results


def ticket_in_words(ticket: results.TicketDetails) -> str:
    """A ticket, the important first."""
    facts = {
        "type": ticket.type,
        "priority": ticket.priority,
        "assignee": ticket.assignee or "nobody",
        "reporter": ticket.reporter,
        "labels": ", ".join(ticket.labels),
        "parent": ticket.parent,
        "resolution": ticket.resolution,
        "due": ticket.due_date,
        "updated": ticket.updated,
    }
    lines = [
        f"{ticket.ticket} {ticket.summary} ({ticket.status})",
        ticket.url,
        "; ".join(f"{name}: {fact}" for name, fact in facts.items() if fact),
        *([f"\n{ticket.description}"] if ticket.description else []),
        *([f"\n[{ticket.more_comments} older comments]"] if ticket.more_comments else []),
        *(f"\n{comment.author}, {comment.created}:\n{comment.body}" for comment in ticket.comments),
    ]
    return "\n".join(lines)


def tickets_in_words(found: results.Tickets) -> str:
    """One line for each ticket."""
    lines = [_line(ticket) for ticket in found.tickets] or [f"no ticket fits: {found.jql}"]
    return "\n".join([*lines, *(["[there are more: raise the limit, or narrow the search]"] if found.more else [])])


def sprint_in_words(sprint: results.SprintDetails) -> str:
    """A sprint and one line for each of its tickets."""
    counts = ", ".join(f"{count} {name}" for name, count in sprint.by_category.items())
    lines = [
        f"{sprint.name} (sprint {sprint.id}, {sprint.state}, {sprint.start or '?'} to {sprint.end or '?'})",
        *([f"goal: {sprint.goal}"] if sprint.goal else []),
        counts or "no tickets",
        *(_line(ticket) for ticket in sprint.tickets),
        *(["[there are more: raise the limit]"] if sprint.more else []),
    ]
    return "\n".join(lines)


def _line(ticket: results.Ticket) -> str:
    facts = [ticket.status, *([ticket.priority] if ticket.priority else []), ticket.assignee or "nobody"]
    return f"{ticket.ticket} {ticket.summary} ({', '.join(facts)})"
