"""The forge at its edges: who is let in, what is refused and in which words, which neighbours it has."""

from typing import Any

import pytest

from tests.practice.conftest import Asking, Practice

pytestmark = pytest.mark.requirement("F-05")


def problem(answer: Any, status: int) -> str:
    """The message of a refusal, with what is wrong with each field; fails if it is none of GitHub's."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert body["documentation_url"].startswith("https://docs.github.com/")
    assert answer.headers["x-ratelimit-limit"] == "5000"
    return " ".join([body["message"], *map(str, body.get("errors", ()))])


def test_a_wrong_token_is_turned_away(forge: Asking) -> None:
    """Whoever practises must meet the refusal that they will meet at work."""
    wrong = ("Bearer wrong", "token practice-token-nobody", "Digest practice-token", "Basic !!")
    messages = {"": "Requires authentication", "Bearer": "Requires authentication"}
    for authorization, message in (messages | dict.fromkeys(wrong, "Bad credentials")).items():
        for path in ("/user", "/repos/tidewater/shop", "/repos/tidewater/shop/issues/999"):
            assert problem(forge("GET", path, headers={"Authorization": authorization}), 401) == message


def test_a_token_is_taken_in_every_form_and_at_every_address(practice: Practice, forge: Asking) -> None:
    """Clients of Enterprise servers add paths of their own, and old ones say `token`."""
    token = practice.directions["tokens"]["bea"]
    for prefix in ("/github", "/github/api/v3", "/api/v3"):
        answer = forge("GET", f"{practice.url}{prefix}/user", headers={"Authorization": f"token {token}"})
        assert answer.json()["login"] == "bea"
        assert answer.json()["url"].startswith(f"{practice.url}{prefix}/users/")
    basic = forge("GET", "/user", headers={"Authorization": "Basic eDpwcmFjdGljZS10b2tlbg=="})
    assert basic.json()["login"] == "squidbot-practice"


MISSING = (
    ("GET", "/repos/tidewater/other"),
    ("GET", "/repos/other/shop/issues"),
    ("GET", "/repos/tidewater/shop/issues/99"),
    ("PATCH", "/repos/tidewater/shop/issues/99"),
    ("GET", "/repos/tidewater/shop/pulls/2"),
    ("GET", "/repos/tidewater/shop/pulls/7/reviews/99"),
    ("GET", "/repos/tidewater/shop/issues/comments/99"),
    ("GET", "/repos/tidewater/shop/branches/none"),
    ("GET", "/repos/tidewater/shop/branches/..%2F..%2Fetc"),
    ("GET", "/repos/tidewater/shop/contents/none.py"),
    ("GET", "/repos/tidewater/shop/contents/README.md?ref=none"),
    ("GET", "/repos/tidewater/shop/commits?sha=--all"),
    ("GET", "/repos/tidewater/shop/git/ref/heads/none"),
    ("DELETE", "/repos/tidewater/shop/issues/2/labels/none"),
    ("GET", "/users/nobody"),
    ("GET", "/nothing"),
    ("DELETE", "/user"),
)


def test_what_is_not_there_is_not_found(forge: Asking) -> None:
    """The same words for all of it, as GitHub has it."""
    known = {"Not Found", "Branch not found", "Label does not exist", "No commit found for the ref none"}
    for method, path in MISSING:
        assert problem(forge(method, path, json=None if method == "GET" else {"title": "x"}), 404) in known


BAD: tuple[tuple[str, str, Any, str], ...] = (
    ("POST", "/issues", {}, "'field': 'title', 'code': 'missing_field'"),
    ("POST", "/issues", {"title": " "}, "'field': 'title', 'code': 'missing_field'"),
    ("POST", "/issues", {"title": 5}, "title is not a string"),
    ("POST", "/issues", {"title": "x", "labels": "bug"}, "labels is not a list of strings"),
    ("POST", "/issues", {"title": "x", "assignees": ["nobody"]}, "'field': 'assignees', 'code': 'invalid'"),
    ("POST", "/issues", {"title": "x", "assignee": "nobody"}, "'value': 'nobody'"),
    ("PATCH", "/issues/2", {"state": "lost"}, "state is not one of open, closed"),
    ("POST", "/issues/2/comments", {"body": "\n"}, "'field': 'body', 'code': 'missing_field'"),
    ("POST", "/pulls", {"title": "x", "base": "main"}, "'field': 'head', 'code': 'missing_field'"),
    ("POST", "/pulls", {"title": "x", "head": "other:main", "base": "main"}, "'field': 'head', 'code': 'invalid'"),
    ("POST", "/pulls", {"title": "x", "head": "fix/cart-quantity", "base": "none"}, "'field': 'base'"),
    ("POST", "/pulls", {"title": "x", "head": "main", "base": "main"}, "No commits between main and main"),
    ("POST", "/pulls", {"title": "x", "head": "feature/discount-codes", "base": "main"}, "already exists"),
    ("PATCH", "/pulls/7", {"base": "none"}, "'field': 'base', 'code': 'invalid'"),
    ("PUT", "/pulls/7/merge", {"merge_method": "magic"}, "merge_method is not one of merge, squash, rebase"),
    ("POST", "/pulls/7/reviews", {"event": "LIKE"}, "event is not one of"),
    ("POST", "/pulls/7/reviews", {"event": "COMMENT"}, "Body can not be blank"),
    ("POST", "/pulls/7/reviews", {"event": "COMMENT", "comments": [{"path": 1}]}, "needs a path and a body"),
    ("POST", "/pulls/7/requested_reviewers", {"reviewers": ["nobody"]}, "is not a collaborator"),
    ("POST", "/pulls/7/requested_reviewers", {"reviewers": ["bea"]}, "cannot be requested from pull request author"),
    ("PUT", "/pulls/7/update-branch", {"expected_head_sha": "0"}, "expected head sha"),
    ("PUT", "/pulls/7/update-branch", {}, "no new commits"),
    ("POST", "/git/refs", {"ref": "main", "sha": "0" * 40}, "Reference name must start"),
    ("POST", "/git/refs", {"ref": "refs/heads/main", "sha": "0" * 40}, "Reference already exists"),
    ("POST", "/git/refs", {"ref": "refs/heads/x", "sha": "0" * 40}, "Object does not exist"),
    ("POST", "/git/refs", {"ref": "refs/heads/x", "sha": "main"}, "Object does not exist"),
    ("PATCH", "/git/refs/heads/fix/cart-quantity", {"sha": "0" * 40}, "Object does not exist"),
    ("PATCH", "/git/refs/heads/main", {"sha": "0" * 40, "force": True}, "Protected branch update failed"),
    ("DELETE", "/git/refs/heads/main", None, "Protected branch update failed"),
    ("GET", "/commits/none", None, "No commit found for SHA: none"),
    ("GET", "/commits/--output=x", None, "No commit found for SHA"),
)


def test_what_cannot_be_taken_is_refused_field_by_field(shop: Asking) -> None:
    """The errors are what an agent mends its call with; nothing may be half done."""
    before = shop("GET", "/issues", params={"state": "all"}).json()
    for method, path, body, words in BAD:
        assert words in problem(shop(method, path, json=body), 422), (method, path, body)
    assert shop("GET", "/issues", params={"state": "all"}).json() == before


def test_a_body_that_is_no_json_object_is_refused(shop: Asking) -> None:
    """Before anything else looks at it."""
    assert "no JSON" in problem(shop("POST", "/issues", content=b"{"), 400)
    assert "no JSON object" in problem(shop("POST", "/issues", content=b'"x"'), 400)
    assert "no JSON" in problem(shop("POST", "/issues", content=b"[" * 100_000), 400)
    assert "more than" in problem(shop("POST", "/issues", content=b" " * 1_100_000), 413)


def test_a_merge_that_may_not_be_is_refused(practice: Practice, shop: Asking) -> None:
    """Draft, closed, merged or changed in the meantime: each has its own answer."""
    practice.push("draft", {"draft.txt": "draft\n"})
    made = shop("POST", "/pulls", json={"title": "D", "head": "tidewater:draft", "base": "main", "draft": True}).json()
    assert (made["draft"], made["mergeable_state"]) == (True, "draft")
    merge = f"/pulls/{made['number']}/merge"
    assert "still a draft" in problem(shop("PUT", merge, json={}), 405)
    assert "Head branch was modified" in problem(shop("PUT", "/pulls/7/merge", json={"sha": "0" * 40}), 409)
    shop("PATCH", f"/pulls/{made['number']}", json={"state": "closed"})
    assert "not mergeable" in problem(shop("PUT", merge, json={}), 405)
    assert shop("PUT", "/pulls/7/merge", json={"commit_title": "T", "commit_message": "M"}).status_code == 200
    assert practice.git("show", "-s", "--format=%B", "main") == "T\n\nM"
    assert "not mergeable" in problem(shop("PUT", "/pulls/7/merge", json={}), 405)
    assert "cannot be reopened" in problem(shop("PATCH", "/pulls/7", json={"state": "open"}), 422)
    assert "reopen it with PATCH on pulls" in problem(shop("PATCH", "/issues/7", json={"state": "open"}), 422)


def test_a_pull_request_follows_its_branch_to_its_end(practice: Practice, shop: Asking) -> None:
    """A branch that is pushed to changes the request, one that is deleted closes it."""
    tip = practice.push("feature/discount-codes", {"more.txt": "more\n"}, start="feature/discount-codes")
    assert shop("GET", "/pulls/7").json()["head"]["sha"] == tip
    assert practice.git("rev-parse", "refs/pull/7/head") == tip
    assert shop("DELETE", "/git/refs/heads/feature/discount-codes").status_code == 204
    assert shop("GET", "/pulls/7").json()["state"] == "closed"
    assert "branch has been deleted" in problem(shop("PATCH", "/pulls/7", json={"state": "open"}), 422)
    assert shop("GET", "/pulls/7/files").json()[0]["filename"] == "more.txt"


def test_a_branch_is_brought_up_to_date(practice: Practice, shop: Asking) -> None:
    """What the button on the page does."""
    practice.push("late", {"late.txt": "late\n"}, start="main")
    number = shop("POST", "/pulls", json={"title": "Late", "head": "late", "base": "main"}).json()["number"]
    shop("PUT", "/pulls/7/merge", json={})
    assert shop("PUT", f"/pulls/{number}/update-branch").status_code == 202
    assert practice.git("merge-base", "main", "late") == practice.git("rev-parse", "main")
    clash = shop("POST", "/pulls", json={"title": "C", "head": "fix/cart-quantity", "base": "main"}).json()["number"]
    assert "merge conflict" in problem(shop("PUT", f"/pulls/{clash}/update-branch"), 422)
    assert shop("PATCH", f"/pulls/{clash}", json={"base": "late"}).json()["base"]["ref"] == "late"


def test_diffs_patches_and_raw_files_come_as_text(shop: Asking) -> None:
    """Asked for with Accept, as GitHub has it."""
    diff = shop("GET", "/pulls/7", headers={"Accept": "application/vnd.github.diff"})
    assert diff.text.startswith("diff --git a/shop/discounts.py")
    patch = shop("GET", "/pulls/7", headers={"Accept": "application/vnd.github.v3.patch"})
    assert "Subject: [PATCH 1/2] Add discount codes" in patch.text
    commit = shop("GET", "/commits/main", headers={"Accept": "application/vnd.github.v3.diff"})
    assert "ROUND_HALF_UP" in commit.text
    raw = shop("GET", "/contents/README.md", headers={"Accept": "application/vnd.github.raw+json"})
    assert raw.text.startswith("# Tidewater shop")


def test_files_that_are_moved_binary_or_oddly_named_are_told_as_they_are(practice: Practice, shop: Asking) -> None:
    """Diffs in the wild are not all text."""
    clone = practice.clone
    practice.push("odd", {"a b/ü.txt": "x\n"})
    (clone / "blob.bin").write_bytes(b"\0\1\2" * 100)
    (clone / "shop" / "cart.py").rename(clone / "shop" / "basket.py")
    (clone / "Dockerfile").unlink()
    practice.push("odd", {"more.txt": "x\n"}, start="odd")
    number = shop("POST", "/pulls", json={"title": "Odd", "head": "odd", "base": "main"}).json()["number"]
    files = {file["filename"]: file for file in shop("GET", f"/pulls/{number}/files").json()}
    assert files["shop/basket.py"]["status"] == "renamed"
    assert files["shop/basket.py"]["previous_filename"] == "shop/cart.py"
    assert files["Dockerfile"]["status"] == "removed"
    assert "patch" not in files["blob.bin"]
    assert files["a b/ü.txt"]["patch"] == "@@ -0,0 +1 @@\n+x"


def test_a_pending_review_is_submitted_by_whoever_wrote_it(shop: Asking) -> None:
    """And by nobody else."""
    review = shop("POST", "/pulls/7/reviews", json={"body": "Hm"}, by="tomas").json()
    events = f"/pulls/7/reviews/{review['id']}/events"
    assert "submitted_at" not in review
    assert problem(shop("POST", events, json={"event": "APPROVE"}, by="quinn"), 404) == "Not Found"
    assert "missing_field" in problem(shop("POST", events, json={}, by="tomas"), 422)
    assert shop("POST", events, json={"event": "APPROVE"}, by="tomas").json()["state"] == "APPROVED"
    assert "not pending" in problem(shop("POST", events, json={"event": "APPROVE"}, by="tomas"), 422)
    asked = shop("POST", "/pulls/7/requested_reviewers", json={"reviewers": ["sol", "quinn"]}).json()
    assert [person["login"] for person in asked["requested_reviewers"]] == ["sol", "quinn"]
    left = shop("DELETE", "/pulls/7/requested_reviewers", json={"reviewers": ["sol"]}).json()
    assert [person["login"] for person in left["requested_reviewers"]] == ["quinn"]


def test_searching_code_shows_where_and_says_what_it_cannot(forge: Asking) -> None:
    """A match without its lines makes an agent read whole files."""
    headers = {"Accept": "application/vnd.github.text-match+json"}
    found = forge("GET", "/search/code", params={"q": "round_half_up filename:cart"}, headers=headers).json()
    (match,) = found["items"][0]["text_matches"]
    start, end = match["matches"][0]["indices"]
    assert match["fragment"][start:end] == "ROUND_HALF_UP"
    assert "'code': 'missing'" in problem(forge("GET", "/search/code"), 422)
    assert "unable to parse" in problem(forge("GET", "/search/code", params={"q": "repo:tidewater/shop"}), 422)
    assert "cannot be searched" in problem(forge("GET", "/search/issues", params={"q": "x repo:a/b"}), 422)
    assert forge("GET", "/search/code", params={"q": "-Otouch --open-files-in-pager=id"}).json()["items"] == []


def test_pages_are_linked_to_each_other(shop: Asking) -> None:
    """First, previous, next and last, each with the rest of the question."""
    answer = shop("GET", "/issues", params={"state": "all", "per_page": "2", "page": "2"})
    assert len(answer.json()) == 2
    links = {part.split('rel="')[1][:-1]: part for part in answer.headers["link"].split(", ")}
    assert set(links) == {"first", "prev", "next", "last"}
    assert "state=all&per_page=2&page=4" in links["last"]
    assert "link" not in shop("GET", "/issues", params={"per_page": "nonsense", "page": "0"}).headers


def test_the_repository_s_neighbours_answer(forge: Asking, shop: Asking) -> None:
    """Other people's clients look around before they work."""
    assert forge("GET", "/orgs/tidewater").json()["type"] == "Organization"
    assert [one["full_name"] for one in forge("GET", "/user/repos").json()] == ["tidewater/shop"]
    assert [one["full_name"] for one in forge("GET", "/orgs/tidewater/repos").json()] == ["tidewater/shop"]
    assert shop("GET", "/commits/main/check-runs").json()["total_count"] == 0
    assert len(shop("GET", "/git/refs").json()) == 3
    assert shop("GET", "/git/matching-refs/heads/a%20b").json() == []
    assert [one["name"] for one in shop("PUT", "/issues/2/labels", json=["design"]).json()] == ["design"]
    assert [one["name"] for one in shop("GET", "/issues/2/labels").json()] == ["design"]
    assert shop("GET", "/compare/main...main").json()["status"] == "identical"
    assert shop("GET", "/compare/feature%2Fdiscount-codes...main").json()["status"] == "behind"
    assert shop("GET", "/compare/main...feature/discount-codes").json()["status"] == "ahead"
    assert "fast forward" in problem(
        shop("PATCH", "/git/refs/heads/fix/cart-quantity", json={"sha": shop("GET", "/commits").json()[0]["sha"]}), 422
    )
    pulls = [one for one in shop("GET", "/git/matching-refs/").json() if "/pull/" in one["ref"]]
    assert pulls == []
    shop("POST", "/pulls", json={"title": "x", "head": "fix/cart-quantity", "base": "main"})
    assert "belongs to a pull request" in problem(shop("DELETE", "/git/refs/pull/8/head"), 422)
