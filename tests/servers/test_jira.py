"""The jira server's eight tools on the practice tracker, as the cloud and as a data center."""

from collections.abc import AsyncIterator
from typing import Any

import jsonschema
import pytest
from mcp import Client

from tests.practice.conftest import Practice
from tests.servers.asking import done, on_jira, refused, told

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F-03")]

READING = {"get_ticket", "search_tickets", "get_sprint"}
CHANGING = {"create_ticket", "update_ticket", "add_comment", "change_status", "assign_ticket"}
CALLS: dict[str, dict[str, Any]] = {
    "create_ticket": {"project": "SHOP", "summary": "x"},
    "get_ticket": {"ticket": "SHOP-1"},
    "update_ticket": {"ticket": "SHOP-1", "summary": "x"},
    "add_comment": {"ticket": "SHOP-1", "body": "x"},
    "change_status": {"ticket": "SHOP-1", "status": "Done"},
    "assign_ticket": {"ticket": "SHOP-1", "assignee": "bea"},
    "search_tickets": {"project": "SHOP"},
    "get_sprint": {"project": "SHOP"},
}
TEXT = """Two mugs, one price.
See https://tidewater.example/mugs and [the plan](https://tidewater.example/plan).

- white
- blue

```python
total = 2 * price
```"""


@pytest.fixture(params=["jira_url", "jira_data_center_url"])
async def desk(practice: Practice, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """Both kinds of Jira: texts as documents and people by account id, or plain texts and people by name."""
    mail = practice.directions["jira_username"]
    async with on_jira(practice.directions[request.param], username=mail) as client:
        yield client


@pytest.fixture
async def cloud(practice: Practice) -> AsyncIterator[Client]:
    async with on_jira(practice.directions["jira_url"]) as client:
        yield client


async def made(client: Client, **more: Any) -> str:
    created = await done(client, "create_ticket", project="SHOP", summary="Mugs", **more)
    return str(created["ticket"])


async def test_every_tool_says_what_it_takes_and_gives_and_whether_it_changes_anything(cloud: Client) -> None:
    """Clients decide by these whether to ask a person first."""
    tools = {tool.name: tool for tool in (await cloud.list_tools()).tools}
    assert set(tools) == READING | CHANGING
    for tool in tools.values():
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema
        assert tool.annotations
        assert tool.annotations.open_world_hint
        assert tool.annotations.read_only_hint == (tool.name in READING)
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)


async def test_what_is_not_there_is_said_to_be_missing(desk: Client) -> None:
    """A ticket, a project and a sprint are each told apart from an empty one."""
    for tool in ("get_ticket", "update_ticket", "add_comment", "change_status"):
        words = await refused(desk, tool, **CALLS[tool] | {"ticket": "SHOP-999"})
        assert "Issue does not exist or you do not have permission to see it" in words
    assert "Issue does not exist" in await refused(desk, "assign_ticket", ticket="SHOP-999", assignee=None)
    assert "project" in await refused(desk, "create_ticket", project="OTHER", summary="x")
    assert "has no board with sprints" in await refused(desk, "get_sprint", project="OTHER")
    assert "Sprint does not exist" in await refused(desk, "get_sprint", sprint=99)
    assert "no board 99" in await refused(desk, "get_sprint", board=99)


async def test_wrong_credentials_are_named_by_their_variables_and_never_shown(practice: Practice) -> None:
    """Neither the token nor what it is sent as."""
    url = practice.directions["jira_url"]
    for username, variables in (
        ("bea@tidewater.example", "JIRA_USERNAME and JIRA_API_TOKEN"),
        (None, "JIRA_PERSONAL_TOKEN"),
    ):
        async with on_jira(url, "stolen-token-1234", username=username) as client:
            for tool, arguments in CALLS.items():
                words = await refused(client, tool, **arguments)
                assert "Jira does not accept the credentials" in words
                assert f"check {variables}" in words
                assert "stolen" not in words


async def test_a_ticket_is_created_with_all_that_is_given_and_read_again(desk: Client) -> None:
    """The text goes through the form of each Jira, and comes back as it was."""
    key = await made(
        desk,
        description=TEXT,
        type="Bug",
        priority="High",
        labels=["mugs", "price"],
        assignee="Bea Okafor",
        due_date="2026-03-31",
    )
    ticket = await done(desk, "get_ticket", ticket=key)
    assert ticket["description"] == TEXT
    expected = {"type": "Bug", "priority": "High", "labels": ["mugs", "price"], "assignee": "Bea Okafor"}
    expected |= {"status": "To Do", "due_date": "2026-03-31", "summary": "Mugs", "reporter": "Squidbot Practice"}
    assert {name: ticket[name] for name in expected} == expected
    assert ticket["url"].endswith(f"/browse/{key}")
    words = await told(desk, "get_ticket", ticket=key)
    for part in (f"{key} Mugs (To Do)", "priority: High", "labels: mugs, price", "- white"):
        assert part in words


async def test_a_ticket_that_cannot_be_created_says_which_field_is_wrong(desk: Client) -> None:
    """The next try needs no guess."""
    assert "issuetype" in await refused(desk, "create_ticket", project="SHOP", summary="x", type="Wish")
    assert "priority" in await refused(desk, "create_ticket", project="SHOP", summary="x", priority="Soon")
    nobody = await refused(desk, "create_ticket", project="SHOP", summary="x", assignee="Nemo")
    assert "nobody who can be chosen here is called 'Nemo'" in nobody
    found = await done(desk, "search_tickets", jql='summary ~ "x"')
    assert found["tickets"] == []


async def test_a_ticket_is_changed_in_just_what_is_given(desk: Client) -> None:
    """What is left out stays as it is; an empty text or list is given, too."""
    key = await made(desk, description="first", labels=["mugs"], priority="Low")
    changed = await done(desk, "update_ticket", ticket=key, summary="Cups", description="second", due_date="2026-04-01")
    assert changed["changed"] == ["summary", "description", "due_date"]
    await done(desk, "update_ticket", ticket=key, labels=[], type="Story", priority="Highest")
    ticket = await done(desk, "get_ticket", ticket=key)
    assert (ticket["summary"], ticket["description"], ticket["labels"]) == ("Cups", "second", [])
    assert (ticket["type"], ticket["priority"], ticket["due_date"]) == ("Story", "Highest", "2026-04-01")
    assert "priority" in await refused(desk, "update_ticket", ticket=key, priority="Soon")


async def test_comments_come_back_the_last_ones_in_their_order(desk: Client) -> None:
    """The end of a discussion is what counts, and it is read from top to bottom."""
    key = await made(desk)
    for number in range(3):
        comment = await done(desk, "add_comment", ticket=key, body=f"- number {number}")
        assert comment["url"].endswith(f"/browse/{key}?focusedCommentId={comment['id']}")
    ticket = await done(desk, "get_ticket", ticket=key, comments=2)
    assert {comment["body"] for comment in ticket["comments"]} == {"- number 1", "- number 2"}
    assert ticket["more_comments"] == 1
    assert "[1 older comments]" in await told(desk, "get_ticket", ticket=key, comments=2)
    assert (await done(desk, "get_ticket", ticket=key, comments=0))["comments"] == []


async def test_a_status_is_changed_by_the_transition_that_leads_there(desk: Client) -> None:
    """By the status or by the transition's name, in any case of letters, and once is enough."""
    key = await made(desk)
    changed = await done(desk, "change_status", ticket=key, status="in progress")
    assert (changed["before"], changed["status"], changed["transition"]) == ("To Do", "In Progress", "Start work")
    again = await done(desk, "change_status", ticket=key, status="In Progress")
    assert (again["changed"], again["transition"]) == (False, None)
    assert "is 'In Progress' already" in await told(desk, "change_status", ticket=key, status="In Progress")
    assert (await done(desk, "change_status", ticket=key, status="Send to review"))["status"] == "In Review"
    assert (await done(desk, "change_status", ticket=key, status="Done", resolution="Done"))["changed"]
    ticket = await done(desk, "get_ticket", ticket=key)
    assert (ticket["status"], ticket["status_category"], ticket["resolution"]) == ("Done", "Done", "Done")


async def test_a_status_that_cannot_be_reached_is_refused_with_those_that_can(desk: Client) -> None:
    """The workflow decides, and the message shows the way."""
    key = await made(desk)
    words = await refused(desk, "change_status", ticket=key, status="Done")
    assert f"{key} is 'To Do', and 'Done' cannot be reached from there" in words
    assert "possible: 'In Progress' (by 'Start work')" in words
    assert (await done(desk, "get_ticket", ticket=key))["status"] == "To Do"


async def test_a_ticket_is_assigned_by_name_mail_or_me_and_to_nobody(desk: Client) -> None:
    """However people are called, the right one gets it."""
    key = await made(desk)
    for who, name in (
        ("Tomas Lindqvist", "Tomas Lindqvist"),
        ("quinn@tidewater.example", "Quinn Alvarez"),
        ("bea", "Bea Okafor"),
        ("me", "Squidbot Practice"),
        (None, None),
    ):
        assert (await done(desk, "assign_ticket", ticket=key, assignee=who))["assignee"] == name
        assert (await done(desk, "get_ticket", ticket=key))["assignee"] == name


async def test_a_name_that_several_have_is_refused_with_the_candidates(desk: Client) -> None:
    """A guess would be somebody else's work."""
    key = await made(desk)
    words = await refused(desk, "assign_ticket", ticket=key, assignee="tidewater.example")
    assert "may be one of several people" in words
    assert "Bea Okafor <bea@tidewater.example>, id " in words
    assert "nobody who can be chosen" in await refused(desk, "assign_ticket", ticket=key, assignee="Nemo")
    assert (await done(desk, "get_ticket", ticket=key))["assignee"] is None


async def test_tickets_are_found_by_simple_fields(desk: Client) -> None:
    """Most searches need no query language."""
    key = await made(desk, type="Bug", labels=["rare"], assignee="bea", description='A "strange" word: flotsam')
    for fields in (
        {"label": "rare"},
        {"text": "flotsam", "project": "SHOP"},
        {"assignee": "Bea Okafor", "label": "rare"},
        {"status": "To Do", "type": "Bug", "label": "rare"},
    ):
        found = await done(desk, "search_tickets", **fields)
        assert [ticket["ticket"] for ticket in found["tickets"]] == [key], fields
    nobody = await done(desk, "search_tickets", project="SHOP", assignee="none")
    assert nobody["tickets"]
    assert all(ticket["assignee"] is None for ticket in nobody["tickets"])
    assert (await done(desk, "search_tickets", assignee="me"))["tickets"] == []
    sprint = await done(desk, "get_sprint", project="SHOP")
    under_way = await done(desk, "search_tickets", in_open_sprint=True, limit=100)
    assert {ticket["ticket"] for ticket in under_way["tickets"]} == {ticket["ticket"] for ticket in sprint["tickets"]}
    assert "no ticket fits" in await told(desk, "search_tickets", label="never")


async def test_a_query_is_made_as_it_is_and_pages_are_followed_to_the_limit(desk: Client) -> None:
    """Cloud and data center count their pages differently, and nobody sees it."""
    everything = await done(desk, "search_tickets", jql="project = SHOP ORDER BY key", limit=100)
    assert not everything["more"]
    some = await done(desk, "search_tickets", jql="project = SHOP ORDER BY key", limit=2)
    assert some["more"]
    assert some["tickets"] == everything["tickets"][:2]
    assert "there are more" in await told(desk, "search_tickets", project="SHOP", limit=2)
    assert "Jira refuses this with status 400" in await refused(desk, "search_tickets", jql="project = = SHOP")


async def test_a_query_with_a_project_stays_in_it(desk: Client) -> None:
    """A grant for one project would be one for all that the account can see."""
    found = await done(desk, "search_tickets", project="SHOP", jql='status = "To Do" ORDER BY key ASC')
    assert found["jql"] == 'project = "SHOP" AND (status = "To Do") ORDER BY key ASC'
    assert found["tickets"]
    words = await refused(desk, "search_tickets", project="OTHER", jql="key = SHOP-1")
    assert "'OTHER' does not exist for the field 'project'" in words
    words = await refused(desk, "search_tickets", project="OTHER", jql="key = X-1) OR (project = SHOP")
    assert "brackets" in words


async def test_a_sprint_is_read_by_project_board_or_number(desk: Client) -> None:
    """Whoever asks knows one of the three."""
    sprint = await done(desk, "get_sprint", project="SHOP")
    assert sprint["state"] == "active"
    assert sprint["start"]
    assert sprint["end"]
    assert sum(sprint["by_category"].values()) == len(sprint["tickets"]) == 8
    assert await done(desk, "get_sprint", board=sprint["board"]) == sprint
    assert await done(desk, "get_sprint", sprint=sprint["id"], project="SHOP", board=1) == sprint
    short = await done(desk, "get_sprint", sprint=sprint["id"], limit=3)
    assert (len(short["tickets"]), short["more"]) == (3, True)
    assert "is of board 1, not of board 2" in await refused(desk, "get_sprint", sprint=sprint["id"], board=2)
    words = await told(desk, "get_sprint", project="SHOP")
    assert words.startswith(f"{sprint['name']} (sprint {sprint['id']}, active, ")


async def test_the_version_can_be_given_where_the_server_does_not_tell_it(practice: Practice) -> None:
    """Some installations hide what they are."""
    async with on_jira(practice.directions["jira_data_center_url"], version="2") as client:
        key = await made(client, description="plain")
        assert (await done(client, "get_ticket", ticket=key))["description"] == "plain"
    async with on_jira(practice.directions["jira_data_center_url"], version="3") as client:
        assert "There is no version 3" in await refused(client, "get_ticket", ticket=key)


async def test_arguments_that_do_not_fit_are_named_without_asking_jira() -> None:
    """All that can be known here is said here."""
    async with on_jira("http://127.0.0.1:1") as client:
        for tool, bad, words in (
            ("get_ticket", {"ticket": "../1"}, "'ticket'"),
            ("get_ticket", {"ticket": "SHOP-1/comment"}, "'ticket'"),
            ("create_ticket", {"summary": "one\ntwo"}, "'summary'"),
            ("create_ticket", {"labels": ["two words"]}, "'labels.0'"),
            ("create_ticket", {"due_date": "tomorrow"}, "'due_date'"),
            ("create_ticket", {"asignee": "bea"}, "did you mean 'assignee'?"),
            ("update_ticket", {"summary": None}, "nothing to change"),
            ("add_comment", {"body": ""}, "'body'"),
            ("add_comment", {"body": " \n"}, "'body': say something: it is blank"),
            ("change_status", {"status": ""}, "'status'"),
            ("assign_ticket", {"assignee": ""}, "'assignee'"),
            ("search_tickets", {"project": None}, "nothing to look for"),
            ("search_tickets", {"jql": "x", "label": "y"}, "jql goes only with project: put label, project into"),
            ("get_sprint", {"project": None}, "which sprint"),
        ):
            assert words in await refused(client, tool, **CALLS[tool] | bad)
