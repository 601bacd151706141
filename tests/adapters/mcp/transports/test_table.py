"""What the way to a server needs is loaded without keeping anybody waiting."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, importlib.abc, json, sys, threading

class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        asked.setdefault(name.partition(".")[0], set()).add(threading.current_thread() is threading.main_thread())

asked = {}
from squidbot import MCPClient, MCPConfig

async def main(transport, url):
    sys.meta_path.insert(0, Watch())
    entry = {"transport": transport, "url": url, "startup_timeout": 2}
    async with MCPClient(MCPConfig.from_dict({"servers": {"there": entry}})) as client:
        await client.connect("there")

asyncio.run(main(*sys.argv[1:]))
print(json.dumps({name: sorted(where) for name, where in asked.items()}))
"""


@pytest.mark.parametrize(
    ("transport", "url", "library"),
    [
        ("sse", "http://127.0.0.1:9/", "httpx2"),
        ("http", "http://127.0.0.1:9/", "mcp"),
        ("websocket", "ws://127.0.0.1:9/", "websockets"),
    ],
)
@pytest.mark.requirement("B-14")
def test_the_first_way_to_the_network_is_loaded_beside_the_loop(transport: str, url: str, library: str) -> None:
    """It takes half a second, in which every other server's calls would stand still."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, transport, url], capture_output=True, text=True, timeout=60, check=True
    )
    asked = json.loads(run.stdout)
    assert asked[library] == [False]
