"""The client under the github and jira servers, on APIs that are slow, full, broken, or somewhere else."""

import email.utils
import gzip
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from squidbot.servers.github.api import explain as explained_by_github
from squidbot.servers.jira.api import explain as explained_by_jira
from squidbot.servers.limits import is_rate_limit, when_to_try_again
from tests.servers.asking import done, listening, on_github, on_jira, refused, text

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F-02", "F-03")]

TOKEN = "ghp_verysecret1234"
REPOSITORY = {"full_name": "a/b", "html_url": "http://x.example/a/b", "default_branch": "main", "private": True}
Handler = Callable[[Request], Response | Awaitable[Response]]


async def asked(handler: Handler, *, deadline: float = 30, tool: str = "get_repository", **arguments: Any) -> str:
    """What a tool says of an API that answers everything with `handler`."""
    async with listening(answering(handler)) as url, on_github(url, TOKEN, deadline=deadline) as (client, _):
        words = await refused(client, tool, repository="a/b", **arguments)
    assert TOKEN not in words
    return words


def answering(handler: Handler) -> Starlette:
    methods = ["GET", "POST", "PUT", "PATCH"]
    return Starlette(routes=[Route("/{path:path}", handler, methods=methods)])


def redirecting(url: str, status: int) -> Handler:
    return lambda _request: RedirectResponse(url, status)


@pytest.mark.parametrize("status", [403, 429])
async def test_a_rate_limit_is_passed_on_with_the_time_when_it_is_over(status: int) -> None:
    """A model has no clock: without the seconds it tries again at once."""
    reset = int(time.time()) + 600

    def limited(_request: Request) -> Response:
        headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(reset)}
        return JSONResponse({"message": "API rate limit exceeded"}, status, headers)

    words = await asked(limited)
    assert "GitHub's rate limit is used up: try again at 20" in words
    assert time.strftime("%H:%M:%SZ", time.gmtime(reset)) in words
    assert 590 < int(words.partition("(in ")[2].partition(" s)")[0]) <= 600


@pytest.mark.parametrize(
    ("status", "headers", "said", "limit"),
    [
        (403, {"retry-after": "5"}, "", True),
        (403, {}, "You have exceeded a secondary rate limit", True),
        (403, {"x-ratelimit-remaining": "12"}, "Resource not accessible by personal access token", False),
        (429, {}, "", True),
        (404, {"x-ratelimit-remaining": "0"}, "", False),
    ],
)
def test_a_rate_limit_is_told_from_a_refusal(status: int, headers: dict[str, str], said: str, limit: bool) -> None:
    """GitHub uses the same status for both, and one of them is over soon."""
    assert is_rate_limit(status, headers, said) is limit


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"retry-after": "30"}, "try again at 1970-01-12T13:47:10Z (in 30 s)"),
        ({"retry-after": email.utils.formatdate(1_000_060, usegmt=True)}, "(in 60 s)"),
        ({"x-ratelimit-reset": "1000090"}, "(in 90 s)"),
        ({"x-ratelimit-reset": "1970-01-12T13:48:40Z"}, "(in 120 s)"),
        ({"x-ratelimit-reset": "1970-01-12T13:48"}, "(in 80 s)"),
        ({"x-ratelimit-reset": "1"}, "(in 0 s)"),
        ({"retry-after": "soon", "x-ratelimit-reset": "later"}, "try again in a minute"),
        ({"x-ratelimit-reset": "9" * 30}, "try again in a minute"),
        ({}, "try again in a minute"),
    ],
)
def test_the_time_is_read_from_every_header_that_says_it(headers: dict[str, str], words: str) -> None:
    """GitHub counts seconds since 1970, Jira writes a date, both may say how long."""
    assert words in when_to_try_again(headers, now=1_000_000)


@given(st.dictionaries(st.sampled_from(["retry-after", "x-ratelimit-reset"]), st.text(max_size=30)))
def test_no_header_breaks_the_message(headers: dict[str, str]) -> None:
    """What comes from outside may be anything."""
    assert when_to_try_again(headers).startswith("try again")


async def test_a_refusal_that_is_no_limit_names_the_token_and_the_reason() -> None:
    """The owner must give it more rights, and a wait would not help."""
    words = await asked(lambda _: JSONResponse({"message": f"Resource not accessible by {TOKEN}"}, 403))
    assert "GitHub does not allow this to the owner of GITHUB_TOKEN: Resource not accessible by ***" in words


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_a_failure_of_the_api_is_its_own_and_passes(status: int) -> None:
    """A page of HTML is no part of the message."""
    words = await asked(lambda _: Response("<html>oops</html>", status, media_type="text/html"))
    assert f"GitHub failed with status {status}: try again later" in words
    assert "html" not in words
    words = await asked(lambda _: Response("", status, headers={"Retry-After": "90"}))
    assert f"GitHub failed with status {status}: try again at 20" in words
    assert "(in 90 s)" in words or "(in 89 s)" in words


async def test_an_answer_that_is_not_json_points_to_the_address() -> None:
    """The usual reason is a web page's address in the place of the API's."""
    words = await asked(lambda _: Response("<html></html>", media_type="text/html"))
    assert "answered with something that is not JSON (text/html): check that GITHUB_API_URL" in words
    assert "not JSON" in await asked(lambda _: Response("[" * 100_000, media_type="application/json"))


@pytest.mark.parametrize("answer", [None, [], "text", {"full_name": 3}])
async def test_an_answer_of_another_form_is_told_by_what_is_missing(answer: object) -> None:
    """Nothing of ours breaks on it."""
    words = await asked(lambda _: JSONResponse(answer))
    assert "GitHub answered without what it should have, or in another form: " in words
    assert "default_branch" in words


ISSUE = {"number": 1, "title": "t", "state": "open", "html_url": "http://x.example/1", "id": 1}
TICKET = {"key": "SHOP-1", "id": "1", "fields": {"summary": "s", "status": {"name": "x"}}}
ODD: tuple[Any, ...] = (
    *(True, 5, "x", {}, [5], [[]], [{}], {"issues": 5}, {"issues": [5], "total": "x"}, {"items": 5}, {"values": [5]}),
    *({"items": [5], "total_count": "x"}, {"values": [{"id": "x"}]}, {"issues": [TICKET], "startAt": "x", "total": 9}),
    *({**ISSUE, "body": 5}, {**ISSUE, "labels": 5}, {**ISSUE, "labels": [5, None]}, {**ISSUE, "assignees": "x"}),
    *({**TICKET, "fields": 5}, {**TICKET, "comments": [5], "total": "x"}, {"transitions": [5]}, {"displayName": 5}),
)


@pytest.mark.deadline(120)
async def test_whatever_an_api_answers_nothing_inside_breaks_on_it() -> None:
    """A proxy, another version, somebody else's service: the caller is told of the answer, and not of a fault of ours."""
    answer: object = None

    async def odd(_request: Request) -> Response:
        return JSONResponse(answer)

    ticket: dict[str, Any] = {"ticket": "SHOP-1"}
    issue: dict[str, Any] = {"repository": "a/b", "number": 1}
    on_tickets: dict[str, dict[str, Any]] = {
        "get_ticket": ticket,
        "create_ticket": {"project": "SHOP", "summary": "s", "assignee": "bea"},
        "change_status": {**ticket, "status": "Done"},
        "assign_ticket": {**ticket, "assignee": "bea"},
        "search_tickets": {"project": "SHOP", "assignee": "bea"},
        "get_sprint": {"project": "SHOP"},
    }
    on_issues: dict[str, dict[str, Any]] = {
        "get_pull_request": {**issue, "include_diff": True},
        "create_issue": {"repository": "a/b", "title": "t", "labels": ["x"], "assignees": ["y"]},
        "get_issue": issue,
        "add_issue_comment": {**issue, "body": "b"},
        "list_issues": {"repository": "a/b"},
        "search_code": {"repository": "a/b", "query": "q"},
    }
    async with (
        listening(answering(odd)) as url,
        on_github(url, TOKEN) as (forge, _),
        on_jira(url, TOKEN) as data_center,
        on_jira(url, TOKEN, version="3") as cloud,
    ):
        for answer in ODD:
            for client, calls in ((forge, on_issues), (data_center, on_tickets), (cloud, on_tickets)):
                for tool, arguments in calls.items():
                    words = text(await client.call_tool(tool, arguments))
                    assert "inside this server" not in words, (tool, answer)


async def test_an_answer_without_end_is_cut_off() -> None:
    """Memory is bounded, whatever an API sends; so it is for one that was packed small."""

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 65_536
            # Whoever sends to nobody is not made to wait, and would keep the loop to itself.
            await anyio.lowlevel.checkpoint()

    packed = gzip.compress(b" " * 9_000_000)
    headers = {"content-encoding": "gzip"}
    for answer in (lambda _: StreamingResponse(endless()), lambda _: Response(packed, headers=headers)):
        assert "answered with more than 8000000 bytes" in await asked(answer)


async def test_an_api_that_does_not_answer_in_time_is_given_up() -> None:
    """After a change nobody knows whether it was made, and the message says so."""

    async def never(_request: Request) -> Response:
        await anyio.sleep_forever()
        raise AssertionError

    words = await asked(never, deadline=0.2)
    assert "did not answer within 0.2 s" in words
    assert "look before trying again" not in words
    words = await asked(never, deadline=0.2, tool="create_issue", title="x")
    assert "whether it did what was asked is not known: look before trying again" in words


async def test_an_api_that_sends_drop_by_drop_is_given_up_as_well() -> None:
    """Each drop would renew a deadline between two bytes."""

    async def drops() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await anyio.sleep(0.01)

    assert "did not answer within 0.3 s" in await asked(lambda _: StreamingResponse(drops()), deadline=0.3)


async def test_an_api_that_cannot_be_reached_is_named_with_its_variable() -> None:
    """The port of a server that was never started."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    async with on_github(f"http://127.0.0.1:{port}", TOKEN) as (client, _):
        words = await refused(client, "get_repository", repository="a/b")
    assert f"cannot reach GitHub at http://127.0.0.1:{port}" in words
    assert "check GITHUB_API_URL and the network" in words


async def test_the_token_is_never_sent_to_another_place() -> None:
    """Whoever can make an API redirect would otherwise have it."""
    seen: list[str] = []

    def stranger(request: Request) -> Response:
        seen.append(request.headers.get("authorization", ""))
        return JSONResponse(REPOSITORY)

    async with listening(answering(stranger)) as elsewhere:
        for status in (301, 302, 303, 307, 308):
            words = await asked(redirecting(f"{elsewhere}/repos/a/b", status))
            assert "GitHub redirects to http://127.0.0.1, and the token is not sent to another place" in words
        listed = {"Link": f'<{elsewhere}/repos/a/b/issues?page=2>; rel="next"'}
        async with (
            listening(answering(lambda _: JSONResponse([], headers=listed))) as url,
            on_github(url, TOKEN) as (client, _),
        ):
            assert (await done(client, "list_issues", repository="a/b"))["issues"] == []
    assert seen == []


async def test_a_repository_that_was_renamed_is_followed_to_its_new_place() -> None:
    """GitHub answers a read with 301, and a change with 307, to be repeated as it was."""
    bodies: list[bytes] = []

    async def renamed(request: Request) -> Response:
        if request.url.path.startswith("/repos/"):
            status = 301 if request.method == "GET" else 307
            return RedirectResponse(request.url.path.replace("/repos/a/b", "/repositories/1"), status)
        assert request.headers["authorization"] == f"Bearer {TOKEN}"
        bodies.append(await request.body())
        issue = {"number": 1, "title": "x", "state": "open", "html_url": "http://x.example/1"}
        return JSONResponse(REPOSITORY if request.method == "GET" else issue)

    async with listening(answering(renamed)) as url, on_github(url, TOKEN) as (client, _):
        assert (await done(client, "get_repository", repository="a/b"))["visibility"] == "private"
        assert (await done(client, "create_issue", repository="a/b", title="x"))["number"] == 1
    assert bodies == [b"", b'{"title":"x"}']


async def test_a_change_that_is_sent_elsewhere_without_its_body_is_not_made() -> None:
    """A POST that becomes a GET looks like success and did nothing."""
    words = await asked(lambda _: RedirectResponse("/new", 301), tool="create_issue", title="x")
    assert "says that this has moved to '/new': use its new name" in words
    assert "redirects again and again" in await asked(lambda _: RedirectResponse("/again", 302))


async def test_pages_are_followed_until_there_are_enough() -> None:
    """Pull requests among them do not count, and no list is followed for ever."""
    asked_for: list[int] = []

    def page(request: Request) -> Response:
        number = int(request.query_params.get("page", "1"))
        asked_for.append(number)
        issues = [
            {"number": number * 10 + place, "title": "x", "state": "open", "html_url": "http://x.example"}
            | ({"pull_request": {}} if place else {})
            for place in range(3)
        ]
        link = str(request.url.include_query_params(page=number + 1))
        return JSONResponse(issues, headers={"Link": f'<{link}>; rel="next", <{link}>; rel="last"'})

    async with listening(answering(page)) as url, on_github(url) as (client, _):
        found = await done(client, "list_issues", repository="a/b", limit=3)
        assert [issue["number"] for issue in found["issues"]] == [10, 20, 30]
        assert found["more"]
        assert asked_for == [1, 2, 3, 4]
        asked_for.clear()
        assert (await done(client, "list_issues", repository="a/b", limit=100))["more"]
        assert asked_for == list(range(1, 11))


async def test_a_base_with_a_path_keeps_it() -> None:
    """An Enterprise server's API is below /api/v3."""
    paths: list[str] = []

    def seen(request: Request) -> Response:
        paths.append(request.url.path)
        return JSONResponse(REPOSITORY)

    async with listening(answering(seen)) as url, on_github(f"{url}/api/v3/") as (client, _):
        await done(client, "get_repository", repository="a/b")
    assert paths == ["/api/v3/repos/a/b"]


@pytest.mark.parametrize("explained", [explained_by_github, explained_by_jira])
@given(
    data=st.recursive(
        st.none() | st.text() | st.integers(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["message", "errors", "errorMessages", "field", "code"]), inner)
        ),
    )
)
def test_whatever_an_api_says_of_a_failure_becomes_words(explained: Callable[[Any], str], data: Any) -> None:
    """An error in the error would hide both."""
    assert isinstance(explained(data), str)


def test_a_failure_is_told_with_what_is_wrong_with_each_field() -> None:
    """The general word alone helps nobody."""
    errors = [{"resource": "Issue", "field": "title", "code": "missing"}, {"message": "No commits"}, "plain"]
    assert explained_by_github({"message": "Validation Failed", "errors": errors}) == (
        "Validation Failed; Issue title missing; No commits; plain"
    )
    assert explained_by_jira({"errorMessages": ["No."], "errors": {"summary": "too long"}}) == "No.; summary: too long"
    assert explained_by_jira({"message": "Gone"}) == "Gone"
