"""The tracker at its edges: who is let in, texts in both forms, what is refused and in which words."""

from base64 import b64encode
from typing import Any

import pytest

from squidbot.practice.jira.adf import to_document, to_text
from tests.practice.conftest import Asking, Practice

pytestmark = pytest.mark.requirement("F-05")

V3 = "/jira/rest/api/3"
DC = "/jira-dc/rest/api/2"
AGILE = "/jira/rest/agile/1.0"


def problem(answer: Any, status: int) -> str:
    """What a refusal says altogether and of each field; fails if it has not Jira's form."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert set(body) == {"errorMessages", "errors"}
    return " ".join([*body["errorMessages"], *(f"{name}: {words}" for name, words in body["errors"].items())])


def basic(name: str, token: str) -> dict[str, str]:
    return {"Authorization": f"Basic {b64encode(f'{name}:{token}'.encode()).decode()}"}


def test_mail_and_token_belong_together(practice: Practice, tracker: Asking) -> None:
    """A token with somebody else's mail is nobody's."""
    mail, token = practice.directions["jira_username"], practice.directions["jira_api_token"]
    assert tracker("GET", "/myself", headers=basic(mail, token)).json()["emailAddress"] == mail
    assert (
        tracker("GET", f"{DC}/myself", headers=basic("squidbot-practice", token)).json()["name"] == "squidbot-practice"
    )
    wrong = [basic(mail, "wrong"), basic("bea@tidewater.example", token), {"Authorization": "Basic !"}]
    for headers in [*wrong, {"Authorization": ""}, {"Authorization": "Bearer wrong"}]:
        for path in ("/myself", f"{AGILE}/board", f"{DC}/issue/SHOP-1"):
            refused = tracker("GET", path, headers=headers)
            assert "not authenticated" in problem(refused, 401)
            assert refused.headers["www-authenticate"].startswith("Basic")


def test_each_jira_says_which_it_is_and_names_people_its_own_way(tracker: Asking) -> None:
    """Data Center has no version 3 and no account ids."""
    assert tracker("GET", "/serverInfo").json()["deploymentType"] == "Cloud"
    assert tracker("GET", f"{DC}/serverInfo").json()["deploymentType"] == "Server"
    assert "no version 3" in problem(tracker("GET", "/jira-dc/rest/api/3/serverInfo"), 404)
    cloud = tracker("GET", f"{V3}/issue/SHOP-8").json()["fields"]
    server = tracker("GET", f"{DC}/issue/SHOP-8").json()["fields"]
    assert "name" not in cloud["assignee"]
    assert server["assignee"]["name"] == "bea"
    assert cloud["customfield_10020"][0]["name"] == "SHOP Sprint 2"
    assert "name=SHOP Sprint 2" in server["customfield_10020"][0]
    assert "This is Data Center" in problem(tracker("GET", f"{DC}/search/jql", params={"jql": "key = SHOP-1"}), 404)


def test_a_text_has_the_form_of_the_version_that_is_asked(tracker: Asking) -> None:
    """What v3 wrote as a document, v2 reads as a text, and the other way round."""
    document = {
        "type": "doc",
        "version": 1,
        "content": [{"type": "paragraph", "content": [{"type": "text", "text": "Hi"}]}],
    }
    tracker("PUT", f"{V3}/issue/SHOP-9", json={"fields": {"description": document}})
    assert tracker("GET", "/issue/SHOP-9").json()["fields"]["description"] == "Hi"
    assert tracker("GET", f"{V3}/issue/SHOP-9").json()["fields"]["description"] == document
    tracker("POST", "/issue/SHOP-9/comment", json={"body": "One\nTwo\n\nThree"})
    (comment,) = tracker("GET", f"{V3}/issue/SHOP-9/comment").json()["comments"]
    assert [block["type"] for block in comment["body"]["content"]] == ["paragraph", "paragraph"]
    made = tracker("POST", f"{V3}/issue/SHOP-9/comment", json={"body": document}).json()
    assert tracker("GET", f"/issue/SHOP-9/comment/{made['id']}").json()["body"] == "Hi"
    newest = tracker("GET", "/issue/SHOP-9/comment", params={"orderBy": "-created", "maxResults": "1"}).json()
    assert ([one["body"] for one in newest["comments"]], newest["total"]) == (["Hi"], 2)


def test_documents_of_every_kind_can_be_read_as_text() -> None:
    """Nothing that somebody wrote may vanish for those who read v2."""
    text = [{"type": "text", "text": "x"}]
    paragraph = {"type": "paragraph", "content": text}
    blocks = [
        {"type": "heading", "attrs": {"level": 2}, "content": text},
        {"type": "bulletList", "content": [{"type": "listItem", "content": [paragraph]}] * 2},
        {"type": "orderedList", "content": [{"type": "listItem", "content": [paragraph]}]},
        {"type": "codeBlock", "content": text},
        {"type": "rule"},
        {"type": "panel", "content": [paragraph]},
        {
            "type": "paragraph",
            "content": [
                {"type": "mention", "attrs": {"text": "@bea"}},
                {"type": "hardBreak"},
                {"type": "inlineCard", "attrs": {"url": "http://127.0.0.1"}},
                {"type": "strange", "content": text},
            ],
        },
    ]
    text_of_all = to_text({"type": "doc", "version": 1, "content": blocks}) or ""
    expected = ["h2. x", "* x\n* x", "# x", "{code}\nx\n{code}", "----", "x", "@bea\nhttp://127.0.0.1x"]
    assert text_of_all.split("\n\n") == expected
    assert to_text(to_document("One\nTwo\n\nThree")) == "One\nTwo\n\nThree"
    assert to_document(None) is None
    assert to_text(None) is None


GOOD = {"project": {"key": "SHOP"}, "issuetype": {"name": "Bug"}, "summary": "x"}
BAD: tuple[tuple[str, str, Any, str], ...] = (
    ("POST", "/issue", {}, "summary: You must specify a summary of the issue."),
    ("POST", "/issue", {"fields": "x"}, "'fields' must be an object."),
    ("POST", "/issue", {"fields": GOOD | {"project": {"key": "NONE"}}}, "project: valid project is required"),
    ("POST", "/issue", {"fields": GOOD | {"issuetype": {"name": "Wish"}}}, "issuetype: Specify a valid issue type"),
    ("POST", "/issue", {"fields": GOOD | {"summary": "a\nb"}}, "summary: The summary is invalid"),
    ("POST", "/issue", {"fields": GOOD | {"summary": "a" * 256}}, "summary: Summary can't exceed 255 characters."),
    ("POST", "/issue", {"fields": GOOD | {"colour": "red"}}, "colour: Field 'colour' cannot be set."),
    ("POST", "/issue", {"fields": GOOD | {"assignee": {"accountId": "nobody"}}}, "User 'nobody' does not exist."),
    ("POST", "/issue", {"fields": GOOD | {"labels": ["a b"]}}, "labels: The label 'a b' contains spaces"),
    ("POST", "/issue", {"fields": GOOD | {"labels": "a"}}, "labels: data was not an array"),
    ("POST", "/issue", {"fields": GOOD | {"duedate": "soon"}}, "duedate: Error parsing date string"),
    ("POST", "/issue", {"fields": GOOD | {"parent": {"key": "SHOP-99"}}}, "parent: Could not find issue"),
    ("POST", "/issue", {"fields": GOOD | {"customfield_10020": 99}}, "Number value expected as the Sprint id."),
    ("POST", "/issue", {"fields": GOOD | {"customfield_10016": "x"}}, "must be a number"),
    ("POST", "/issue", {"fields": GOOD | {"priority": {"name": "x"}}}, "priority: The priority selected is invalid."),
    (
        "POST",
        "/issue",
        {"fields": GOOD | {"description": {"type": "doc"}}},
        "description: Operation value must be a string",
    ),
    ("POST", f"{V3}/issue", {"fields": GOOD | {"description": "x"}}, "must be an Atlassian Document"),
    ("PUT", "/issue/SHOP-9", {"fields": {"status": {"name": "Done"}}}, "status: Field 'status' cannot be set."),
    ("PUT", "/issue/SHOP-9", {"update": {"labels": ["x"]}}, "labels: each operation is an object"),
    ("PUT", "/issue/SHOP-9", {"update": {"summary": [{"add": "x"}]}}, "summary: Field does not support update 'add'"),
    ("PUT", "/issue/SHOP-9/assignee", {}, "The body needs 'accountId'"),
    ("PUT", "/issue/SHOP-9/assignee", {"accountId": "nobody"}, "cannot be assigned issues"),
    ("POST", "/issue/SHOP-9/comment", {"body": " "}, "Comment body can not be empty!"),
    ("POST", "/issue/SHOP-9/comment", {}, "Comment body can not be empty!"),
    ("POST", f"{V3}/issue/SHOP-9/comment", {"body": "x"}, "must be an Atlassian Document"),
    (
        "POST",
        f"{V3}/issue/SHOP-9/comment",
        {"body": {"type": "doc", "version": 1, "content": []}},
        "Comment body can not be empty!",
    ),
    ("POST", "/issue/SHOP-9/transitions", {}, "Missing 'transition' identifier"),
    ("POST", "/issue/SHOP-9/transitions", {"transition": {"id": "41"}}, "Transition id '41' is not valid"),
    ("POST", "/search", {"jql": "project = SHOP", "maxResults": "many"}, "'maxResults' must be a number."),
    ("POST", "/search", {"jql": "project = SHOP", "fields": 5}, "'fields' must be a list of names."),
    ("POST", f"{V3}/search/jql", {"jql": "ORDER BY key"}, "Unbounded JQL queries are not allowed here."),
    ("POST", f"{V3}/search/jql", {"jql": "key = SHOP-1", "nextPageToken": "x"}, "nextPageToken is not one"),
    ("GET", "/user/search", None, "who is looked for?"),
    ("GET", f"{AGILE}/board/1/sprint?state=lost", None, "The state 'lost' is none of active, closed, future."),
    ("POST", f"{AGILE}/sprint", {"name": ""}, "A sprint needs a name"),
    ("POST", f"{AGILE}/sprint/1", {"state": "active"}, "A sprint that is closed cannot become active."),
    ("POST", f"{AGILE}/sprint/1/issue", {"issues": ["SHOP-9"]}, "open or to come"),
    ("POST", f"{AGILE}/sprint/2/issue", {"issues": []}, "'issues' must be a list of keys."),
    ("POST", f"{AGILE}/sprint/2/issue", {"issues": ["SHOP-99"]}, "SHOP-99"),
)


def test_what_cannot_be_taken_is_refused_field_by_field(tracker: Asking) -> None:
    """The errors are what an agent mends its call with; nothing may be half done."""
    before = tracker("GET", "/search", params={"jql": "", "fields": "*all"}).json()
    for method, path, body, words in BAD:
        assert words in problem(tracker(method, path, json=body), 400), (method, path, body)
    assert tracker("GET", "/search", params={"jql": "", "fields": "*all"}).json() == before
    assert "error parsing JSON" in problem(tracker("POST", "/issue", content=b"{"), 400)


MISSING = (
    *("/issue/SHOP-99", "/issue/OTHER-1", "/issue/x", "/issue/1", "/issue/SHOP-9/comment/1", "/project/NONE"),
    *("/project/NONE/statuses", "/user?accountId=nobody", "/nothing", f"{AGILE}/sprint/99", f"{AGILE}/board/9"),
    *("/issue/createmeta/NONE/issuetypes", "/issue/createmeta/SHOP/issuetypes/1", f"{DC}/user?username=nobody"),
)


def test_what_is_not_there_is_not_found(tracker: Asking) -> None:
    """And said so in Jira's form."""
    for path in MISSING:
        assert problem(tracker("GET", path), 404), path


def test_cloud_s_search_goes_from_page_to_page_by_token(tracker: Asking) -> None:
    """It gives only ids unless fields are named, and no total at all."""
    asked: dict[str, Any] = {"jql": "project = SHOP ORDER BY key", "maxResults": 8}
    pages = []
    while True:
        answer = tracker("POST", f"{V3}/search/jql", json=asked).json()
        pages.append([issue["id"] for issue in answer["issues"]])
        if answer["isLast"]:
            break
        asked["nextPageToken"] = answer["nextPageToken"]
    assert [len(page) for page in pages] == [8, 8, 3]
    assert pages[0][0] == "10001"
    assert "total" not in answer
    assert set(answer["issues"][0]) == {"id"}
    count = tracker("POST", f"{V3}/search/approximate-count", json={"jql": "status = Done"}).json()
    assert count == {"count": 8}


def test_fields_are_given_as_they_are_asked_for(tracker: Asking) -> None:
    """A search for summaries must not carry every comment of every ticket."""

    def fields(asked: str) -> set[str]:
        return set(
            tracker("GET", "/search", params={"jql": "key = SHOP-8", "fields": asked}).json()["issues"][0]["fields"]
        )

    assert fields("summary,status") == {"summary", "status"}
    assert "comment" not in fields("")
    assert {"comment", "summary"} <= fields("*all")
    assert "summary" not in fields("*all,-summary")
    assert "comment" in fields("*navigable,comment")
    ticket = tracker("GET", "/issue/shop-8", params={"fields": "summary", "expand": "transitions"}).json()
    assert [one["to"]["name"] for one in ticket["transitions"]] == ["In Progress", "Done"]


def test_a_ticket_takes_everything_that_the_screen_has(tracker: Asking) -> None:
    """By name or by id, as clients differ."""
    bea = tracker("GET", "/user/search", params={"query": "bea"}).json()[0]["accountId"]
    wanted = {
        "project": {"id": "10000"},
        "issuetype": {"id": "10204"},
        "priority": {"id": "1"},
        "summary": "All of it",
        "assignee": {"id": bea},
        "reporter": {"accountId": bea},
        "duedate": "2031-01-02",
        "parent": {"key": "SHOP-8"},
        "customfield_10020": 2,
        "customfield_10016": 3,
    }
    key = tracker("POST", "/issue", json={"fields": wanted}).json()["key"]
    made = tracker("GET", f"/issue/{key}").json()["fields"]
    assert (made["issuetype"]["name"], made["priority"]["name"]) == ("Sub-task", "Highest")
    assert (made["assignee"]["displayName"], made["duedate"]) == ("Bea Okafor", "2031-01-02")
    assert (made["parent"]["key"], made["customfield_10016"]) == ("SHOP-8", 3)
    nothing = {"assignee": None, "duedate": None, "parent": None, "customfield_10020": None, "description": None}
    assert tracker("PUT", f"/issue/{key}", json={"fields": nothing}).status_code == 204
    left = tracker("GET", f"/issue/{key}").json()["fields"]
    assert [left[name] for name in ("assignee", "duedate", "customfield_10020")] == [None, None, None]
    by_account = tracker("GET", "/user/search", params={"accountId": bea}).json()
    assert [one["displayName"] for one in by_account] == ["Bea Okafor"]
    assert tracker("PUT", f"/issue/{key}", json={"fields": {"assignee": {"accountId": None}}}).status_code == 204


def test_the_board_shows_sprints_and_backlog(tracker: Asking) -> None:
    """What the agile pages show, by their own API."""
    assert tracker("GET", f"{AGILE}/board", params={"projectKeyOrId": "NONE"}).json()["values"] == []
    assert tracker("GET", f"{AGILE}/board/1").json()["location"]["projectKey"] == "SHOP"
    assert tracker("GET", f"{AGILE}/board/1/issue").json()["total"] == 19
    backlog = tracker("GET", f"{AGILE}/board/1/backlog").json()
    assert [issue["key"] for issue in backlog["issues"]] == ["SHOP-16", "SHOP-17", "SHOP-18", "SHOP-19"]
    asked = {"jql": "status != Done", "fields": "summary,sprint"}
    sprint = tracker("GET", f"{AGILE}/sprint/2/issue", params=asked).json()
    assert sprint["total"] == 7
    assert sprint["issues"][0]["fields"]["sprint"]["name"] == "SHOP Sprint 2"
    closed = tracker("PUT", f"{AGILE}/sprint/2", json={"state": "closed", "name": "Over"}).json()
    assert (closed["state"], closed["name"]) == ("closed", "Over")
    assert "completeDate" in closed


def test_the_project_tells_what_it_knows(tracker: Asking) -> None:
    """Clients read these once and remember them."""
    assert tracker("GET", f"{V3}/project/search").json()["values"][0]["key"] == "SHOP"
    assert len(tracker("GET", "/project/SHOP/statuses").json()) == 5
    assert [one["key"] for one in tracker("GET", "/statuscategory").json()] == ["new", "indeterminate", "done"]
    names = {one["name"]: one for one in tracker("GET", "/field").json()}
    assert names["Sprint"]["schema"]["custom"].endswith("gh-sprint")
    assert names["Summary"]["schema"] == {"type": "string", "system": "summary"}
    assert tracker("GET", "/issue/createmeta/SHOP/issuetypes/10203").json()["total"] == 9
    assert tracker("DELETE", "/myself").status_code == 405
