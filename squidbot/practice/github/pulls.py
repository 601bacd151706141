"""Pull requests: opened, looked at, changed and merged, on real branches."""

from squidbot.practice.git import GitFailed
from squidbot.practice.github import shapes
from squidbot.practice.github.issues import comment_counts, common, new, person_shape, touch
from squidbot.practice.github.manners import choice, cut, error, invalid, not_found, page, text, words
from squidbot.practice.github.requests import finish_merge, is_mergeable, keep_head, synced
from squidbot.practice.merging import Conflict, Way, merge
from squidbot.practice.people import ORGANISATION, by_login
from squidbot.practice.store import Document
from squidbot.practice.web import Answer, Call

_WAYS: dict[str, Way] = {"merge": "merge", "squash": "squash", "rebase": "rebase"}


def list_pulls(call: Call) -> Answer:
    asked = call.query
    state, base = asked.get("state") or "open", asked.get("base")
    head = asked.get("head", "").rpartition(":")[2]
    found = [
        issue
        for issue in (synced(call.world, issue) for issue in call.world.store.all("issue") if issue["pull"])
        if state in {"all", issue["state"]}
        and base in {None, "", issue["pull"]["base"]}
        and head in {"", issue["pull"]["head"]}
    ]
    key = "updated_at" if asked.get("sort") == "updated" else "created_at"
    found.sort(key=lambda issue: (issue[key], issue["id"]), reverse=asked.get("direction", "desc") == "desc")
    return page(call, found, lambda issue: simple(call, issue))


def create_pull(call: Call) -> Answer:
    title = text(call, "title", "PullRequest", required=True)
    head_name = text(call, "head", "PullRequest", required=True) or ""
    base_name = text(call, "base", "PullRequest", required=True) or ""
    owner, _, head_name = head_name.rpartition(":")
    repository = call.world.repository
    head, base = repository.branch(head_name), repository.branch(base_name)
    if head is None or owner.lower() not in {"", ORGANISATION}:
        raise invalid("PullRequest", "head")
    if base is None:
        raise invalid("PullRequest", "base")
    if repository.is_ancestor(head, base):
        raise _custom(f"No commits between {base_name} and {head_name}")
    if any(
        other["pull"]
        and other["state"] == "open"
        and (other["pull"]["head"], other["pull"]["base"]) == (head_name, base_name)
        for other in call.world.store.all("issue")
    ):
        raise _custom(f"A pull request already exists for {ORGANISATION}:{head_name}.")
    pull = {
        "head": head_name,
        "base": base_name,
        "head_sha": head,
        "base_sha": base,
        "draft": bool(call.body.get("draft")),
    }
    pull |= {"requested_reviewers": [], "merged_at": None, "merged_by": None, "merge_commit_sha": None, "merging": None}
    issue = new(call, title=title, body=text(call, "body", "PullRequest"), labels=[], assignees=[], pull=pull)
    keep_head(call.world, issue["id"], head)
    return Answer(full(call, issue), 201, {"Location": shapes.repo_url(call, "pulls", issue["id"])})


def get_pull(call: Call) -> Answer:
    issue = existing(call)
    repository, pull = call.world.repository, issue["pull"]
    if "diff" in call.accept or "patch" in call.accept:
        start = _start(call, pull)
        produce = repository.diff if "diff" in call.accept else repository.patches
        return Answer(produce(start, pull["head_sha"]), media="text/plain; charset=utf-8")
    return Answer(full(call, issue))


def update_pull(call: Call) -> Answer:
    issue = existing(call)
    changes: Document = {}
    if "title" in call.body:
        changes["title"] = text(call, "title", "PullRequest", required=True)
    if "body" in call.body:
        changes["body"] = text(call, "body", "PullRequest")
    if base_name := text(call, "base", "PullRequest"):
        base = call.world.repository.branch(base_name)
        if base is None or issue["state"] == "closed":
            raise invalid("PullRequest", "base")
        changes["pull"] = issue["pull"] | {"base": base_name, "base_sha": base}
    state = choice(call, "state", "PullRequest", ("open", "closed"))
    if state == "closed" and issue["state"] == "open":
        changes |= {"state": "closed", "closed_by": call.person.login}
        changes["closed_at"] = touch(call, issue, {})["updated_at"]
    elif state == "open" and issue["state"] == "closed":
        changes |= _reopened(call, issue)
    return Answer(full(call, touch(call, issue, changes)))


def list_files(call: Call) -> Answer:
    pull = existing(call)["pull"]
    found = call.world.repository.changes(_start(call, pull), pull["head_sha"])
    part, headers = cut(call, found)
    return Answer(shapes.changes(call, part, pull["head_sha"]), headers=headers)


def list_commits(call: Call) -> Answer:
    pull = existing(call)["pull"]
    found = call.world.repository.log(f"{_start(call, pull)}..{pull['head_sha']}")[::-1]
    part, headers = cut(call, found)
    return Answer([shapes.commit(call, commit) for commit in part], headers=headers)


def is_merged(call: Call) -> Answer:
    """By the status alone."""
    return Answer(status=204 if existing(call)["pull"]["merged_at"] else 404)


def merge_pull(call: Call) -> Answer:
    issue = existing(call)
    pull = issue["pull"]
    way = choice(call, "merge_method", "PullRequest", tuple(_WAYS)) or "merge"
    expected = text(call, "sha", "PullRequest")
    if issue["state"] == "closed":
        raise error(405, "Pull Request is not mergeable")
    if pull["draft"]:
        raise error(405, "Pull Request is still a draft")
    if expected and expected != pull["head_sha"]:
        raise error(409, "Head branch was modified. Review and try the merge again.")
    try:
        sha = merge(
            call.world.repository,
            base=pull["base_sha"],
            head=pull["head_sha"],
            way=_WAYS[way],
            message=_message(call, issue, way),
            by=call.person,
        )
    except Conflict:
        raise error(405, "Pull Request is not mergeable") from None
    try:
        finish_merge(call, issue, sha)
    except GitFailed:
        raise error(409, "Base branch was modified. Review and try the merge again.") from None
    return Answer({"sha": sha, "merged": True, "message": "Pull Request successfully merged"})


def update_branch(call: Call) -> Answer:
    """Merge the base branch into the request's own."""
    issue = existing(call)
    pull = issue["pull"]
    if issue["state"] == "closed" or text(call, "expected_head_sha", "PullRequest") not in {None, pull["head_sha"]}:
        raise error(422, "expected head sha didn't match current head ref.")
    repository = call.world.repository
    message = f"Merge branch '{pull['base']}' into {pull['head']}"
    if repository.is_ancestor(pull["base_sha"], pull["head_sha"]):
        raise error(422, "There are no new commits on the base branch.")
    try:
        sha = merge(
            repository, base=pull["head_sha"], head=pull["base_sha"], way="merge", message=message, by=call.person
        )
    except Conflict:
        raise error(422, "merge conflict between base and head") from None
    repository.move(f"refs/heads/{pull['head']}", sha, pull["head_sha"])
    return Answer({"message": "Updating pull request branch.", "url": shapes.repo_url(call, "pulls", issue["id"])}, 202)


def list_reviewers(call: Call) -> Answer:
    requested = existing(call)["pull"]["requested_reviewers"]
    return Answer({"users": [person_shape(call, login) for login in requested], "teams": []})


def change_reviewers(call: Call) -> Answer:
    """POST asks somebody for a review, DELETE takes it back."""
    issue = existing(call)
    names = words(call, "reviewers", "PullRequest") or []
    people = [person.login for name in names if (person := by_login(name))]
    if len(people) < len(names):
        raise error(
            422,
            "Reviews may only be requested from collaborators. One or more of the users or teams you specified "
            f"is not a collaborator of the {shapes.FULL_NAME} repository.",
        )
    if issue["user"] in people and call.method == "POST":
        raise error(422, "Review cannot be requested from pull request author.")
    before = issue["pull"]["requested_reviewers"]
    after = list(dict.fromkeys([*before, *people])) if call.method == "POST" else [x for x in before if x not in people]
    changed = touch(call, issue, {"pull": issue["pull"] | {"requested_reviewers": after}})
    return Answer(simple(call, changed), 201 if call.method == "POST" else 200)


def existing(call: Call) -> Document:
    """The pull request that the path names, in step with its branches."""
    issue = call.world.store.get("issue", call.path["number"])
    if issue is None or not issue["pull"]:
        raise not_found()
    return synced(call.world, issue)


def simple(call: Call, issue: Document) -> Document:
    """A pull request as lists show it."""
    pull, number = issue["pull"], issue["id"]
    url, page_url = shapes.repo_url(call, "pulls", number), shapes.html_url(call, "pull", number)
    issue_url = shapes.repo_url(call, "issues", number)
    links = {
        "self": url,
        "html": page_url,
        "issue": issue_url,
        "comments": f"{issue_url}/comments",
        "review_comments": f"{url}/comments",
        "review_comment": shapes.repo_url(call, "pulls/comments{/number}"),
        "commits": f"{url}/commits",
        "statuses": shapes.repo_url(call, "statuses", pull["head_sha"]),
    }
    return common(call, issue) | {
        "id": 2_000_000 + number,
        "node_id": shapes.node("PullRequest", number),
        "url": url,
        "html_url": page_url,
        "diff_url": f"{page_url}.diff",
        "patch_url": f"{page_url}.patch",
        "issue_url": issue_url,
        **{f"{name}_url": links[name] for name in ("review_comments", "review_comment", "commits", "statuses")},
        "_links": {name: {"href": href} for name, href in links.items()},
        "head": _side(call, pull["head"], pull["head_sha"]),
        "base": _side(call, pull["base"], pull["base_sha"]),
        "draft": pull["draft"],
        "requested_reviewers": [person_shape(call, login) for login in pull["requested_reviewers"]],
        "requested_teams": [],
        "auto_merge": None,
        "merged_at": pull["merged_at"],
        "merge_commit_sha": pull["merge_commit_sha"],
    }


def full(call: Call, issue: Document) -> Document:
    """A pull request by itself: with its size, and whether it can be merged."""
    pull, world = issue["pull"], call.world
    start = _start(call, pull)
    changes = world.repository.changes(start, pull["head_sha"])
    mergeable = is_mergeable(world, pull) if issue["state"] == "open" else None
    state = {True: "clean", False: "dirty", None: "unknown"}[mergeable]
    reviews = [review for review in world.store.all("review") if review["pull"] == issue["id"]]
    return simple(call, issue) | {
        "merged": bool(pull["merged_at"]),
        "merged_by": person_shape(call, pull["merged_by"]),
        "mergeable": mergeable,
        "rebaseable": mergeable,
        "mergeable_state": "draft" if pull["draft"] and mergeable else state,
        "maintainer_can_modify": False,
        "comments": comment_counts(call).get(issue["id"], 0),
        "review_comments": sum(len(review["comments"]) for review in reviews),
        "commits": len(world.repository.log(f"{start}..{pull['head_sha']}")),
        "additions": sum(change.additions for change in changes),
        "deletions": sum(change.deletions for change in changes),
        "changed_files": len(changes),
    }


def _start(call: Call, pull: Document) -> str:
    """Where the request's branch left the base: what is before is not its work."""
    return call.world.repository.merge_base(pull["base_sha"], pull["head_sha"]) or str(pull["base_sha"])


def _side(call: Call, name: str, sha: str) -> Document:
    return {
        "label": f"{ORGANISATION}:{name}",
        "ref": name,
        "sha": sha,
        "user": shapes.organisation(call),
        "repo": shapes.repository(call),
    }


def _reopened(call: Call, issue: Document) -> Document:
    pull = issue["pull"]
    if pull["merged_at"]:
        raise _custom("state cannot be changed. The pull request cannot be reopened.", "state")
    for name in (pull["head"], pull["base"]):
        if call.world.repository.branch(name) is None:
            raise _custom(f"state cannot be changed. The {name} branch has been deleted.", "state")
    return {"state": "open", "closed_at": None, "closed_by": None}


def _message(call: Call, issue: Document, way: str) -> str:
    """As GitHub words it, unless the caller did."""
    pull, number = issue["pull"], issue["id"]
    if way == "squash":
        commits = call.world.repository.log(f"{pull['base_sha']}..{pull['head_sha']}")[::-1]
        title, body = f"{issue['title']} (#{number})", "\n\n".join(f"* {commit.message}" for commit in commits)
    else:
        title, body = f"Merge pull request #{number} from {ORGANISATION}/{pull['head']}", issue["title"]
    title = text(call, "commit_title", "PullRequest") or title
    given = text(call, "commit_message", "PullRequest")
    return f"{title}\n\n{body if given is None else given}".strip()


def _custom(message: str, field: str = "base") -> Exception:
    return invalid("PullRequest", field, "custom", message=message)
