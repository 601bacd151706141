"""What the tests of all toolkits share: a door with real servers behind it, and what an agent did there."""

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import anyio

from squidbot import AgentMCPService, create_agent_service
from squidbot.config.load import load_settings
from tests.fixtures.running import ROOT

ROLE = "backend_developer"
WORKSHOP = ("meet", "write", "introduce", "draw", "count", "fail")
"""What the role may use there without a condition; `push` only for some branches, and `secret` not at all."""


@dataclass(frozen=True)
class Call:
    """A tool call as a scripted model makes it; arguments given as text are sent as they are."""

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)

    @property
    def json(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class Answer:
    """What came back to the model for one call, and what the framework keeps of it beside."""

    text: str
    failed: bool
    beside: dict[str, Any] | None = None
    pictures: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Seen:
    """One whole run: what the model was offered, the answers in the order of its calls, its last words."""

    offered: dict[str, dict[str, Any]]
    answers: list[Answer]
    last: str


Turns: TypeAlias = Sequence[Sequence[Call]]
Play: TypeAlias = Callable[[AgentMCPService, Turns], Awaitable[Seen]]
"""Let an agent of a framework run with a model that makes these calls, turn by turn, and then says "done"."""


@asynccontextmanager
async def workplace(folder: Path, *, with_git: bool = False) -> AsyncIterator[AgentMCPService]:
    """The door over the workshop, and over the bundled git server too, on a repository of its own."""
    repository = folder / "repository"
    await anyio.run_process(["git", "init", "--quiet", "--initial-branch", "main", str(repository)])
    workshop = Path(__file__).with_name("workshop.py")
    grants = [*WORKSHOP, {"tool": "push", "when": {"branch": ["feature/*"]}}]
    settings = folder / "squidbot.json"
    servers: dict[str, Any] = {
        # Where the frameworks are, squidbot is not installed, only found.
        "git": {"args": ["--repository", str(repository)], "env": {"PYTHONPATH": str(ROOT)}, "enabled": with_git},
        "workshop": {"command": sys.executable, "args": ["-I", "-S", str(workshop)]},
    }
    document = {"tools": {"mcp_servers": servers}, "roles": {ROLE: {"tools": {"workshop": grants}}}}
    settings.write_text(json.dumps(document), encoding="utf-8")
    async with create_agent_service(load_settings(settings)) as door:
        yield door
