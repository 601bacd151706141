"""A practice world that really serves: a folder, a socket, a git repository, for each test its own."""

import atexit
import contextlib
import functools
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio.abc import TaskStatus
from anyio.from_thread import start_blocking_portal

from squidbot.practice.__main__ import serve
from squidbot.practice.git import git
from squidbot.practice.world import World


@dataclass(frozen=True)
class Practice:
    """A running world, and what its practice.json says."""

    folder: Path
    url: str
    directions: dict[str, Any]

    @property
    def clone(self) -> Path:
        return Path(self.directions["repository"])

    def git(self, *arguments: str) -> str:
        """A command in the bare repository."""
        return git(Path(self.directions["bare_repository"]), *arguments).decode().strip()

    def push(self, branch: str, files: dict[str, str], *, start: str = "main") -> str:
        """Put files on a branch, as somebody with a clone does; the commit that came of it."""
        clone = self.clone
        git(clone, "fetch", "--quiet", "origin")
        git(clone, "checkout", "--quiet", "-B", branch, f"origin/{start}")
        for name, text in files.items():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            (clone / name).write_text(text)
        git(clone, "add", "--all")
        git(clone, "commit", "--quiet", "--message", f"Change {', '.join(files)}")
        git(clone, "push", "--quiet", "origin", branch)
        return git(clone, "rev-parse", "HEAD").decode().strip()


Asking = Callable[..., httpx2.Response]


@functools.cache
def _seeded() -> Path:
    """A world as it is in the beginning, made once: copying it is several times quicker than making it."""
    folder = Path(tempfile.mkdtemp(prefix="practice-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with World(folder / "world") as world:
        for repository in (world.clone, world.repository.path):
            git(repository, "gc", "--quiet")
    return folder / "world"


def seed(folder: Path) -> None:
    """Put a new world into `folder`."""
    shutil.copytree(_seeded(), folder, ignore=shutil.ignore_patterns("world.lock"))
    world = World(folder)
    git(world.clone, "remote", "set-url", "origin", str(world.repository.path))


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Practice]:
    """The world in `folder`, a new one if there is none, served in a thread of its own."""
    if not folder.exists():
        seed(folder)

    async def work(*, task_status: TaskStatus[str]) -> None:
        await serve(folder, 0, task_status.started)

    with start_blocking_portal() as portal:
        future, url = portal.start_task(work)
        try:
            yield Practice(folder, url, json.loads((folder / "practice.json").read_text()))
        finally:
            future.cancel()
            with contextlib.suppress(CancelledError):
                future.result(10)


@pytest.fixture
def practice(tmp_path: Path) -> Iterator[Practice]:
    with running(tmp_path / "world") as practice:
        yield practice


@pytest.fixture
def forge(practice: Practice) -> Iterator[Asking]:
    """Asks the forge, as one of its people or with the shared token: forge("GET", "/user", by="bea")."""
    with httpx2.Client(base_url=practice.directions["github_api_url"]) as client:

        def ask(method: str, path: str, *, by: str = "squidbot-practice", **options: Any) -> httpx2.Response:
            headers = {"Authorization": f"Bearer {practice.directions['tokens'][by]}"} | options.pop("headers", {})
            return client.request(method, path, headers=headers, **options)

        yield ask


@pytest.fixture
def shop(forge: Asking) -> Asking:
    """Asks for what is below the practice repository."""

    def ask(method: str, path: str, **options: Any) -> httpx2.Response:
        return forge(method, f"/repos/tidewater/shop{path}", **options)

    return ask


@pytest.fixture
def tracker(practice: Practice) -> Iterator[Asking]:
    """Asks the tracker's API v2 of Cloud unless the path says more."""
    with httpx2.Client(base_url=practice.url) as client:

        def ask(method: str, path: str, *, by: str = "squidbot-practice", **options: Any) -> httpx2.Response:
            full = path if path.startswith("/jira") else f"/jira/rest/api/2{path}"
            headers = {"Authorization": f"Bearer {practice.directions['tokens'][by]}"} | options.pop("headers", {})
            return client.request(method, full, headers=headers, **options)

        yield ask


def refused_push(clone: Path, *arguments: str) -> str:
    """What git says when a push is refused; fails if it is not."""
    ended = subprocess.run(["git", "-C", str(clone), "push", *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode != 0, ended.stderr
    return ended.stderr


__all__ = ["Asking", "Practice", "refused_push", "running"]
