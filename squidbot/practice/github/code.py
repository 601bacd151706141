"""The repository itself: branches, references, commits, comparisons, files."""

import base64

from squidbot.practice.git import GitFailed
from squidbot.practice.github import shapes
from squidbot.practice.github.manners import cut, error, invalid, not_found, text, unprocessable
from squidbot.practice.repository import DEFAULT_BRANCH, Commit, Entry, is_reference
from squidbot.practice.store import Document
from squidbot.practice.web import Answer, Call

_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""What the first commit is compared with; git knows it in every repository."""


def get_repository(call: Call) -> Answer:
    return Answer(shapes.repository(call))


def list_branches(call: Call) -> Answer:
    references = call.world.repository.references()
    part, headers = cut(call, list(references.items()))
    return Answer([_short_branch(call, name.removeprefix("refs/heads/"), sha) for name, sha in part], headers=headers)


def get_branch(call: Call) -> Answer:
    name = call.path["branch"]
    sha = call.world.repository.branch(name)
    if sha is None:
        raise error(404, "Branch not found")
    protected = name == DEFAULT_BRANCH
    level = "everyone" if protected else "off"
    return Answer(
        _short_branch(call, name, sha)
        | {
            "commit": shapes.commit(call, call.world.repository.commit(sha)),
            "_links": {
                "self": shapes.repo_url(call, "branches", name),
                "html": shapes.html_url(call, "tree", name),
            },
            "protection": {
                "enabled": protected,
                "required_status_checks": {"enforcement_level": level, "contexts": [], "checks": []},
            },
            "protection_url": shapes.repo_url(call, "branches", name, "protection"),
        }
    )


def list_references(call: Call) -> Answer:
    """Everything that begins with what is asked for; nothing is asked for nothing in particular."""
    wanted = call.path.get("ref", "")
    if wanted and not is_reference(wanted):
        return Answer([])
    found = call.world.repository.references("refs/")
    part, headers = cut(call, [(name, sha) for name, sha in found.items() if name.startswith(f"refs/{wanted}")])
    return Answer([_reference(call, name, sha) for name, sha in part], headers=headers)


def get_reference(call: Call) -> Answer:
    name, sha = _existing(call)
    return Answer(_reference(call, name, sha))


def create_reference(call: Call) -> Answer:
    name = text(call, "ref", "Reference", required=True) or ""
    sha = text(call, "sha", "Reference", required=True) or ""
    repository = call.world.repository
    if not name.startswith(("refs/heads/", "refs/tags/")) or not is_reference(name):
        raise error(422, "Reference name must start with 'refs/heads/' or 'refs/tags/' and be one that git takes")
    if repository.references(name).get(name):
        raise error(422, "Reference already exists")
    commit = repository.resolve(sha)
    if commit is None or not commit.startswith(sha.lower()):
        raise error(422, "Object does not exist")
    try:
        repository.move(name, commit, old="")
    except GitFailed:
        raise error(422, "Reference cannot be created: another one is in its way") from None
    return Answer(_reference(call, name, commit), 201)


def update_reference(call: Call) -> Answer:
    name, old = _existing(call)
    _must_be_free(name)
    sha = text(call, "sha", "Reference", required=True) or ""
    repository = call.world.repository
    new = repository.resolve(sha)
    if new is None or not new.startswith(sha.lower()):
        raise error(422, "Object does not exist")
    if not call.body.get("force") and not repository.is_ancestor(old, new):
        raise error(422, "Update is not a fast forward")
    repository.move(name, new, old)
    return Answer(_reference(call, name, new))


def delete_reference(call: Call) -> Answer:
    name, old = _existing(call)
    _must_be_free(name)
    call.world.repository.move(name, None, old)
    return Answer(status=204)


def list_commits(call: Call) -> Answer:
    start = call.query.get("sha") or DEFAULT_BRANCH
    sha = call.world.repository.resolve(start)
    if sha is None:
        raise not_found()
    author = call.query.get("author", "").lower()
    found = call.world.repository.log(sha, path=call.query.get("path") or None)
    shown = [shapes.commit(call, commit) for commit in found]
    part, headers = cut(call, [commit for commit in shown if not author or _is_by(commit, author)])
    return Answer(part, headers=headers)


def get_commit(call: Call) -> Answer:
    commit = _commit(call, call.path["ref"])
    repository = call.world.repository
    parent = commit.parents[0] if commit.parents else _EMPTY_TREE
    if "diff" in call.accept:
        return Answer(repository.diff(parent, commit.sha), media="text/plain; charset=utf-8")
    files = shapes.changes(call, repository.changes(parent, commit.sha), commit.sha)
    added, removed = (sum(file[name] for file in files) for name in ("additions", "deletions"))
    stats = {"additions": added, "deletions": removed, "total": added + removed}
    return Answer(shapes.commit(call, commit) | {"stats": stats, "files": files})


def get_git_commit(call: Call) -> Answer:
    found = _commit(call, call.path["sha"])
    shape = shapes.commit(call, found)
    inner = shape["commit"]
    return Answer(
        {name: inner[name] for name in ("message", "tree", "author", "committer", "verification", "url")}
        | {"sha": found.sha, "node_id": shape["node_id"], "html_url": shape["html_url"], "parents": shape["parents"]}
    )


def get_status(call: Call) -> Answer:
    """No checks run here, so that a commit's state is that of one without any."""
    sha = _commit(call, call.path["ref"]).sha
    return Answer(
        {
            "state": "pending",
            "statuses": [],
            "sha": sha,
            "total_count": 0,
            "repository": shapes.minimal_repository(call),
            "commit_url": shapes.repo_url(call, "commits", sha),
            "url": shapes.repo_url(call, "commits", sha, "status"),
        }
    )


def list_check_runs(call: Call) -> Answer:
    _commit(call, call.path["ref"])
    return Answer({"total_count": 0, "check_runs": []})


def compare(call: Call) -> Answer:
    repository = call.world.repository
    base_name, _, head_name = call.path["basehead"].partition("...")
    base, head = _commit(call, base_name), _commit(call, head_name)
    common = repository.merge_base(base.sha, head.sha)
    if common is None:
        raise error(404, f"No common ancestor between {base_name} and {head_name}.")
    ahead = repository.log(f"{base.sha}..{head.sha}")[::-1]
    behind = len(repository.log(f"{head.sha}..{base.sha}"))
    page = shapes.html_url(call, "compare", f"{base_name}...{head_name}")
    return Answer(
        {
            "url": shapes.repo_url(call, "compare", f"{base_name}...{head_name}"),
            "html_url": page,
            "permalink_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            "base_commit": shapes.commit(call, base),
            "merge_base_commit": shapes.commit(call, repository.commit(common)),
            "status": _relation(len(ahead), behind),
            "ahead_by": len(ahead),
            "behind_by": behind,
            "total_commits": len(ahead),
            "commits": [shapes.commit(call, commit) for commit in ahead],
            "files": shapes.changes(call, repository.changes(common, head.sha), head.sha),
        }
    )


def get_contents(call: Call) -> Answer:
    ref = call.query.get("ref") or DEFAULT_BRANCH
    sha = call.world.repository.resolve(ref)
    if sha is None:
        raise error(404, f"No commit found for the ref {ref}")
    path = call.path.get("path", "").strip("/")
    entries = call.world.repository.tree(sha, path)
    if entries is None:
        raise not_found()
    if len(entries) == 1 and entries[0].path == path:
        return _file(call, entries[0], ref)
    return Answer([_entry(call, entry, ref) for entry in entries])


def _file(call: Call, entry: Entry, ref: str) -> Answer:
    data = call.world.repository.blob(entry.sha)
    if "raw" in call.accept:
        return Answer(data, media="application/vnd.github.raw; charset=utf-8")
    content = base64.encodebytes(data).decode()
    return Answer(_entry(call, entry, ref) | {"encoding": "base64", "content": content})


def _entry(call: Call, entry: Entry, ref: str) -> Document:
    is_file = entry.kind == "blob"
    url = f"{shapes.repo_url(call, 'contents', entry.path)}?ref={ref}"
    page = shapes.html_url(call, "blob" if is_file else "tree", ref, entry.path)
    git_url = shapes.repo_url(call, "git/blobs" if is_file else "git/trees", entry.sha)
    return {
        "name": entry.path.rpartition("/")[2],
        "path": entry.path,
        "sha": entry.sha,
        "size": entry.size,
        "url": url,
        "html_url": page,
        "git_url": git_url,
        "download_url": shapes.html_url(call, "raw", ref, entry.path) if is_file else None,
        "type": "file" if is_file else "dir",
        "_links": {"self": url, "git": git_url, "html": page},
    }


def _commit(call: Call, name: str) -> Commit:
    sha = call.world.repository.resolve(name)
    if sha is None:
        raise error(422, f"No commit found for SHA: {name}")
    return call.world.repository.commit(sha)


def _existing(call: Call) -> tuple[str, str]:
    name = f"refs/{call.path['ref']}"
    sha = call.world.repository.references(name).get(name) if is_reference(name) else None
    if sha is None:
        raise not_found()
    return name, sha


def _must_be_free(name: str) -> None:
    if name == f"refs/heads/{DEFAULT_BRANCH}":
        raise unprocessable(f"Protected branch update failed for {name}: merge a pull request instead.")
    if not name.startswith(("refs/heads/", "refs/tags/")):
        raise invalid("Reference", "ref", message="This reference belongs to a pull request.")


def _short_branch(call: Call, name: str, sha: str) -> Document:
    commit = {"sha": sha, "url": shapes.repo_url(call, "commits", sha)}
    return {"name": name, "commit": commit, "protected": name == DEFAULT_BRANCH}


def _reference(call: Call, name: str, sha: str) -> Document:
    return {
        "ref": name,
        "node_id": shapes.node("Ref", name),
        "url": shapes.repo_url(call, "git", name),
        "object": {"type": "commit", "sha": sha, "url": shapes.repo_url(call, "git/commits", sha)},
    }


def _is_by(commit: Document, author: str) -> bool:
    login = (commit["author"] or {}).get("login", "")
    return author in {login, commit["commit"]["author"]["email"].lower()}


def _relation(ahead: int, behind: int) -> str:
    match bool(ahead), bool(behind):
        case True, True:
            return "diverged"
        case True, False:
            return "ahead"
        case False, True:
            return "behind"
        case _:
            return "identical"
