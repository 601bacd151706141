"""Pull requests as the forge keeps them: in step with their branches, mergeable or not, merged for good."""

import re

from squidbot.practice import clock
from squidbot.practice.github.issues import closed, touch
from squidbot.practice.merging import Conflict, merged_tree
from squidbot.practice.store import Document
from squidbot.practice.web import Call
from squidbot.practice.world import World

_CLOSES = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\s+#(\d+)", re.IGNORECASE)


def synced(world: World, issue: Document) -> Document:
    """A pull request as its branches have it now; what a kill -9 left half merged is settled first."""
    pull = issue["pull"]
    if pull["merging"]:
        issue = _settled(world, issue)
        pull = issue["pull"]
    if issue["state"] == "closed":
        return issue
    head, base = world.repository.branch(pull["head"]), world.repository.branch(pull["base"])
    if head is None or base is None:
        changes = {"state": "closed", "closed_at": clock.now(), "updated_at": clock.now()}
    elif (head, base) == (pull["head_sha"], pull["base_sha"]):
        return issue
    else:
        changes = {"pull": pull | {"head_sha": head, "base_sha": base}}
        if head != pull["head_sha"]:
            changes["updated_at"] = clock.now()
            keep_head(world, issue["id"], head)
    world.store.put("issue", issue | changes)
    return issue | changes


def keep_head(world: World, number: int, head: str) -> None:
    """The request's own reference, by which its commits stay when its branch goes, and by which it can be fetched."""
    world.repository.move(f"refs/pull/{number}/head", head)


def is_mergeable(world: World, pull: Document) -> bool:
    try:
        merged_tree(world.repository, pull["base_sha"], pull["head_sha"])
    except Conflict:
        return False
    return True


def finish_merge(call: Call, issue: Document, sha: str) -> None:
    """Move the base branch to the merge, and close the request and the issues that it says it closes.

    Git and the store cannot change in one step, so that the intention is kept first: whoever finds it
    later sees in git whether it was carried out.
    """
    world, pull = call.world, issue["pull"]
    merging = {"sha": sha, "by": call.person.login, "at": clock.now()}
    issue = touch(call, issue, {"pull": pull | {"merging": merging}})
    world.repository.move(f"refs/heads/{pull['base']}", sha, pull["base_sha"])
    _settled(world, issue)
    for number in {int(found) for found in _CLOSES.findall(issue["body"] or "")}:
        other = world.store.get("issue", number)
        if other is not None and other["state"] == "open" and not other["pull"]:
            touch(call, other, closed(call))


def _settled(world: World, issue: Document) -> Document:
    """The request merged, if its merge is in the base branch, else as if nobody had tried."""
    pull, merging = issue["pull"], issue["pull"]["merging"]
    base = world.repository.branch(pull["base"])
    changes: Document = {"pull": pull | {"merging": None}}
    if base is not None and world.repository.is_ancestor(merging["sha"], base):
        done = {"merge_commit_sha": merging["sha"], "merged_at": merging["at"], "merged_by": merging["by"]}
        changes["pull"] |= done
        changes |= {"state": "closed", "closed_at": merging["at"], "closed_by": merging["by"]}
    world.store.put("issue", issue | changes)
    return issue | changes
