"""What each tool gives: small results, filled straight from Jira's answers."""

from typing import Annotated, Any, Final

from pydantic import AliasPath, BeforeValidator, ConfigDict, Field

from squidbot.servers import tools
from squidbot.servers.jira.document import to_text
from squidbot.servers.rest import cut

_MAX_TEXT: Final = 20_000
_MAX_REMARK: Final = 4_000


class Result(tools.Result):
    """Made from Jira's JSON by the aliases, or by the names of its fields."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)


def _of(*path: str) -> Any:
    """A field of a ticket that may be missing or null."""
    return Field(default=None, validation_alias=AliasPath("fields", *path))


Text = Annotated[str, BeforeValidator(lambda value: cut(to_text(value), _MAX_TEXT))]
Remark = Annotated[str, BeforeValidator(lambda value: cut(to_text(value), _MAX_REMARK))]

LISTED: Final = "summary,status,issuetype,assignee,priority,updated"
"""The fields of `Ticket`, by Jira's names."""
DETAILED: Final = f"{LISTED},reporter,labels,parent,created,duedate,resolution,description"
"""The fields of `TicketDetails`."""


class Ticket(Result):
    """A ticket in short."""

    ticket: str = Field(validation_alias="key")
    url: str
    summary: str = Field(validation_alias=AliasPath("fields", "summary"))
    status: str = Field(validation_alias=AliasPath("fields", "status", "name"))
    status_category: str | None = _of("status", "statusCategory", "name")
    type: str | None = _of("issuetype", "name")
    assignee: str | None = _of("assignee", "displayName")
    priority: str | None = _of("priority", "name")
    updated: str | None = _of("updated")


class Comment(Result):
    """A comment on a ticket."""

    id: str
    author: str | None = Field(default=None, validation_alias=AliasPath("author", "displayName"))
    created: str | None = None
    body: Remark


class TicketDetails(Ticket):
    """What get_ticket answers."""

    description: Text = Field(default="", validation_alias=AliasPath("fields", "description"))
    reporter: str | None = _of("reporter", "displayName")
    labels: Annotated[list[str], BeforeValidator(lambda labels: labels or [])] = Field(
        default=[], validation_alias=AliasPath("fields", "labels")
    )
    parent: str | None = _of("parent", "key")
    resolution: str | None = _of("resolution", "name")
    due_date: str | None = _of("duedate")
    created: str | None = _of("created")
    comments: list[Comment] = Field(default=[], description="The last ones, the oldest of them first.")
    more_comments: int = Field(default=0, description="How many older comments there are.")


class TicketCreated(Result):
    """What create_ticket answers."""

    ticket: str = Field(validation_alias="key")
    url: str
    project: str
    summary: str
    assignee: str | None


class TicketUpdated(Result):
    """What update_ticket answers."""

    ticket: str
    url: str
    changed: list[str] = Field(description="What was set.")


class CommentAdded(Result):
    """What add_comment answers."""

    ticket: str
    id: str
    url: str


class StatusChanged(Result):
    """What change_status answers."""

    ticket: str
    url: str
    before: str = Field(description="The status that it had.")
    status: str = Field(description="The status that it has now.")
    changed: bool = Field(description="False if it had that status already.")
    transition: str | None = Field(description="Name of the transition that was made.")


class Assigned(Result):
    """What assign_ticket answers."""

    ticket: str
    url: str
    assignee: str | None = Field(description="Who has it now; null for nobody.")


class Tickets(Result):
    """What search_tickets answers."""

    tickets: list[Ticket]
    more: bool = Field(description="True if there are more than these.")
    jql: str = Field(description="The query that was made.")


class Sprint(Result):
    """A sprint of a board."""

    id: int
    name: str
    state: str = Field(description="active, future or closed.")
    goal: str | None = None
    start: str | None = Field(default=None, validation_alias="startDate")
    end: str | None = Field(default=None, validation_alias="endDate")
    completed: str | None = Field(default=None, validation_alias="completeDate")
    board: int | None = Field(default=None, validation_alias="originBoardId")


class SprintDetails(Sprint):
    """What get_sprint answers."""

    tickets: list[Ticket]
    more: bool = Field(description="True if it has more tickets than these.")
    by_category: dict[str, int] = Field(description="How many of these tickets are to do, in progress, done.")


class Person(Result):
    """Somebody who can be assigned: by an account id in the cloud, by a name in a data center."""

    account_id: str | None = Field(default=None, validation_alias="accountId")
    name: str | None = None
    display_name: str = Field(default="", validation_alias="displayName")
    mail: str | None = Field(default=None, validation_alias="emailAddress")


class Transition(Result):
    """A way from a ticket's status to another."""

    id: str
    name: str
    status: str = Field(validation_alias=AliasPath("to", "name"))
