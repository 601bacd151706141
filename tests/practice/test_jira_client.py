"""The tracker as the `jira` package meets it, as Cloud and as Data Center."""

from collections.abc import Callable, Iterator

import pytest
from jira import JIRA, JIRAError

from tests.practice.conftest import Practice

pytestmark = pytest.mark.requirement("F-05")

As = Callable[[str], JIRA]


@pytest.fixture(params=["jira_url", "jira_data_center_url"], ids=["cloud", "data-center"])
def acting(practice: Practice, request: pytest.FixtureRequest) -> Iterator[As]:
    """The client with somebody's mail and token."""
    opened: list[JIRA] = []

    def act(login: str) -> JIRA:
        mail = practice.directions["people"][login]["email"]
        token = practice.directions["tokens"][login]
        client = JIRA(practice.directions[request.param], basic_auth=(mail, token), max_retries=0, timeout=30)
        opened.append(client)
        return client

    yield act
    for client in opened:
        client.close()  # type: ignore[no-untyped-call]


def keys(client: JIRA, jql: str) -> list[str]:
    return [issue.key for issue in client.search_issues(jql)]


def test_it_says_which_jira_it_is(acting: As) -> None:
    """The two kinds name people differently, and a client has to know."""
    client = acting("priya")
    me = client.myself()
    assert me["displayName"] == "Priya Nair"
    assert ("accountId" in me, "name" in me) in {(True, False), (False, True)}
    assert (client.deploymentType == "Cloud") == ("accountId" in me)
    assert [project.key for project in client.projects()] == ["SHOP"]
    assert client.project("SHOP").name == "Tidewater shop"
    assert {kind.name for kind in client.issue_types()} >= {"Story", "Bug"}
    assert len(client.priorities()) == 5
    assert [status.name for status in client.statuses()] == ["To Do", "In Progress", "In Review", "Done"]
    assert [resolution.name for resolution in client.resolutions()] == ["Done"]
    assert client.project_components("SHOP") == client.project_versions("SHOP") == []


def test_a_ticket_lives_from_its_idea_to_its_end(acting: As) -> None:
    """Every step that the roles take with a ticket, along the workflow and not beside it."""
    client = acting("priya")
    ticket = client.create_issue(
        project="SHOP",
        summary="Gift wrapping",
        issuetype="Story",
        description="Paper.\n\nAnd a bow.",
        labels=["gifts"],
        priority={"name": "High"},
    )
    assert ticket.key == "SHOP-20"
    assert (ticket.fields.status.name, ticket.fields.reporter.displayName) == ("To Do", "Priya Nair")
    assert ticket.fields.description == "Paper.\n\nAnd a bow."
    assert client.assign_issue(ticket, "bea")
    ticket.update(summary="Gift wrapping, red or blue", update={"labels": [{"add": "paper"}, {"remove": "gifts"}]})
    assert [one["name"] for one in client.transitions(ticket)] == ["Start work"]
    with pytest.raises(JIRAError, match="not valid for this issue"):
        client.transition_issue(ticket, "41")
    for name in ("Start work", "Send to review", "Finish"):
        client.transition_issue(ticket, name, comment=f"{name}!")
    done = client.issue("SHOP-20")
    assert done.fields.summary == "Gift wrapping, red or blue"
    assert (str(done.fields.assignee), done.fields.labels) == ("Bea Okafor", ["paper"])
    assert (done.fields.status.name, done.fields.status.statusCategory.key) == ("Done", "done")
    assert str(done.fields.resolution) == "Done"
    assert [comment.body for comment in client.comments(done)] == ["Start work!", "Send to review!", "Finish!"]
    client.transition_issue(done, "Reopen")
    assert client.issue("SHOP-20").fields.resolution is None
    assert client.assign_issue(done, None)
    assert client.issue("SHOP-20").fields.assignee is None
    done.delete()  # type: ignore[no-untyped-call]
    with pytest.raises(JIRAError, match="does not exist"):
        client.issue("SHOP-20")


def test_comments_are_written_changed_and_removed(acting: As) -> None:
    """A comment is where roles talk to each other."""
    client = acting("sol")
    comment = client.add_comment("SHOP-9", "Rank by prefix first.")
    assert comment.author.displayName == "Sol Marchetti"
    comment.update(body="Rank by prefix, then by length.")
    assert client.comment("SHOP-9", comment.id).body == "Rank by prefix, then by length."
    comment.delete()
    assert client.comments("SHOP-9") == []


def test_people_are_found_by_a_part_of_their_name(acting: As) -> None:
    """An assignee is looked up before they are assigned."""
    client = acting("priya")
    if client.deploymentType == "Cloud":
        assert [one.displayName for one in client.search_users(query="kowal")] == ["Dana Kowalski"]
        found = client.search_assignable_users_for_issues(query="aiko@", project="SHOP")
    else:
        assert [one.displayName for one in client.search_users("kowal")] == ["Dana Kowalski"]
        found = client.search_assignable_users_for_issues("aiko@", project="SHOP")
    assert [one.displayName for one in found] == ["Aiko Tanaka"]
    assert client.user(found[0].accountId if client.deploymentType == "Cloud" else "aiko").displayName == "Aiko Tanaka"


def test_the_board_has_a_sprint_with_dates_and_tickets(acting: As) -> None:
    """get_sprint tells a project manager how far the team is."""
    client = acting("priya")
    (board,) = client.boards(projectKeyOrID="SHOP")
    assert [sprint.state for sprint in client.sprints(board.id)] == ["closed", "active", "future"]
    (active,) = client.sprints(board.id, state="active")
    assert active.startDate < active.endDate
    assert client.sprint(active.id).goal == "Discounts, and a cart that can be trusted"
    assert len(keys(client, f"sprint = {active.id}")) == 8
    assert len(keys(client, "sprint in closedSprints()")) == 7
    client.add_issues_to_sprint(active.id, ["SHOP-16", "SHOP-1"])
    assert len(keys(client, "sprint in openSprints()")) == 10
    assert "SHOP-1" in keys(client, "sprint in closedSprints()")
    client.move_to_backlog(["SHOP-16"])
    assert len(keys(client, "sprint in openSprints()")) == 9
    new = client.create_sprint("Next", board.id)
    new.update(state="active")
    assert client.sprint(new.id).state == "active"


def test_what_can_be_made_is_told(acting: As) -> None:
    """A form is filled from it; agents, too, ask before they guess."""
    client = acting("quinn")
    kinds = client.project_issue_types("SHOP") if client.deploymentType != "Cloud" else client.issue_types()
    assert "Bug" in {kind.name for kind in kinds}
    if client.deploymentType == "Cloud":
        meta = client.createmeta("SHOP", expand="projects.issuetypes.fields")
        assert meta["projects"][0]["issuetypes"][0]["fields"]["summary"]["required"]
        assert client.createmeta("ELSE")["projects"] == []
    else:
        bug = next(kind for kind in kinds if kind.name == "Bug")
        assert "summary" in {field.fieldId for field in client.project_issue_fields("SHOP", bug.id)}
    assert "labels" in client.editmeta("SHOP-1")["fields"]


def test_searching_follows_every_page(acting: As) -> None:
    """Cloud gives a token, Data Center a total; either way nothing may be lost."""
    client = acting("priya")
    for number in range(6):
        client.create_issue(project="SHOP", summary=f"Many {number}", issuetype="Task")
    assert len(client.search_issues("project = SHOP", maxResults=False)) == 25
    assert len(client.search_issues("project = SHOP", maxResults=3)) == 3
    first = client.search_issues("project = SHOP ORDER BY key ASC", maxResults=2, fields="summary")
    assert [issue.key for issue in first] == ["SHOP-1", "SHOP-2"]
    assert not hasattr(first[0].fields, "status")
