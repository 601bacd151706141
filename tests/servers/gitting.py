"""Real repositories for the tests of the git server, and a client that talks to it."""

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp_types import CallToolResult, TextContent

from squidbot.servers.git.repositories import open_all
from squidbot.servers.git.server import build_server


def git(folder: Path, *arguments: str | bytes) -> str:
    """A command by hand, as a person at a terminal."""
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode("utf-8", "backslashreplace").strip()


def made(folder: Path, *, identity: bool = True) -> Path:
    """An empty repository."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    if identity:
        git(folder, "config", "user.name", "Ada")
        git(folder, "config", "user.email", "ada@example.org")
    return folder


def commit(folder: Path, files: dict[str, str | bytes], message: str = "change") -> str:
    """Files written and committed by hand; the id of the commit."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    return git(folder, "rev-parse", "HEAD")


def remote_of(folder: Path) -> Path:
    """A bare repository beside `folder`, which has it as 'origin' and has pushed what it has."""
    bare = folder.with_name(f"{folder.name}.git")
    git(folder.parent, "init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    git(folder, "remote", "add", "origin", str(bare))
    git(folder, "push", "--quiet", "--all", "--set-upstream")
    return bare


def clone_of(bare: Path, name: str) -> Path:
    """A colleague's clone."""
    folder = bare.with_name(name)
    git(bare.parent, "clone", "--quiet", str(bare), str(folder))
    git(folder, "config", "user.name", "Bob")
    git(folder, "config", "user.email", "bob@example.org")
    return folder


def executable(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


def everything(folder: Path) -> dict[str, bytes]:
    """All files of the working tree, to see that nothing has changed."""
    files = (path for path in folder.rglob("*") if ".git" not in path.parts and path.is_file())
    return {os.fsdecode(path.relative_to(folder)): path.read_bytes() for path in files}


@asynccontextmanager
async def served(*folders: Path, deadline: float = 60) -> AsyncIterator[Client]:
    server = build_server(open_all(folders), deadline=deadline)
    async with Client(server, mode="legacy", read_timeout_seconds=50) as client:
        yield client


def text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def done(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text(result)
    return result.structured_content


async def told(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text(result)
    return text(result)


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error, text(result)
    return text(result)
