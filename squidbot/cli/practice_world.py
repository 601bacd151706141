"""The practice world beside a command: found if it runs, else run for as long as the command takes."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus
from anyio.from_thread import start_blocking_portal

from squidbot.practice.__main__ import serve
from squidbot.practice.world import WorldInUse

if TYPE_CHECKING:
    from squidbot.config.schema import Settings

PREFIX = "SQUIDBOT_PRACTICE_"
"""Settings that name a variable that begins so want the practice world."""
_DEVELOPERS = ("backend_developer", "frontend_developer", "ai_engineer")
_VARIABLES = {
    "URL": "web_url",
    "GITHUB_URL": "github_api_url",
    "JIRA_URL": "jira_url",
    "USER": "jira_username",
    "TOKEN": "github_token",
    "REPOSITORY": "repository",
}


def is_wanted(settings_file: Path) -> bool:
    """Whether the settings refer to the practice world, and nobody has said where it is."""
    try:
        return f"{PREFIX}URL" not in os.environ and PREFIX in settings_file.read_text("utf-8", errors="replace")
    except OSError:
        return False


def practice_settings(settings: "Settings", directions: Mapping[str, Any], *, story: bool = False) -> "Settings":
    """Settings for the practice world: all nine roles, four servers, the same record as ever."""
    from squidbot.config.documents import Document
    from squidbot.config.load import check_document

    token, repository = directions["github_token"], directions["repository"]
    jira = {"JIRA_URL": directions["jira_url"], "JIRA_USERNAME": directions["jira_username"], "JIRA_API_TOKEN": token}
    servers = {
        "git": {"args": ["--repository", repository]},
        "github": {"env": {"GITHUB_API_URL": directions["github_api_url"], "GITHUB_TOKEN": token}},
        "jira": {"env": jira},
        "filesystem": {"args": [repository]},
    }
    document = {
        "tools": {"mcp_servers": servers},
        "roles": {role: {"tools": {"filesystem": ["*"]}} for role in _DEVELOPERS},
        "audit": settings.audit.model_dump(exclude_unset=True),
        # The story tries every closed door on purpose.
        "alerts": {"rules": {"refusals": {"enabled": not story}}},
    }
    return check_document(Document(document, {}), source=None).resolved()


def variables(directions: Mapping[str, Any]) -> dict[str, str]:
    """What the settings call where things are in the world."""
    return {f"{PREFIX}{name}": str(directions[key]) for name, key in _VARIABLES.items()}


@contextmanager
def practice_world(folder: Path, *, port: int = 0, reset: bool = False, join: bool = True) -> Iterator[dict[str, Any]]:
    """Where everything is in the world of `folder`, which answers while this is open.

    With `join`, one that runs already will do. Raises WorldInUse, OSError, GitFailed.
    """

    async def run(*, task_status: TaskStatus[str] = TASK_STATUS_IGNORED) -> None:
        await serve(folder, port, task_status.started, reset=reset)

    with start_blocking_portal() as portal:
        try:
            running, _ = portal.start_task(run)
        except WorldInUse:
            if not join:
                raise
            yield _directions(folder)
            return
        try:
            yield _directions(folder)
        finally:
            running.cancel()


def _directions(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "practice.json").read_text("utf-8"))
    return found
