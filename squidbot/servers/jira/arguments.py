"""What each tool takes: the schemas that a model fills in."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from squidbot.servers.tools import Arguments, spoken

Ticket = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z][A-Za-z0-9_]*-[0-9]+$", max_length=50, description="Key of the ticket, such as 'SHOP-12'."
    ),
]
Project = Annotated[
    str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=40, description="Key of the project, such as 'SHOP'.")
]
Summary = Annotated[str, Field(pattern=r"^[^\r\n]*\S[^\r\n]*$", max_length=255, description="The title, in one line.")]
Text = Annotated[
    str,
    Field(
        max_length=32_000,
        description="Plain text; lists with '- ', code between lines of ```, and links are shown as such.",
    ),
]
Name = Annotated[str, Field(min_length=1, max_length=255)]
Label = Annotated[str, Field(pattern=r"^\S+$", max_length=255)]
Limit = Annotated[int, Field(ge=1, le=100)]
_WHO = "A name or mail address; 'me' for yourself"


class CreateTicket(Arguments):
    """Arguments of create_ticket."""

    project: Project
    summary: Summary
    description: Text = ""
    type: Name = Field(default="Task", description="Such as 'Task', 'Bug' or 'Story'.")
    priority: Name | None = Field(default=None, description="Such as 'High'.")
    labels: list[Label] = Field(default=[], max_length=50, description="Words without spaces.")
    assignee: Name | None = Field(default=None, description=f"{_WHO}.")
    parent: Ticket | None = Field(default=None, description="Key of the epic or ticket that this one belongs to.")
    due_date: str | None = Field(default=None, pattern=r"^\d{4}-\d\d-\d\d$", description="As in '2026-03-31'.")


class GetTicket(Arguments):
    """Arguments of get_ticket."""

    ticket: Ticket
    comments: int = Field(default=20, ge=0, le=100, description="How many comments at most, the last ones.")


class UpdateTicket(Arguments):
    """Arguments of update_ticket."""

    ticket: Ticket
    summary: Summary | None = Field(default=None, description="The new title, in one line.")
    description: Text | None = Field(default=None, description="The whole new description, in plain text.")
    type: Name | None = Field(default=None, description="Such as 'Bug'.")
    priority: Name | None = Field(default=None, description="Such as 'High'.")
    labels: list[Label] | None = Field(default=None, max_length=50, description="All labels that it is to have.")
    due_date: str | None = Field(default=None, pattern=r"^\d{4}-\d\d-\d\d$", description="As in '2026-03-31'.")

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.model_dump(exclude={"ticket"}, exclude_none=True):
            raise ValueError("nothing to change: give summary, description, type, priority, labels or due_date")
        return self


class AddComment(Arguments):
    """Arguments of add_comment."""

    ticket: Ticket
    body: Annotated[Text, AfterValidator(spoken)] = Field(min_length=1, description="The comment, in plain text.")


class ChangeStatus(Arguments):
    """Arguments of change_status."""

    ticket: Ticket
    status: Name = Field(description="The status to reach, such as 'In Progress', or the name of a transition.")
    resolution: Name | None = Field(default=None, description="Such as 'Done', where the workflow asks for one.")


class AssignTicket(Arguments):
    """Arguments of assign_ticket."""

    ticket: Ticket
    assignee: Name | None = Field(description=f"{_WHO}; null to take the ticket from whoever has it.")


class SearchTickets(Arguments):
    """Arguments of search_tickets."""

    jql: str | None = Field(
        default=None,
        min_length=1,
        max_length=4_000,
        description="A query in Jira's language, instead of the fields below; only project goes with it.",
    )
    project: Project | None = Field(default=None, description="Key of the project, such as 'SHOP'.")
    status: Name | None = Field(default=None, description="Such as 'In Progress'.")
    type: Name | None = Field(default=None, description="Such as 'Bug'.")
    assignee: Name | None = Field(default=None, description=f"{_WHO}, 'none' for tickets of nobody.")
    label: Label | None = Field(default=None, description="One that the tickets have.")
    text: Name | None = Field(default=None, description="Words in the summary, the description or a comment.")
    in_open_sprint: bool = Field(default=False, description="Only tickets of sprints that are under way.")
    limit: Limit = Field(default=20, description="How many at most, the last changed ones first.")

    @model_validator(mode="after")
    def _looks_for_something(self) -> Self:
        given = self.model_dump(exclude={"jql", "limit"}, exclude_defaults=True)
        if self.jql is None and not given:
            raise ValueError("nothing to look for: give jql, or one of project, status, type, assignee, label, text")
        if self.jql is not None and set(given) - {"project"}:
            raise ValueError(f"jql goes only with project: put {', '.join(sorted(given))} into the query")
        return self


class GetSprint(Arguments):
    """Arguments of get_sprint."""

    project: Project | None = Field(default=None, description="Key of the project whose sprint is meant.")
    board: Annotated[int, Field(ge=1)] | None = Field(default=None, description="Number of the board.")
    sprint: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Number of the sprint; default: the one that is under way."
    )
    limit: Limit = Field(default=50, description="How many tickets at most.")

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if self.project is None and self.board is None and self.sprint is None:
            raise ValueError("which sprint: give project or board for the one under way, or sprint for a certain one")
        return self
