"""Threat T6: the caller's token ends at the gateway. No server ever sees it, over whichever transport; no file keeps it."""

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest

from tests.fixtures.gateway import ask, gateway, settings_of, until_listed
from tests.fixtures.running import ROOT, Entry, TransportInProcess, running, world_command
from tests.fixtures.tap import Tap, tap

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-01"), pytest.mark.deadline(240)]

TRANSPORTS: tuple[TransportInProcess, ...] = ("stdio", "sse", "websocket", "http")
EACH = 250


def _tapped(entry: Entry, stack: ExitStack) -> tuple[Entry, Tap]:
    place = urlsplit(entry["url"])
    found = stack.enter_context(tap(place.port or 0))
    return {**entry, "url": entry["url"].replace(f":{place.port}", f":{found.port}")}, found


async def test_the_callers_token_never_reaches_a_server(tmp_path: Path) -> None:
    """A thousand calls over four transports, by API and by MCP: every byte that goes to a server is looked at."""
    stdin = tmp_path / "stdin"
    taps: dict[str, Tap] = {}
    with ExitStack() as stack:
        script = f"tee -a {stdin} | exec {' '.join(world_command('stdio'))}"
        entries: dict[str, Entry] = {
            "stdio": {"transport": "stdio", "command": "sh", "args": ["-c", script], "cwd": str(ROOT)}
        }
        for transport in TRANSPORTS[1:]:
            entries[transport], taps[transport] = _tapped(stack.enter_context(running(transport)), stack)
        process = stack.enter_context(gateway(tmp_path, settings_of(entries)))
        token = process.token()
        secret = token.rsplit("_", 1)[1].encode()
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
            for name in entries:
                await until_listed(http, process.url, token, f"mcp_{name}_echo")
            await _call_all(http, process.url, token)
        seen = {name: found.text(masked=name == "websocket") for name, found in taps.items()}
        seen["stdio"] = stdin.read_bytes()
        assert all(body.count(b"hello-") >= EACH for body in seen.values()), {n: len(b) for n, b in seen.items()}
        assert [name for name, body in seen.items() if secret in body] == []
        assert not any(b"sqb_" in body for body in seen.values())
        for environ in _environments():
            assert secret not in environ
        assert process.end() == 0
    assert _keeping(secret, tmp_path) == []


def _keeping(secret: bytes, folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file() and secret in file.read_bytes()]


async def _call_all(http: httpx2.AsyncClient, url: str, token: str) -> None:
    places = anyio.Semaphore(8)

    async def by_api(name: str, number: int) -> None:
        async with places:
            answer = await http.post(
                f"{url}/api/v1/tools/mcp_{name}_echo/call",
                json={"arguments": {"text": f"hello-{number}"}},
                headers={"Authorization": f"Bearer {token}"},
            )
            assert answer.status_code == 200, answer.text
            assert answer.json()["is_error"] is False

    async def by_mcp(name: str, number: int) -> None:
        async with places:
            params = {"name": f"mcp_{name}_echo", "arguments": {"text": f"hello-{number}"}}
            answer = await ask(http, url, token, "tools/call", params)
            assert answer.status_code == 200

    async with anyio.create_task_group() as tasks:
        for number in range(EACH):
            for name in TRANSPORTS:
                tasks.start_soon(by_api if number % 2 else by_mcp, name, number)


def _environments() -> list[bytes]:
    """Command lines and environments of every process that we may look at."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            for part in ("cmdline", "environ"):
                try:
                    found.append((folder / part).read_bytes())
                except OSError:
                    continue
    assert found, sys.platform
    return found
