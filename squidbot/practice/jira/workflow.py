"""The project's fixed parts: types, priorities, statuses, and the ways from one status to the next."""

from dataclasses import dataclass

PROJECT_KEY = "SHOP"
PROJECT_ID = "10000"
PROJECT_NAME = "Tidewater shop"
FIRST_ID = 10_000
"""Jira's ids of tickets are this plus their number in the project."""

SPRINT_FIELD = "customfield_10020"
POINTS_FIELD = "customfield_10016"

CATEGORIES = {
    "To Do": (2, "new", "blue-gray"),
    "In Progress": (4, "indeterminate", "yellow"),
    "Done": (3, "done", "green"),
}
STATUSES = {"To Do": ("10100", "To Do"), "In Progress": ("10101", "In Progress"), "In Review": ("10102", "In Progress")}
STATUSES |= {"Done": ("10103", "Done")}
TYPES = {"Epic": "10200", "Story": "10201", "Task": "10202", "Bug": "10203", "Sub-task": "10204"}
PRIORITIES = {"Highest": "1", "High": "2", "Medium": "3", "Low": "4", "Lowest": "5"}


@dataclass(frozen=True, slots=True)
class Transition:
    """A way from some statuses to another."""

    id: str
    name: str
    sources: tuple[str, ...]
    target: str


TRANSITIONS = (
    Transition("11", "Start work", ("To Do",), "In Progress"),
    Transition("21", "Send to review", ("In Progress",), "In Review"),
    Transition("31", "Send back", ("In Review",), "In Progress"),
    Transition("41", "Finish", ("In Review",), "Done"),
    Transition("51", "Put back", ("In Progress",), "To Do"),
    Transition("61", "Reopen", ("Done",), "To Do"),
)


def transitions_from(status: str) -> list[Transition]:
    return [transition for transition in TRANSITIONS if status in transition.sources]
