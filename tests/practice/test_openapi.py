"""The forge's answers, and its clients' requests, judged by GitHub's own OpenAPI document."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.fixtures.openapi import judge_of_github
from tests.practice.conftest import Asking, Practice

pytestmark = [pytest.mark.peers, pytest.mark.requirement("F-05")]

REPOSITORY = "/repos/{owner}/{repo}"


Judged = Callable[..., Any]


@pytest.fixture
def judged(forge: Asking) -> Judged:
    """Asks by a path of the document, has request and answer judged, and gives back the body."""
    judge = judge_of_github()

    def ask(method: str, template: str, **options: Any) -> Any:
        values = {"owner": "tidewater", "repo": "shop", **options.pop("path", {})}
        answer = forge(method, template.format(**values), **options)
        judge.judge(template, answer)
        return answer.json() if answer.content else None

    return ask


READ: tuple[tuple[str, dict[str, Any], dict[str, str]], ...] = (
    ("/user", {}, {}),
    ("/users/{username}", {"username": "bea"}, {}),
    ("/rate_limit", {}, {}),
    (REPOSITORY, {}, {}),
    (f"{REPOSITORY}/branches", {}, {}),
    (f"{REPOSITORY}/branches/{{branch}}", {"branch": "main"}, {}),
    (f"{REPOSITORY}/git/ref/{{ref}}", {"ref": "heads/main"}, {}),
    (f"{REPOSITORY}/git/matching-refs/{{ref}}", {"ref": "heads/f"}, {}),
    (f"{REPOSITORY}/commits", {}, {}),
    (f"{REPOSITORY}/commits/{{ref}}", {"ref": "main"}, {}),
    (f"{REPOSITORY}/commits/{{ref}}/status", {"ref": "main"}, {}),
    (f"{REPOSITORY}/compare/{{basehead}}", {"basehead": "main...fix/cart-quantity"}, {}),
    (f"{REPOSITORY}/contents/{{path}}", {"path": "README.md"}, {}),
    (f"{REPOSITORY}/labels", {}, {}),
    (f"{REPOSITORY}/assignees", {}, {}),
    (f"{REPOSITORY}/issues", {}, {"state": "all"}),
    (f"{REPOSITORY}/issues/{{issue_number}}", {"issue_number": 2}, {}),
    (f"{REPOSITORY}/issues/{{issue_number}}", {"issue_number": 99}, {}),
    (f"{REPOSITORY}/issues/{{issue_number}}/comments", {"issue_number": 4}, {}),
    (f"{REPOSITORY}/issues/comments", {}, {}),
    (f"{REPOSITORY}/pulls", {}, {}),
    (f"{REPOSITORY}/pulls/{{pull_number}}", {"pull_number": 7}, {}),
    (f"{REPOSITORY}/pulls/{{pull_number}}", {"pull_number": 2}, {}),
    (f"{REPOSITORY}/pulls/{{pull_number}}/files", {"pull_number": 7}, {}),
    (f"{REPOSITORY}/pulls/{{pull_number}}/commits", {"pull_number": 7}, {}),
    (f"{REPOSITORY}/pulls/{{pull_number}}/reviews", {"pull_number": 7}, {}),
    (f"{REPOSITORY}/pulls/{{pull_number}}/requested_reviewers", {"pull_number": 7}, {}),
    (f"{REPOSITORY}/pulls/{{pull_number}}/merge", {"pull_number": 7}, {}),
    ("/search/code", {}, {"q": "decimal repo:tidewater/shop"}),
    ("/search/issues", {}, {"q": "cart is:issue"}),
    ("/search/repositories", {}, {"q": "shop"}),
)


def test_everything_that_is_read_has_githubs_form(judged: Judged) -> None:
    """A typed client fails on the first field that is missing, long after the request."""
    for template, path, query in READ:
        judged("GET", template, path=path, params=query)


def test_everything_that_is_written_has_githubs_form(judged: Judged, practice: Practice) -> None:
    """Requests, too: what is accepted here must be what GitHub accepts."""
    practice.push("gift", {"gift.txt": "gift\n"})
    issues, pulls = f"{REPOSITORY}/issues", f"{REPOSITORY}/pulls"
    number = {"issue_number": 8}
    judged("POST", issues, json={"title": "One", "body": "Two", "labels": ["bug"], "assignees": ["bea"]})
    judged("PATCH", f"{issues}/{{issue_number}}", path=number, json={"state": "closed", "state_reason": "completed"})
    judged("POST", f"{issues}/{{issue_number}}/comments", path=number, json={"body": "Three"})
    judged("POST", f"{issues}/{{issue_number}}/labels", path=number, json={"labels": ["design"]})
    judged("POST", f"{issues}/{{issue_number}}/assignees", path=number, json={"assignees": ["dee"]})
    judged("PATCH", f"{issues}/comments/{{comment_id}}", path={"comment_id": 5}, json={"body": "Four"})
    judged("DELETE", f"{issues}/comments/{{comment_id}}", path={"comment_id": 5})
    pull = {"pull_number": 9}
    made = judged("POST", pulls, json={"title": "Gift", "head": "gift", "base": "main", "body": "x"}, by="bea")
    one = f"{pulls}/{{pull_number}}"
    judged("PATCH", one, path=pull, json={"title": "Gifts", "state": "open"})
    judged("POST", f"{one}/requested_reviewers", path=pull, json={"reviewers": ["tomas"]})
    judged("POST", f"{one}/reviews", path=pull, json={"body": "Hm", "event": "REQUEST_CHANGES"}, by="tomas")
    judged("POST", f"{one}/reviews", path=pull, json={"event": "APPROVE", "commit_id": made["head"]["sha"]}, by="tomas")
    judged("PUT", f"{one}/merge", path=pull, json={"merge_method": "squash", "commit_title": "Gifts"}, by="tomas")
    ref = judged("POST", f"{REPOSITORY}/git/refs", json={"ref": "refs/heads/new", "sha": made["head"]["sha"]})
    assert ref["object"]["sha"] == made["head"]["sha"]


def test_refusals_have_githubs_form(judged: Judged) -> None:
    """An agent reads the error to know what to do next."""
    assert judged("POST", f"{REPOSITORY}/pulls", json={"title": "x", "head": "none", "base": "main"})["errors"] == [
        {"resource": "PullRequest", "field": "head", "code": "invalid"}
    ]
    fix = {"title": "Quantity", "head": "fix/cart-quantity", "base": "main"}
    judged("POST", f"{REPOSITORY}/pulls", json=fix)
    merge = f"{REPOSITORY}/pulls/{{pull_number}}/merge"
    assert judged("PUT", merge, path={"pull_number": 8}, json={})["message"] == "Pull Request is not mergeable"
    stale = judged("PUT", merge, path={"pull_number": 7}, json={"sha": "0" * 40})
    assert stale["message"].startswith("Head branch was modified")
    assert judged("GET", "/search/code", params={"q": "x repo:other/place"})["message"] == "Validation Failed"
    assert judged("GET", "/user", headers={"Authorization": "Bearer wrong"})["message"] == "Bad credentials"


def test_the_judge_finds_what_is_wrong(judged: Judged) -> None:
    """A judge that lets everything pass proves nothing."""
    request = httpx2.Request("GET", "http://127.0.0.1/user")
    user = judged("GET", "/user")
    for spoiled in ({"login": None}, {"id": "1"}, {"created_at": "yesterday"}, {"url": "nowhere"}):
        with pytest.raises(AssertionError, match="is not satisfied"):
            judge_of_github().judge("/user", httpx2.Response(200, json=user | spoiled, request=request))
    with pytest.raises(AssertionError, match="never answers 418"):
        judge_of_github().judge("/user", httpx2.Response(418, json=user, request=request))
