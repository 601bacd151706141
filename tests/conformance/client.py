"""The conformance client on our MCPClient.

python tests/conformance/client.py URL               # what the judge runs
python -m tests.conformance.judge tests/conformance/client.py
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import httpx2

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from squidbot import MCPClient, MCPConfig
from squidbot.adapters.mcp.http_plain import PlainHTTP
from squidbot.adapters.mcp.network import Origin
from tests.conformance.script import CLIENT_METADATA, context, defaults, is_modern, play, scenario


async def browse(address: str) -> None:
    """A person's browser: the judge's sign-in page redirects at once, to the listener that waits for it."""
    async with httpx2.AsyncClient(follow_redirects=True, timeout=10) as browser:
        await browser.get(address)


async def accept(server: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """A person who accepts every form as it is proposed."""
    return {"action": "accept", "content": defaults(request.get("requestedSchema", {}))}


def on_loopback(transport: PlainHTTP, origin: Origin) -> bool:
    """Stands in for the rule that only what the settings name may be on loopback and without TLS.

    The judge's sign-in servers are, on ports that a server's own metadata tells: just what the rule is there to refuse.
    """
    return origin[1] in ("localhost", "127.0.0.1")


def entry(url: str) -> dict[str, Any]:
    """The judge's server, as settings would have it."""
    found: dict[str, Any] = {"url": url, "protocol": "modern" if is_modern() else "legacy", "max_retries": 0}
    if not scenario().startswith("auth/"):
        return found
    told = context()
    if scenario() == "auth/client-credentials-basic":
        auth = {"type": "client_credentials", "client_id": told["client_id"], "client_secret": told["client_secret"]}
    else:
        auth = {"type": "oauth", "client_metadata_url": CLIENT_METADATA}
        auth |= {key: told[key] for key in ("client_id", "client_secret") if key in told}
    return {**found, "auth": auth}


async def main(url: str) -> int:
    if scenario().startswith("auth/"):
        PlainHTTP._is_named = on_loopback  # type: ignore[method-assign, assignment]
    config = MCPConfig.from_dict({"servers": {"judge": entry(url)}})
    async with MCPClient(config, elicitation=accept, sign_in=browse) as client:
        if not await client.connect("judge"):
            print(client.status("judge").error, file=sys.stderr)
            return 1
        failed = 0

        async def call(name: str, arguments: Mapping[str, Any]) -> None:
            nonlocal failed
            result = await client.call_tool("judge", name, arguments)
            if result.is_error:
                failed = 1
                print(f"{name}: {result.text}", file=sys.stderr)

        await play({tool.tool: tool.raw["inputSchema"] for tool in client.get_available_tools("judge")}, call)
        return failed


if __name__ == "__main__":
    sys.exit(anyio.run(main, sys.argv[1]))
