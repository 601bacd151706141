"""The github server's requests, judged by GitHub's own OpenAPI document."""

import json
import re
from typing import Any

import httpx2
import pytest

from squidbot.servers.rest import RestClient
from tests.fixtures.openapi import Judge, judge_of_github
from tests.practice.conftest import Practice
from tests.servers.asking import done, on_github, refused

pytestmark = [pytest.mark.anyio, pytest.mark.peers, pytest.mark.requirement("F-02")]

SHOP = "tidewater/shop"
REPOSITORY = "/repos/{owner}/{repo}"
TEMPLATES = (
    REPOSITORY,
    f"{REPOSITORY}/pulls",
    f"{REPOSITORY}/pulls/{{pull_number}}",
    f"{REPOSITORY}/pulls/{{pull_number}}/files",
    f"{REPOSITORY}/pulls/{{pull_number}}/reviews",
    f"{REPOSITORY}/pulls/{{pull_number}}/merge",
    f"{REPOSITORY}/commits/{{ref}}/check-runs",
    f"{REPOSITORY}/commits/{{ref}}/status",
    f"{REPOSITORY}/issues",
    f"{REPOSITORY}/issues/{{issue_number}}",
    f"{REPOSITORY}/issues/{{issue_number}}/comments",
    "/search/code",
)
USED = {
    *(("GET", template) for template in TEMPLATES if not template.endswith(("/pulls", "/merge"))),
    ("POST", f"{REPOSITORY}/pulls"),
    ("PATCH", f"{REPOSITORY}/pulls/{{pull_number}}"),
    ("POST", f"{REPOSITORY}/pulls/{{pull_number}}/reviews"),
    ("PUT", f"{REPOSITORY}/pulls/{{pull_number}}/merge"),
    ("POST", f"{REPOSITORY}/issues"),
    ("POST", f"{REPOSITORY}/issues/{{issue_number}}/comments"),
}


def template_of(path: str) -> str:
    below = path.removeprefix("/github")
    [found] = [template for template in TEMPLATES if re.fullmatch(re.sub(r"{\w+}", "[^/]+", template), below)]
    return found


class Recorded:
    """Every request of a client and its answer, judged as they happen."""

    def __init__(self, rest: RestClient, judge: Judge) -> None:
        self.used: set[tuple[str, str]] = set()
        self._judge = judge
        rest._http.event_hooks = {"response": [self._seen]}

    async def _seen(self, answer: httpx2.Response) -> None:
        await answer.aread()
        template = template_of(answer.request.url.path)
        self.used.add((answer.request.method, template))
        self._judge.parameters(template, answer.request)
        if "diff" not in answer.request.headers["accept"]:
            self._judge.judge(template, answer)


@pytest.fixture
def judge() -> Judge:
    return judge_of_github()


async def test_everything_the_tools_ask_of_github_is_what_github_takes(practice: Practice, judge: Judge) -> None:
    """The practice forge may be as wrong as we are; GitHub's document is not."""
    url = practice.directions["github_api_url"]
    practice.push("gift", {"gift.txt": "one\n"})
    async with on_github(url) as (client, rest):
        recorded = Recorded(rest, judge)

        async def shop(tool: str, **arguments: Any) -> Any:
            return await done(client, tool, repository=SHOP, **arguments)

        await shop("get_repository")
        await shop("search_code", query="cart extension:py")
        issue = await shop("create_issue", title="One", body="Two", labels=["bug"], assignees=["bea"])
        await shop("create_issue", title="Bare")
        await shop("add_issue_comment", number=issue["number"], body="Three")
        await shop("get_issue", number=issue["number"])
        await shop("list_issues", state="all", labels=["bug"], assignee="bea")
        pull = (await shop("create_pull_request", title="Gift", head="gift", body="x", draft=False))["number"]
        await shop("update_pull_request", number=pull, title="Gifts", body="y", state="closed")
        await shop("update_pull_request", number=pull, state="open")
        await shop("update_pull_request", number=pull, base="main")
        for event in ("comment", "request_changes", "approve"):
            await shop("update_pull_request", number=pull, review={"event": event, "body": "Hm"})
        await shop("get_pull_request", number=pull, include_diff=True)
        await shop("merge_pull_request", number=pull, method="squash", approve=True, title="Gifts", message="At last")
        await refused(client, "create_pull_request", repository=SHOP, title="x", head="nowhere", base="main")
        await refused(client, "get_issue", repository=SHOP, number=999)
    assert recorded.used == USED


async def test_the_judge_finds_a_request_that_github_would_not_take(judge: Judge) -> None:
    """A judge that lets everything pass proves nothing."""
    url = "http://127.0.0.1/repos/a/b/issues"
    for method, body in (("POST", {"body": "no title"}), ("POST", {"title": "x", "labels": "bug"})):
        request = httpx2.Request(method, url, content=json.dumps(body))
        with pytest.raises(AssertionError, match="is not satisfied"):
            judge.judge(f"{REPOSITORY}/issues", httpx2.Response(201, json={}, request=request))
    with pytest.raises(AssertionError, match="takes no parameter 'colour'"):
        judge.parameters(f"{REPOSITORY}/issues", httpx2.Request("GET", f"{url}?colour=red"))
    with pytest.raises(AssertionError, match="parameter 'state'"):
        judge.parameters(f"{REPOSITORY}/issues", httpx2.Request("GET", f"{url}?state=broken"))
