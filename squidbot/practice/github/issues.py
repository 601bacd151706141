"""Issues with their labels and assignees; a pull request is an issue, too."""

from collections.abc import Iterable

from squidbot.practice import clock
from squidbot.practice.github import shapes
from squidbot.practice.github.manners import choice, error, invalid, not_found, page, text, words
from squidbot.practice.people import BOT, PEOPLE, Person, by_login
from squidbot.practice.store import Document
from squidbot.practice.web import Answer, Call

_NEW_LABEL = {"color": "ededed", "description": None}


def list_issues(call: Call) -> Answer:
    found = [issue for issue in call.world.store.all("issue") if _fits(call, issue)]
    key = {"updated": "updated_at", "comments": "comments"}.get(call.query.get("sort", ""), "created_at")
    counts = comment_counts(call)
    found.sort(
        key=lambda issue: counts.get(issue["id"], 0) if key == "comments" else (issue[key], issue["id"]),
        reverse=call.query.get("direction") != "asc",
    )
    return page(call, found, lambda issue: shape(call, issue))


def create_issue(call: Call) -> Answer:
    title = text(call, "title", "Issue", required=True)
    assignees = _assignees(call, ["assignee"]) if call.body.get("assignee") else _assignees(call)
    body, labels = text(call, "body", "Issue"), words(call, "labels", "Label")
    issue = new(call, title=title, body=body, labels=known_labels(call, labels or []), assignees=assignees or [])
    return Answer(shape(call, issue), 201, {"Location": shapes.repo_url(call, "issues", issue["id"])})


def new(call: Call, **fields: object) -> Document:
    """A new open issue by whoever asks, kept."""
    moment = clock.now()
    issue: Document = {"id": call.world.store.new_id("issue"), "user": call.person.login, "pull": None}
    issue |= {"state": "open", "state_reason": None, "closed_at": None, "closed_by": None}
    issue |= {"created_at": moment, "updated_at": moment, **fields}
    call.world.store.put("issue", issue)
    return issue


def get_issue(call: Call) -> Answer:
    return Answer(shape(call, existing(call)))


def update_issue(call: Call) -> Answer:
    issue = existing(call)
    if issue["pull"] and issue["state"] == "closed" and call.body.get("state") == "open":
        raise error(422, "This is a pull request: reopen it with PATCH on pulls")
    changes: Document = {}
    if "title" in call.body:
        changes["title"] = text(call, "title", "Issue", required=True)
    if "body" in call.body:
        changes["body"] = text(call, "body", "Issue")
    if (labels := words(call, "labels", "Label")) is not None:
        changes["labels"] = known_labels(call, labels)
    if (assignees := _assignees(call)) is not None:
        changes["assignees"] = assignees
    changes |= _state(call, issue)
    return Answer(shape(call, touch(call, issue, changes)))


def touch(call: Call, issue: Document, changes: Document) -> Document:
    """Keep an issue with its changes, and say when."""
    changed = issue | changes | {"updated_at": clock.now()}
    call.world.store.put("issue", changed)
    return changed


def closed(call: Call, reason: str | None = "completed") -> Document:
    """The fields of an issue that is closed now."""
    return {"state": "closed", "state_reason": reason, "closed_at": clock.now(), "closed_by": call.person.login}


def list_labels(call: Call) -> Answer:
    return page(call, call.world.store.all("label"), lambda label: _label(call, label))


def list_issue_labels(call: Call) -> Answer:
    return Answer(_labels(call, existing(call)))


def change_issue_labels(call: Call) -> Answer:
    """POST adds, PUT replaces."""
    issue = existing(call)
    before = issue["labels"] if call.method == "POST" else []
    after = list(dict.fromkeys([*before, *known_labels(call, words(call, "labels", "Label") or [])]))
    return Answer(_labels(call, touch(call, issue, {"labels": after})))


def remove_issue_label(call: Call) -> Answer:
    issue = existing(call)
    if call.path["name"] not in issue["labels"]:
        raise error(404, "Label does not exist")
    after = [name for name in issue["labels"] if name != call.path["name"]]
    return Answer(_labels(call, touch(call, issue, {"labels": after})))


def list_assignees(call: Call) -> Answer:
    """Everybody here can be assigned."""
    return Answer([shapes.user(call, person) for person in PEOPLE])


def change_assignees(call: Call) -> Answer:
    """POST adds, DELETE removes; whom GitHub does not know, it ignores here."""
    issue = existing(call)
    named = [person.login for name in words(call, "assignees", "Issue") or [] if (person := by_login(name))]
    if call.method == "POST":
        after = list(dict.fromkeys([*issue["assignees"], *named]))
    else:
        after = [login for login in issue["assignees"] if login not in named]
    return Answer(shape(call, touch(call, issue, {"assignees": after})), 201 if call.method == "POST" else 200)


def existing(call: Call) -> Document:
    """The issue or pull request that the path names."""
    issue = call.world.store.get("issue", call.path["number"])
    if issue is None:
        raise not_found()
    return issue


def known_labels(call: Call, names: Iterable[str]) -> list[str]:
    """The labels by these names; one that is new is made, as GitHub does it for whoever may push."""
    known = {label["name"].lower(): label["name"] for label in call.world.store.all("label")}
    for name in names:
        if name.lower() not in known:
            known[name.lower()] = name
            call.world.store.put("label", {"id": call.world.store.new_id("label"), "name": name, **_NEW_LABEL})
    return list(dict.fromkeys(known[name.lower()] for name in names))


def comment_counts(call: Call) -> dict[int, int]:
    counts: dict[int, int] = {}
    for comment in call.world.store.all("comment"):
        counts[comment["issue"]] = counts.get(comment["issue"], 0) + 1
    return counts


def person_shape(call: Call, login: str | None) -> Document | None:
    person = by_login(login)
    return shapes.user(call, person) if person else None


def common(call: Call, issue: Document) -> Document:
    """What an issue and a pull request say alike."""
    people = [person for login in issue["assignees"] if (person := by_login(login))]
    return {
        "number": issue["id"],
        "title": issue["title"],
        "body": issue["body"],
        "user": person_shape(call, issue["user"]),
        "state": issue["state"],
        "locked": False,
        "active_lock_reason": None,
        "labels": _labels(call, issue),
        "milestone": None,
        "assignee": shapes.user(call, people[0]) if people else None,
        "assignees": [shapes.user(call, person) for person in people],
        "author_association": association(by_login(issue["user"])),
        "created_at": issue["created_at"],
        "updated_at": issue["updated_at"],
        "closed_at": issue["closed_at"],
        "comments_url": shapes.repo_url(call, "issues", issue["id"], "comments"),
    }


def association(person: Person | None) -> str:
    return "OWNER" if person is BOT else "MEMBER"


def shape(call: Call, issue: Document) -> Document:
    url = shapes.repo_url(call, "issues", issue["id"])
    page_url = shapes.html_url(call, "pull" if issue["pull"] else "issues", issue["id"])
    found = common(call, issue) | {
        "id": 1_000_000 + issue["id"],
        "node_id": shapes.node("Issue", issue["id"]),
        "url": url,
        "repository_url": shapes.repo_url(call).rstrip("/"),
        "labels_url": f"{url}/labels{{/name}}",
        "events_url": f"{url}/events",
        "html_url": page_url,
        "comments": comment_counts(call).get(issue["id"], 0),
        "state_reason": issue["state_reason"],
        "closed_by": person_shape(call, issue["closed_by"]),
    }
    if issue["pull"]:
        found["draft"] = issue["pull"]["draft"]
        found["pull_request"] = {
            "url": shapes.repo_url(call, "pulls", issue["id"]),
            "html_url": page_url,
            "diff_url": f"{page_url}.diff",
            "patch_url": f"{page_url}.patch",
            "merged_at": issue["pull"]["merged_at"],
        }
    return found


def _assignees(call: Call, names: Iterable[str] = ()) -> list[str] | None:
    given = [text(call, name, "Issue") or "" for name in names] or words(call, "assignees", "Issue")
    if given is None:
        return None
    for name in given:
        if by_login(name) is None:
            raise invalid("Issue", "assignees", value=name)
    return [person.login for name in given if (person := by_login(name))]


def _state(call: Call, issue: Document) -> Document:
    state = choice(call, "state", "Issue", ("open", "closed"))
    reason = choice(call, "state_reason", "Issue", ("completed", "not_planned", "duplicate", "reopened"))
    if state == "closed" and (issue["state"] == "open" or reason):
        return closed(call, reason or "completed")
    if state == "open" and issue["state"] == "closed":
        return {"state": "open", "state_reason": "reopened", "closed_at": None, "closed_by": None}
    return {}


def _fits(call: Call, issue: Document) -> bool:
    asked = call.query
    state = asked.get("state") or "open"
    assignee = asked.get("assignee")
    wanted = {name for name in asked.get("labels", "").lower().split(",") if name}
    return (
        state in {"all", issue["state"]}
        and wanted <= {name.lower() for name in issue["labels"]}
        and asked.get("creator", issue["user"]) == issue["user"]
        and issue["updated_at"] >= asked.get("since", "")
        and (
            assignee is None
            or (assignee == "none" and not issue["assignees"])
            or (assignee == "*" and bool(issue["assignees"]))
            or assignee in issue["assignees"]
        )
    )


def _labels(call: Call, issue: Document) -> list[Document]:
    known = {label["name"]: label for label in call.world.store.all("label")}
    return [_label(call, known[name]) for name in issue["labels"]]


def _label(call: Call, label: Document) -> Document:
    url = shapes.repo_url(call, "labels", label["name"].replace(" ", "%20"))
    return label | {"node_id": shapes.node("Label", label["id"]), "url": url, "default": label["id"] <= 6}
