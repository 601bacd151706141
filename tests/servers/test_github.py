"""The github server's ten tools on the practice forge: what each does, and what it says when it cannot."""

from collections.abc import AsyncIterator
from typing import Any

import jsonschema
import pytest
from mcp import Client

from tests.practice.conftest import Practice
from tests.servers.asking import done, on_github, refused, told

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F-02")]

SHOP = "tidewater/shop"
READING = {"get_pull_request", "get_issue", "list_issues", "get_repository", "search_code"}
CHANGING = {"create_pull_request", "update_pull_request", "merge_pull_request", "create_issue", "add_issue_comment"}
CALLS: dict[str, dict[str, Any]] = {
    "create_pull_request": {"title": "x", "head": "fix/cart-quantity", "base": "main"},
    "get_pull_request": {"number": 7},
    "update_pull_request": {"number": 7, "title": "x"},
    "merge_pull_request": {"number": 7},
    "create_issue": {"title": "x"},
    "get_issue": {"number": 2},
    "add_issue_comment": {"number": 2, "body": "x"},
    "list_issues": {},
    "get_repository": {},
    "search_code": {"query": "cart"},
}
LISTS: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [6, 5, 4, 3, 2]),
    ({"state": "closed"}, [1]),
    ({"state": "all", "limit": 2}, [6, 5]),
    ({"labels": ["design", "good first issue"]}, [4]),
    ({"assignee": "bea", "state": "all"}, [2, 1]),
    ({"assignee": "none"}, [3]),
    ({"labels": ["documentation"]}, []),
]


@pytest.fixture
async def desk(practice: Practice) -> AsyncIterator[Client]:
    async with on_github(practice.directions["github_api_url"]) as (client, _):
        yield client


async def opened(client: Client, practice: Practice, branch: str = "gift", **more: Any) -> Any:
    """A pull request of a branch that was just pushed."""
    practice.push(branch, {f"{branch}.txt": "one\ntwo\n"})
    return await done(client, "create_pull_request", repository=SHOP, title=f"Add {branch}", head=branch, **more)


async def test_every_tool_says_what_it_takes_and_gives_and_whether_it_changes_anything(desk: Client) -> None:
    """Clients decide by these whether to ask a person first; a grant's condition needs one name for the repository."""
    tools = {tool.name: tool for tool in (await desk.list_tools()).tools}
    assert set(tools) == READING | CHANGING
    for tool in tools.values():
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False
        assert "repository" in tool.input_schema["required"]
        assert tool.output_schema
        assert tool.annotations
        assert tool.annotations.open_world_hint
        assert tool.annotations.read_only_hint == (tool.name in READING)
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)


async def test_what_is_not_there_is_said_to_be_missing_or_hidden(desk: Client) -> None:
    """GitHub does not say which of the two, so neither is claimed."""
    for tool, arguments in CALLS.items():
        words = await refused(desk, tool, **arguments | {"repository": "tidewater/other"})
        if tool == "search_code":
            assert "Validation Failed" in words
        else:
            assert "GitHub has no such thing, or does not show it to the owner of GITHUB_TOKEN" in words


async def test_a_wrong_token_is_named_by_its_variable_and_never_shown(practice: Practice) -> None:
    """Who reads the message can mend it, and nobody can use it."""
    async with on_github(practice.directions["github_api_url"], "stolen-token-1234") as (client, _):
        for tool, arguments in CALLS.items():
            words = await refused(client, tool, **arguments | {"repository": SHOP})
            assert "GitHub does not accept the credentials: Bad credentials: check GITHUB_TOKEN" in words
            assert "stolen" not in words


async def test_a_repository_that_is_no_name_never_reaches_github() -> None:
    """It becomes a part of the address, where dots and slashes mean something."""
    async with on_github("http://127.0.0.1:1") as (client, _):
        for name in ("shop", "tidewater/..", "a/b/c", "../etc", "tidewater/shop?x=1", "tidewater/shop\n", ""):
            for tool, arguments in CALLS.items():
                words = await refused(client, tool, **arguments | {"repository": name})
                assert f"{tool} cannot take these arguments" in words


async def test_a_pull_request_is_opened_from_a_pushed_branch_into_the_main_one(
    desk: Client, practice: Practice
) -> None:
    """The usual case needs no base."""
    pull = await opened(desk, practice, body="See SHOP-1", draft=True)
    assert pull["base"] == "main"
    assert pull["head"] == "gift"
    assert pull["draft"]
    assert pull["head_sha"] == practice.git("rev-parse", "gift")
    assert pull["url"].endswith(f"/tidewater/shop/pull/{pull['number']}")
    read = await done(desk, "get_pull_request", repository=SHOP, number=pull["number"])
    assert read["body"] == "See SHOP-1"


async def test_a_pull_request_that_cannot_be_opened_says_why(desk: Client, practice: Practice) -> None:
    """No such branch, nothing in it, or one open already: each needs another step next."""
    await opened(desk, practice)
    again = await refused(desk, "create_pull_request", repository=SHOP, title="x", head="gift")
    assert "already exists" in again
    missing = await refused(desk, "create_pull_request", repository=SHOP, title="x", head="nowhere", base="main")
    assert "PullRequest head invalid: push 'nowhere' first, or check its name" in missing
    assert "No commits between" in await refused(desk, "create_pull_request", repository=SHOP, title="x", head="main")


async def test_a_pull_request_is_read_with_files_reviews_checks_and_diff(desk: Client, practice: Practice) -> None:
    """A reviewer needs all of it, and in one call."""
    number = (await opened(desk, practice))["number"]
    async with on_github(practice.directions["github_api_url"], practice.directions["tokens"]["tomas"]) as (tomas, _):
        review = {"event": "request_changes", "body": "One line is enough"}
        await done(tomas, "update_pull_request", repository=SHOP, number=number, review=review)
    pull = await done(desk, "get_pull_request", repository=SHOP, number=number, include_diff=True)
    assert pull["files"] == [{"path": "gift.txt", "status": "added", "additions": 2, "deletions": 0}]
    assert [(review["author"], review["state"], review["body"]) for review in pull["reviews"]] == [
        ("tomas", "CHANGES_REQUESTED", "One line is enough")
    ]
    assert pull["mergeable"] is True
    assert set(pull["checks"]) == {"passed", "failed", "pending", "failing"}
    assert "+one\n+two\n" in pull["diff"]
    assert pull["notes"] == []
    words = await told(desk, "get_pull_request", repository=SHOP, number=number, include_diff=True)
    for part in ("(open, by squidbot-practice, gift into main", "can be merged", "gift.txt (added", "One line", "+two"):
        assert part in words
    assert (await done(desk, "get_pull_request", repository=SHOP, number=number))["diff"] is None


async def test_a_large_diff_is_cut_with_a_note(desk: Client, practice: Practice) -> None:
    """A part that does not say so is taken for the whole."""
    practice.push("large", {"large.txt": "a line of the file\n" * 20_000})
    number = (await done(desk, "create_pull_request", repository=SHOP, title="x", head="large"))["number"]
    pull = await done(desk, "get_pull_request", repository=SHOP, number=number, include_diff=True)
    assert len(pull["diff"]) == 100_000
    assert pull["notes"] == ["the diff is cut after 100000 bytes"]


async def test_a_pull_request_is_changed_in_just_what_is_given(desk: Client, practice: Practice) -> None:
    """What is left out stays as it is."""
    number = (await opened(desk, practice, body="first"))["number"]
    changed = await done(desk, "update_pull_request", repository=SHOP, number=number, title="Gifts", state="closed")
    assert (changed["title"], changed["state"], changed["changed"]) == ("Gifts", "closed", ["title", "state"])
    assert (await done(desk, "get_pull_request", repository=SHOP, number=number))["body"] == "first"
    open_again = await done(desk, "update_pull_request", repository=SHOP, number=number, body="", state="open")
    assert open_again["state"] == "open"
    assert (await done(desk, "get_pull_request", repository=SHOP, number=number))["body"] == ""


async def test_an_update_that_changes_nothing_or_a_review_without_words_is_refused(desk: Client) -> None:
    """GitHub would take the first in silence, and refuse the second in riddles."""
    assert "nothing to do: give title, body, state, base or review" in await refused(
        desk, "update_pull_request", repository=SHOP, number=7
    )
    assert "needs a body" in await refused(
        desk, "update_pull_request", repository=SHOP, number=7, review={"event": "comment"}
    )


async def test_a_review_is_submitted_but_not_an_approval_of_ones_own_work(practice: Practice) -> None:
    """GitHub's rule, told in its words, with what was done before it."""
    url, tokens = practice.directions["github_api_url"], practice.directions["tokens"]
    async with on_github(url, tokens["bea"]) as (bea, _):
        number = (await opened(bea, practice))["number"]
        words = await refused(
            bea, "update_pull_request", repository=SHOP, number=number, title="Mine", review={"event": "approve"}
        )
        assert "changed title, but the review is not submitted" in words
        assert "approve your own pull request" in words.lower()
        alone = await refused(bea, "update_pull_request", repository=SHOP, number=number, review={"event": "approve"})
        assert "changed" not in alone
    async with on_github(url, tokens["tomas"]) as (tomas, _):
        for event, state in (("comment", "COMMENTED"), ("approve", "APPROVED")):
            review = {"event": event, "body": "Well done"}
            updated = await done(tomas, "update_pull_request", repository=SHOP, number=number, review=review)
            assert (updated["review"]["state"], updated["changed"], updated["title"]) == (state, [], "Mine")


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
async def test_a_merge_puts_the_reviewed_commits_on_the_base(desk: Client, practice: Practice, method: str) -> None:
    """The effect is looked at in git itself."""
    pull = await opened(desk, practice)
    merged = await done(
        desk,
        "merge_pull_request",
        repository=SHOP,
        number=pull["number"],
        method=method,
        approve=True,
        expected_head=pull["head_sha"],
        **({} if method == "rebase" else {"title": "Gifts at last", "message": "Closes nothing"}),
    )
    assert (merged["merged"], merged["approved"], merged["base"]) == (True, True, "main")
    assert practice.git("rev-parse", "main") == merged["sha"]
    assert practice.git("show", "main:gift.txt") == "one\ntwo"
    if method != "rebase":
        assert practice.git("log", "-1", "--format=%B", "main") == "Gifts at last\n\nCloses nothing"
    read = await done(desk, "get_pull_request", repository=SHOP, number=pull["number"])
    assert read["merged"]
    assert [review["state"] for review in read["reviews"]] == ["APPROVED"]
    assert "is merged already" in await refused(desk, "merge_pull_request", repository=SHOP, number=pull["number"])


async def test_a_merge_that_cannot_be_is_refused_before_anything_is_approved(desk: Client, practice: Practice) -> None:
    """An approval without the merge would be half of what was asked."""
    pull = await opened(desk, practice)
    number = pull["number"]
    merge = {"repository": SHOP, "number": number, "approve": True}
    moved = practice.push("gift", {"gift.txt": "three\n"}, start="gift")
    words = await refused(desk, "merge_pull_request", **merge, expected_head=pull["head_sha"])
    assert f"the head of #{number} is now {moved}, not {pull['head_sha']}" in words
    await done(desk, "update_pull_request", repository=SHOP, number=number, state="closed")
    assert "is closed: open it again" in await refused(desk, "merge_pull_request", **merge)
    await done(desk, "update_pull_request", repository=SHOP, number=number, state="open")
    other = await opened(desk, practice, "other")
    practice.push("other", {"gift.txt": "another\n"}, start="other")
    await done(desk, "merge_pull_request", repository=SHOP, number=other["number"])
    assert "has conflicts with 'main'" in await refused(desk, "merge_pull_request", **merge)
    draft = await opened(desk, practice, "draft", draft=True)
    assert "is a draft" in await refused(desk, "merge_pull_request", **merge | {"number": draft["number"]})
    assert (await done(desk, "get_pull_request", repository=SHOP, number=number))["reviews"] == []


async def test_an_issue_is_opened_read_and_commented(desk: Client) -> None:
    """What was written comes back."""
    issue = await done(
        desk, "create_issue", repository=SHOP, title="Mugs", body="Too few", labels=["bug"], assignees=["bea"]
    )
    assert (issue["state"], issue["labels"], issue["assignees"]) == ("open", ["bug"], ["bea"])
    comment = await done(desk, "add_issue_comment", repository=SHOP, number=issue["number"], body="**Many** too few")
    assert comment["url"].startswith(issue["url"])
    read = await done(desk, "get_issue", repository=SHOP, number=issue["number"])
    assert (read["title"], read["body"], read["comments"], read["is_pull_request"]) == ("Mugs", "Too few", 1, False)
    assert [comment["body"] for comment in read["discussion"]] == ["**Many** too few"]
    words = await told(desk, "get_issue", repository=SHOP, number=issue["number"], comments=0)
    for part in ("(open, by squidbot-practice)", "labels: bug", "assigned to bea", "[1 more comments"):
        assert part in words


async def test_a_pull_request_can_be_commented_and_read_as_an_issue(desk: Client) -> None:
    """On GitHub a pull request is an issue, too; the answer says which it is."""
    comment = await done(desk, "add_issue_comment", repository=SHOP, number=7, body="Nice")
    read = await done(desk, "get_issue", repository=SHOP, number=7, comments=100)
    assert read["is_pull_request"]
    assert comment["id"] in [one["id"] for one in read["discussion"]]


async def test_a_number_that_nothing_has_is_refused(desk: Client) -> None:
    """Also where another thing has the number: an issue is no pull request."""
    for tool in ("get_issue", "add_issue_comment", "get_pull_request", "update_pull_request", "merge_pull_request"):
        assert "has no such thing" in await refused(desk, tool, **CALLS[tool] | {"repository": SHOP, "number": 999})
    assert "has no such thing" in await refused(desk, "get_pull_request", repository=SHOP, number=2)


async def test_issues_are_listed_by_what_is_asked_and_pull_requests_are_not(desk: Client) -> None:
    """GitHub mixes both into one list."""
    for arguments, numbers in LISTS:
        found = await done(desk, "list_issues", repository=SHOP, **arguments)
        assert [issue["number"] for issue in found["issues"]] == numbers
        assert found["more"] is ("limit" in arguments)


async def test_a_list_in_words_has_a_line_for_each_issue(desk: Client) -> None:
    """Many clients show a model nothing but the words."""
    words = await told(desk, "list_issues", repository=SHOP, limit=1)
    assert words.splitlines()[0].startswith("#6 Suggestions read every order each time (open; labels performance")
    assert "there are more" in words
    assert await told(desk, "list_issues", repository=SHOP, labels=["documentation"]) == "no such issue"


async def test_a_repository_is_described(desk: Client) -> None:
    """The main branch and what the token may do are what an agent asks first."""
    found = await done(desk, "get_repository", repository="Tidewater/Shop")
    assert (found["repository"], found["default_branch"]) == (SHOP, "main")
    assert "push" in found["permissions"]
    assert "default_branch: main" in await told(desk, "get_repository", repository=SHOP)


async def test_code_is_found_with_the_lines_around_it(desk: Client) -> None:
    """The lines save the next call."""
    found = await done(desk, "search_code", repository=SHOP, query="Cart extension:py", limit=3)
    assert found["matches"]
    assert all(match["path"].endswith(".py") for match in found["matches"])
    assert any("Cart" in fragment for match in found["matches"] for fragment in match["fragments"])
    assert await told(desk, "search_code", repository=SHOP, query="neverwritten") == "nothing found"


async def test_a_search_cannot_be_led_to_another_repository(desk: Client) -> None:
    """A grant for one repository would be one for all that the token can see."""
    for query in ("x repo:other/secret", "org:other x", "USER:somebody", "x OR repo : other/secret"):
        assert "may not name another place" in await refused(desk, "search_code", repository=SHOP, query=query)


@pytest.mark.parametrize(
    ("tool", "bad", "words"),
    [
        ("create_issue", {"title": ""}, "'title'"),
        ("create_issue", {"title": " "}, "'title': say something: it is blank"),
        ("create_issue", {"labels": ["a,b"]}, "'labels.0'"),
        ("get_issue", {"number": 0}, "'number'"),
        ("list_issues", {"limit": 101}, "'limit'"),
        ("list_issues", {"assigne": "bea"}, "did you mean 'assignee'?"),
        ("merge_pull_request", {"method": "fast"}, "'merge', 'squash' or 'rebase'"),
        ("merge_pull_request", {"expected_head": "HEAD"}, "'expected_head'"),
        ("add_issue_comment", {"body": ""}, "'body'"),
        ("add_issue_comment", {"body": "\n"}, "'body': say something: it is blank"),
        ("update_pull_request", {"review": {"event": "like"}}, "'review.event'"),
        ("search_code", {"query": ""}, "'query'"),
        ("create_pull_request", {"head": ""}, "'head'"),
        ("get_pull_request", {"number": "seven"}, "'number'"),
        ("get_repository", {"name": "x"}, "'name': no such argument"),
    ],
)
async def test_arguments_that_do_not_fit_are_named_without_asking_github(
    tool: str, bad: dict[str, Any], words: str
) -> None:
    """All that can be known here is said here."""
    async with on_github("http://127.0.0.1:1") as (client, _):
        assert words in await refused(client, tool, **CALLS[tool] | {"repository": SHOP} | bad)
