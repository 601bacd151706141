"""Comments on issues and pull requests."""

from squidbot.practice import clock
from squidbot.practice.github import shapes
from squidbot.practice.github.issues import association, existing, person_shape, touch
from squidbot.practice.github.manners import not_found, page, text
from squidbot.practice.people import by_login
from squidbot.practice.store import Document
from squidbot.practice.web import Answer, Call


def list_comments(call: Call) -> Answer:
    issue = existing(call)
    found = [comment for comment in call.world.store.all("comment") if comment["issue"] == issue["id"]]
    since = call.query.get("since", "")
    return page(call, [one for one in found if one["created_at"] >= since], lambda one: _comment(call, one))


def list_all_comments(call: Call) -> Answer:
    return page(call, call.world.store.all("comment"), lambda comment: _comment(call, comment))


def create_comment(call: Call) -> Answer:
    issue = existing(call)
    body = text(call, "body", "IssueComment", required=True)
    comment = {"id": call.world.store.new_id("comment"), "issue": issue["id"], "user": call.person.login}
    comment |= {"body": body, "created_at": clock.now()}
    call.world.store.put("comment", comment)
    touch(call, issue, {})
    return Answer(_comment(call, comment), 201)


def get_comment(call: Call) -> Answer:
    return Answer(_comment(call, _existing_comment(call)))


def update_comment(call: Call) -> Answer:
    comment = _existing_comment(call)
    body = text(call, "body", "IssueComment", required=True)
    comment |= {"body": body, "updated_at": clock.now()}
    call.world.store.put("comment", comment)
    return Answer(_comment(call, comment))


def delete_comment(call: Call) -> Answer:
    call.world.store.remove("comment", _existing_comment(call)["id"])
    return Answer(status=204)


def _existing_comment(call: Call) -> Document:
    comment = call.world.store.get("comment", call.path["id"])
    if comment is None:
        raise not_found()
    return comment


def _comment(call: Call, comment: Document) -> Document:
    return {
        "id": comment["id"],
        "node_id": shapes.node("IssueComment", comment["id"]),
        "url": shapes.repo_url(call, "issues/comments", comment["id"]),
        "html_url": shapes.html_url(call, "issues", f"{comment['issue']}#issuecomment-{comment['id']}"),
        "issue_url": shapes.repo_url(call, "issues", comment["issue"]),
        "user": person_shape(call, comment["user"]),
        "body": comment["body"],
        "created_at": comment["created_at"],
        "updated_at": comment.get("updated_at", comment["created_at"]),
        "author_association": association(by_login(comment["user"])),
    }
