"""How each tool is announced: its name, its schemas, and honest hints of what it does in Jira."""

from typing import Final

from squidbot.servers.jira import arguments, lists, results, tickets
from squidbot.servers.jira.api import Jira
from squidbot.servers.tools import Tool, changing, reading

INSTRUCTIONS: Final = (
    "Tickets and sprints in Jira. A ticket is named by its key, such as 'SHOP-12', a project by its own, such as 'SHOP'. "
    "Texts are plain: lists with '- ', code between lines of ```, links as they are."
)

TOOLS: Final[tuple[Tool[Jira], ...]] = (
    Tool(
        "create_ticket",
        "Create a ticket",
        "Create a ticket in a project.",
        arguments.CreateTicket,
        results.TicketCreated,
        changing(destructive=False, idempotent=False, open_world=True),
        tickets.create_ticket,
    ),
    Tool(
        "get_ticket",
        "Read a ticket",
        "Read a ticket: status, people, description, and its last comments.",
        arguments.GetTicket,
        results.TicketDetails,
        reading(open_world=True),
        tickets.get_ticket,
    ),
    Tool(
        "update_ticket",
        "Change a ticket",
        "Replace summary, description, type, priority, labels or due date of a ticket. "
        "For its status use change_status, for its assignee assign_ticket.",
        arguments.UpdateTicket,
        results.TicketUpdated,
        changing(destructive=True, idempotent=True, open_world=True),
        tickets.update_ticket,
    ),
    Tool(
        "add_comment",
        "Comment on a ticket",
        "Comment on a ticket.",
        arguments.AddComment,
        results.CommentAdded,
        changing(destructive=False, idempotent=False, open_world=True),
        tickets.add_comment,
    ),
    Tool(
        "change_status",
        "Change a ticket's status",
        "Move a ticket to another status. What cannot be reached in one step is refused, with what can be.",
        arguments.ChangeStatus,
        results.StatusChanged,
        changing(destructive=True, idempotent=False, open_world=True),
        tickets.change_status,
    ),
    Tool(
        "assign_ticket",
        "Assign a ticket",
        "Give a ticket to somebody, by name or mail address, or to nobody.",
        arguments.AssignTicket,
        results.Assigned,
        changing(destructive=True, idempotent=True, open_world=True),
        tickets.assign_ticket,
    ),
    Tool(
        "search_tickets",
        "Search tickets",
        "Find tickets by project, status, type, assignee, label and words, or by a query in JQL.",
        arguments.SearchTickets,
        results.Tickets,
        reading(open_world=True),
        lists.search_tickets,
    ),
    Tool(
        "get_sprint",
        "Read a sprint",
        "Read the sprint that is under way in a project or on a board, or a certain one, with its tickets.",
        arguments.GetSprint,
        results.SprintDetails,
        reading(open_world=True),
        lists.get_sprint,
    ),
)
