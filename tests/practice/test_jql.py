"""The query language of the tracker: what is found, and what is refused in Jira's words."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squidbot.practice.jira.jql import BadQuery, Both, Clause, Function, Negation, Query, parse
from tests.practice.conftest import Asking

pytestmark = pytest.mark.requirement("F-05")


@pytest.fixture
def found(tracker: Asking) -> "Finding":
    return Finding(tracker)


class Finding:
    """Numbers of the tickets that a query finds, or what it is refused with."""

    def __init__(self, tracker: Asking) -> None:
        self._tracker = tracker

    def __call__(self, jql: str, *, by: str = "bea") -> list[int]:
        answer = self._tracker("GET", "/search", params={"jql": jql, "maxResults": 100}, by=by)
        assert answer.status_code == 200, answer.text
        return [int(issue["key"].removeprefix("SHOP-")) for issue in answer.json()["issues"]]

    def refused(self, jql: str) -> str:
        answer = self._tracker("POST", "/search", json={"jql": jql})
        assert answer.status_code == 400, answer.text
        assert answer.json()["errors"] == {}
        (message,) = answer.json()["errorMessages"]
        return str(message)


FOUND = {
    "key = shop-3": [3],
    "key in (SHOP-2, 10001) ORDER BY key": [1, 2],
    "id = 10005": [5],
    "status = 'In Review'": [8],
    "status in (10101, 'in review') order by key asc": [8, 10, 13],
    "statusCategory = Done AND sprint = 2": [15],
    'statusCategory != "Done" AND sprint in openSprints() ORDER BY key': [8, 9, 10, 11, 12, 13, 14],
    "assignee = currentUser() and sprint in openSprints() order by key": [8, 11],
    "assignee in (aiko, 'Dana Kowalski') and resolution = EMPTY order by key": [13, 18],
    "assignee = quinn@tidewater.example": [10],
    "assignee is EMPTY and sprint is not empty order by key": [9, 12],
    "assignee in (quinn, EMPTY) and sprint = 'SHOP Sprint 2' order by key": [9, 10, 12],
    "sprint is empty order by key": [16, 17, 18, 19],
    "sprint not in closedSprints() and type = bug order by key": [10, 11, 14],
    "sprint in futureSprints()": [],
    "labels = design order by key DESC": [19, 14],
    "labels not in (cart, orders, web) and sprint = 2 order by key": [9, 13, 15],
    "type in (Task, 10203) and not status = 'To Do' and sprint = 2 ORDER BY key": [10, 13, 15],
    "priority >= High and resolution is empty order by priority desc, key": [8, 10, 11],
    "priority = Low or priority < Low ORDER BY key": [5, 14, 15],
    'text ~ "sold-out cart"': [11],
    'summary ~ "sold-out" ORDER BY key': [11, 14],
    'description ~ "\\"issue 2\\""': [11],
    'comment ~ "spring sale"': [8],
    "summary !~ cart and labels = cart": [7],
    "created < -20d order by key": [1, 2, 3, 4, 5, 6],
    "created < startOfDay() and updated > -20d and updated <= now() and resolved > -3w order by key": [5, 6, 7, 15],
    "created > startOfMonth() and created > endOfDay()": [],
    "resolved is not empty and resolved < 2100-01-01 and type = Bug": [7],
    "due is empty and key = SHOP-1": [1],
    '"Story Points" >= 8 order by key': [4, 12],
    "reporter = dee && (labels = web || labels = none) order by key": [14, 19],
    "project = 'Tidewater shop' and project = 10000 and ! (key != SHOP-1)": [1],
}


def test_queries_find_what_jira_would(found: Finding) -> None:
    """Agents write JQL from memory; what it means must be what it means at work."""
    assert {jql: found(jql) for jql in FOUND} == FOUND


def test_newest_come_first_unless_an_order_is_asked_for(found: Finding) -> None:
    """An empty query is everything, which only the older search allows."""
    assert found("") == found("ORDER BY key DESC") == list(range(19, 0, -1))
    assert found("assignee is empty or assignee = felix order by assignee, key")[:2] == [3, 14]


REFUSED = {
    "project = NONE": "The value 'NONE' does not exist for the field 'project'.",
    "colour = red": "Field 'colour' does not exist or you do not have permission to view it.",
    "status = Blocked": "The value 'Blocked' does not exist for the field 'status'.",
    "assignee = nobody": "The value 'nobody' does not exist for the field 'assignee'.",
    "key = SHOP-999": "An issue with key 'SHOP-999' does not exist for field 'key'.",
    "sprint = 99": "Sprint with name '99' does not exist or you do not have permission to view it.",
    "sprint in lostSprints()": "Unable to find JQL function 'lostSprints()'.",
    "summary = cart": "The operator '=' is not supported by the 'summary' field.",
    "status > Done": "The operator '>' is not supported by the 'status' field.",
    "assignee is bea": "The operator 'IS' takes EMPTY or NULL for the field 'assignee'.",
    "created > yesterday": "Date value 'yesterday' is invalid.",
    '"Story Points" > many': "'many' is not a number.",
    "project SHOP": "Expecting operator but got 'SHOP'.",
    "project =": "Expecting either a value, list or function before the end of the query.",
    "project = SHOP status = Done": "Expecting either 'OR' or 'AND' but got 'status'. (line 1, character 16)",
    "(project = SHOP": "Expecting ')' before the end of the query.",
    "project in SHOP": "Expecting '(' but got 'SHOP'.",
    "project = SHOP order key": "Expecting 'BY' but got 'key'.",
    "summary ~ 'open": "The character ''' is out of place, or a quoted text has no end. (character 11)",
    "= SHOP": "Expecting a field name but got '='.",
    "not " * 60 + "key = SHOP-1": "more than 50 levels",
}


def test_a_query_that_cannot_be_understood_is_refused_with_its_place(found: Finding) -> None:
    """The message is all that an agent has to mend its query with."""
    for jql, words in REFUSED.items():
        assert words in found.refused(jql), jql


def test_words_in_quotes_are_never_keywords() -> None:
    """A ticket may be called 'and'."""
    assert parse("""summary ~ "AND" or not a in (b, 'c d', f(x, "y"))""") == Query(
        Both(
            (
                Clause("summary", "~", ("AND",)),
                Negation(Clause("a", "IN", ("b", "c d", Function("f", ("x", "y"))))),
            ),
            any=True,
        )
    )


@given(st.text(alphabet=st.sampled_from("ab ='\"()!~<>,|&\\\nANDORINT"), max_size=40))
def test_any_text_is_a_query_or_is_refused(text: str) -> None:
    """Whatever a model makes up, the answer is an answer."""
    with contextlib.suppress(BadQuery):
        assert isinstance(parse(text), Query)
