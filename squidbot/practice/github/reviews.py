"""Reviews of pull requests: nobody approves their own, but for the bot of the shared token.

GitHub lets no author approve their own pull request. The shared token is one identity that plays every
role, so that a whole story can be told with one token: its bot, and nobody else, may.
"""

from squidbot.practice import clock
from squidbot.practice.github import shapes
from squidbot.practice.github.issues import association, person_shape, touch
from squidbot.practice.github.manners import choice, invalid, not_found, page, text, unprocessable
from squidbot.practice.github.pulls import existing
from squidbot.practice.people import by_login
from squidbot.practice.store import Document
from squidbot.practice.web import Answer, Call

_STATES = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}


def list_reviews(call: Call) -> Answer:
    return page(call, _of(call, existing(call)), lambda review: _review(call, review))


def get_review(call: Call) -> Answer:
    return Answer(_review(call, _existing_review(call)))


def create_review(call: Call) -> Answer:
    """Without an event the review waits, unseen by GitHub's rules, until it is submitted."""
    issue = existing(call)
    event = choice(call, "event", "PullRequestReview", tuple(_STATES))
    body, comments = text(call, "body", "PullRequestReview") or "", _line_comments(call)
    _may(call, issue, event, body, commented=bool(comments))
    review: Document = {"id": call.world.store.new_id("review"), "pull": issue["id"], "user": call.person.login}
    review |= {"state": _STATES.get(event or "", "PENDING"), "body": body, "comments": comments}
    review |= {"commit_id": text(call, "commit_id", "PullRequestReview") or issue["pull"]["head_sha"]}
    review |= {"submitted_at": clock.now() if event else None}
    call.world.store.put("review", review)
    _no_longer_asked(call, issue)
    return Answer(_review(call, review))


def submit_review(call: Call) -> Answer:
    issue, review = existing(call), _existing_review(call)
    if review["state"] != "PENDING" or review["user"] != call.person.login:
        raise unprocessable("Can not submit a review that is not pending and yours")
    event = choice(call, "event", "PullRequestReview", tuple(_STATES))
    if event is None:
        raise invalid("PullRequestReview", "event", "missing_field")
    body = text(call, "body", "PullRequestReview") or review["body"]
    _may(call, issue, event, body, commented=bool(review["comments"]))
    review |= {"state": _STATES[event], "body": body, "submitted_at": clock.now()}
    call.world.store.put("review", review)
    _no_longer_asked(call, issue)
    return Answer(_review(call, review))


def list_review_comments(call: Call) -> Answer:
    """The comments on lines, of all reviews."""
    found = [
        (review, index, comment)
        for review in _of(call, existing(call))
        for index, comment in enumerate(review["comments"])
    ]
    return page(call, [{"": item} for item in found], lambda item: _line_comment(call, *item[""]))


def _may(call: Call, issue: Document, event: str | None, body: str, *, commented: bool) -> None:
    own = issue["user"] == call.person.login and not call.person.owner
    if own and event == "APPROVE":
        raise unprocessable("Can not approve your own pull request")
    if own and event == "REQUEST_CHANGES":
        raise unprocessable("Can not request changes on your own pull request")
    if event in {"REQUEST_CHANGES", "COMMENT"} and not body and not commented:
        raise unprocessable("Body can not be blank")


def _line_comments(call: Call) -> list[Document]:
    given = call.body.get("comments") or []
    if not isinstance(given, list) or not all(
        isinstance(item, dict) and isinstance(item.get("path"), str) and isinstance(item.get("body"), str)
        for item in given
    ):
        raise invalid("PullRequestReview", "comments", message="each comment needs a path and a body")
    return [
        {"path": item["path"], "body": item["body"], "line": item.get("line"), "position": item.get("position")}
        for item in given
    ]


def _no_longer_asked(call: Call, issue: Document) -> None:
    asked = [login for login in issue["pull"]["requested_reviewers"] if login != call.person.login]
    touch(call, issue, {"pull": issue["pull"] | {"requested_reviewers": asked}})


def _of(call: Call, issue: Document) -> list[Document]:
    """What is visible: a pending review only to whoever writes it."""
    return [
        review
        for review in call.world.store.all("review")
        if review["pull"] == issue["id"] and (review["state"] != "PENDING" or review["user"] == call.person.login)
    ]


def _existing_review(call: Call) -> Document:
    for review in _of(call, existing(call)):
        if review["id"] == call.path["id"]:
            return review
    raise not_found()


def _review(call: Call, review: Document) -> Document:
    page_url = shapes.html_url(call, "pull", f"{review['pull']}#pullrequestreview-{review['id']}")
    pull_url = shapes.repo_url(call, "pulls", review["pull"])
    shape = {
        "id": review["id"],
        "node_id": shapes.node("PullRequestReview", review["id"]),
        "user": person_shape(call, review["user"]),
        "body": review["body"],
        "state": review["state"],
        "commit_id": review["commit_id"],
        "html_url": page_url,
        "pull_request_url": pull_url,
        "author_association": association(by_login(review["user"])),
        "_links": {"html": {"href": page_url}, "pull_request": {"href": pull_url}},
    }
    return shape | ({"submitted_at": review["submitted_at"]} if review["submitted_at"] else {})


def _line_comment(call: Call, review: Document, index: int, comment: Document) -> Document:
    number = review["id"] * 1_000 + index
    url = shapes.repo_url(call, "pulls/comments", number)
    page_url = shapes.html_url(call, "pull", f"{review['pull']}#discussion_r{number}")
    pull_url = shapes.repo_url(call, "pulls", review["pull"])
    return {
        "id": number,
        "node_id": shapes.node("PullRequestReviewComment", number),
        "url": url,
        "html_url": page_url,
        "pull_request_url": pull_url,
        "pull_request_review_id": review["id"],
        "_links": {"self": {"href": url}, "html": {"href": page_url}, "pull_request": {"href": pull_url}},
        "user": person_shape(call, review["user"]),
        "path": comment["path"],
        "body": comment["body"],
        "line": comment["line"] or 1,
        "position": comment["position"] or 1,
        "original_position": comment["position"] or 1,
        "diff_hunk": "",
        "commit_id": review["commit_id"],
        "original_commit_id": review["commit_id"],
        "author_association": association(by_login(review["user"])),
        "created_at": review["submitted_at"] or call.world.created_at,
        "updated_at": review["submitted_at"] or call.world.created_at,
    }
