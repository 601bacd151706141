"""What people, the repository, commits and files look like in GitHub's JSON."""

import base64
from collections.abc import Sequence
from datetime import datetime

from squidbot.practice.clock import written
from squidbot.practice.people import BOT, ORGANISATION, Person, by_email
from squidbot.practice.repository import DEFAULT_BRANCH, Change, Commit, Signature
from squidbot.practice.store import Document
from squidbot.practice.web import Call
from squidbot.practice.world import REPOSITORY

FULL_NAME = f"{ORGANISATION}/{REPOSITORY}"
_USER_LINKS = {
    "followers_url": "followers",
    "following_url": "following{/other_user}",
    "gists_url": "gists{/gist_id}",
    "starred_url": "starred{/owner}{/repo}",
    "subscriptions_url": "subscriptions",
    "organizations_url": "orgs",
    "repos_url": "repos",
    "events_url": "events{/privacy}",
    "received_events_url": "received_events",
}
_REPOSITORY_LINKS = {
    "archive_url": "{archive_format}{/ref}",
    "assignees_url": "assignees{/user}",
    "blobs_url": "git/blobs{/sha}",
    "branches_url": "branches{/branch}",
    "collaborators_url": "collaborators{/collaborator}",
    "comments_url": "comments{/number}",
    "commits_url": "commits{/sha}",
    "compare_url": "compare/{base}...{head}",
    "contents_url": "contents/{+path}",
    "git_commits_url": "git/commits{/sha}",
    "git_refs_url": "git/refs{/sha}",
    "git_tags_url": "git/tags{/sha}",
    "issue_comment_url": "issues/comments{/number}",
    "issue_events_url": "issues/events{/number}",
    "issues_url": "issues{/number}",
    "keys_url": "keys{/key_id}",
    "labels_url": "labels{/name}",
    "milestones_url": "milestones{/number}",
    "notifications_url": "notifications{?since,all,participating}",
    "pulls_url": "pulls{/number}",
    "releases_url": "releases{/id}",
    "statuses_url": "statuses/{sha}",
    "trees_url": "git/trees{/sha}",
} | {
    f"{name}_url": name
    for name in (
        *("contributors", "deployments", "downloads", "events", "forks", "hooks", "languages", "merges"),
        *("stargazers", "subscribers", "subscription", "tags", "teams"),
    )
}
_FEATURES = ("has_projects", "has_wiki", "has_pages", "has_discussions", "has_downloads", "archived", "disabled")


def node(kind: str, number: object) -> str:
    return base64.b64encode(f"{kind}:{number}".encode()).decode()


def repo_url(call: Call, *steps: object) -> str:
    return "/".join([call.base, "repos", FULL_NAME, *map(str, steps)])


def html_url(call: Call, *steps: object) -> str:
    return "/".join([call.site, FULL_NAME, *map(str, steps)])


def user(call: Call, person: Person) -> Document:
    return _account(call, person.login, person.id, "Bot" if person is BOT else "User")


def organisation(call: Call) -> Document:
    return _account(call, ORGANISATION, 1_000, "Organization")


def profile(call: Call, person: Person) -> Document:
    """What somebody says of themselves; the counts are those of an account that is only here."""
    return user(call, person) | {
        "name": person.name,
        "email": person.email,
        "company": ORGANISATION,
        "bio": f"{person.role}, of a world for practice",
        "blog": "",
        "location": None,
        "hireable": None,
        "public_repos": 0,
        "public_gists": 0,
        "followers": 0,
        "following": 0,
        "created_at": call.world.created_at,
        "updated_at": call.world.created_at,
    }


def minimal_repository(call: Call) -> Document:
    links = {name: repo_url(call, path) for name, path in _REPOSITORY_LINKS.items()}
    return links | {
        "id": 1,
        "node_id": node("Repository", 1),
        "name": REPOSITORY,
        "full_name": FULL_NAME,
        "owner": organisation(call),
        "private": True,
        "html_url": html_url(call).rstrip("/"),
        "description": "Catalogue, cart and orders of the Tidewater shop (for practice)",
        "fork": False,
        "url": repo_url(call).rstrip("/"),
    }


def repository(call: Call) -> Document:
    world = call.world
    unfinished = sum(issue["state"] == "open" for issue in world.store.all("issue"))
    pushed = world.repository.commit(DEFAULT_BRANCH).committer
    counts = ("forks", "stargazers", "watchers", "network", "subscribers")
    return (
        minimal_repository(call)
        | {f"{name}_count": 0 for name in counts}
        | dict.fromkeys(_FEATURES, False)
        | {
            "forks": 0,
            "watchers": 0,
            "open_issues": unfinished,
            "open_issues_count": unfinished,
            "size": 32,
            "has_issues": True,
            "homepage": None,
            "language": "Python",
            "license": None,
            "topics": ["practice"],
            "visibility": "private",
            "mirror_url": None,
            "default_branch": DEFAULT_BRANCH,
            "allow_merge_commit": True,
            "allow_squash_merge": True,
            "allow_rebase_merge": True,
            "permissions": {"admin": call.person.owner, "push": True, "pull": True, "maintain": True, "triage": True},
            # git is not spoken over HTTP here: a clone's remote is the repository on disk.
            "clone_url": world.repository.path.as_uri(),
            "git_url": world.repository.path.as_uri(),
            "ssh_url": world.repository.path.as_uri(),
            "svn_url": html_url(call).rstrip("/"),
            "created_at": world.created_at,
            "updated_at": _zulu(pushed.date),
            "pushed_at": _zulu(pushed.date),
        }
    )


def commit(call: Call, found: Commit) -> Document:
    return {
        "sha": found.sha,
        "node_id": node("Commit", found.sha),
        "url": repo_url(call, "commits", found.sha),
        "html_url": html_url(call, "commit", found.sha),
        "comments_url": repo_url(call, "commits", found.sha, "comments"),
        "commit": {
            "message": found.message,
            "tree": {"sha": found.tree, "url": repo_url(call, "git/trees", found.tree)},
            "url": repo_url(call, "git/commits", found.sha),
            "author": signature(found.author),
            "committer": signature(found.committer),
            "comment_count": 0,
            "verification": unsigned(),
        },
        "author": _known(call, found.author),
        "committer": _known(call, found.committer),
        "parents": parents(call, found),
    }


def parents(call: Call, found: Commit) -> list[Document]:
    return [
        {"sha": sha, "url": repo_url(call, "commits", sha), "html_url": html_url(call, "commit", sha)}
        for sha in found.parents
    ]


def unsigned() -> Document:
    return {"verified": False, "reason": "unsigned", "signature": None, "payload": None, "verified_at": None}


def signature(found: Signature) -> Document:
    return {"name": found.name, "email": found.email, "date": _zulu(found.date)}


def changes(call: Call, found: Sequence[Change], commit_sha: str) -> list[Document]:
    return [_change(call, change, commit_sha) for change in found]


def _change(call: Call, change: Change, commit_sha: str) -> Document:
    shape: Document = {
        "sha": change.blob,
        "filename": change.path,
        "status": change.status,
        "additions": change.additions,
        "deletions": change.deletions,
        "changes": change.additions + change.deletions,
        "blob_url": html_url(call, "blob", commit_sha, change.path),
        "raw_url": html_url(call, "raw", commit_sha, change.path),
        "contents_url": f"{repo_url(call, 'contents', change.path)}?ref={commit_sha}",
    }
    if change.patch is not None:
        shape["patch"] = change.patch
    if change.previous is not None:
        shape["previous_filename"] = change.previous
    return shape


def _known(call: Call, who: Signature) -> Document | None:
    person = by_email(who.email)
    return user(call, person) if person else None


def _zulu(date: str) -> str:
    """A commit has the time zone of whoever made it; GitHub tells the same moment in UTC."""
    return written(datetime.fromisoformat(date))


def _account(call: Call, login: str, number: int, kind: str) -> Document:
    url = f"{call.base}/users/{login}"
    return {name: f"{url}/{path}" for name, path in _USER_LINKS.items()} | {
        "login": login,
        "id": number,
        "node_id": node("User", number),
        "avatar_url": f"{call.site}/avatars/{login}.svg",
        "gravatar_id": "",
        "url": url,
        "html_url": f"{call.site}/{login}",
        "type": kind,
        "site_admin": False,
    }
