"""Fills an empty world with a small believable project: the history of a shop, issues, tickets, sprints."""

import json
from datetime import datetime
from pathlib import Path

from squidbot.practice.clock import dated
from squidbot.practice.repository import DEFAULT_BRANCH, Repository
from squidbot.practice.store import Store

_HERE = Path(__file__).parent


def history(start: datetime) -> bytes:
    """The repository's history as a stream of `git fast-import`."""
    text = (_HERE / "history.txt").read_text(encoding="utf-8")
    return dated(text, start, epoch=True).encode()


def fill(store: Store, repository: Repository, start: datetime) -> None:
    """Put the seed's documents into the store; their numbers go on from there."""
    seed = json.loads(dated((_HERE / "seed.json").read_text(encoding="utf-8"), start))
    main = repository.branch(DEFAULT_BRANCH)
    for kind, documents in seed.items():
        for document in documents:
            store.put(kind, document)
            store.new_id(kind)
    for issue in store.all("issue"):
        if issue["pull"]:
            head = repository.branch(issue["pull"]["head"])
            issue["pull"] |= {"head_sha": head, "base_sha": main, "merged_at": None, "merged_by": None}
            issue["pull"] |= {"merge_commit_sha": None, "merging": None}
            store.put("issue", issue)
            for review in store.all("review"):
                store.put("review", review | {"commit_id": head})
