"""Runs the conformance judge on the gateway's MCP endpoint, with a full server behind it, and reads its verdict.

python -m tests.conformance.gateway [--server-era legacy|modern] [2025-11-25 ...]     # prints the scores
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from squidbot.core.domain.members import Principal
from tests.conformance.judge import DEADLINE, PACKAGE, REVISIONS, ROOT, Verdict, required, verdict_of
from tests.gateway.mcp.house import house
from tests.peers.install import node_program

SERVER = "everything"


def as_tester(app: ASGIApp) -> ASGIApp:
    """Everybody from this machine is the tester: the judge cannot send headers. Others are sent away."""
    local = [f"{host}:*" for host in ("127.0.0.1", "localhost")]
    allowed = TransportSecuritySettings(allowed_hosts=local, allowed_origins=[f"http://{host}" for host in local])
    guard = TransportSecurityMiddleware(allowed)

    async def admit(scope: Scope, receive: Receive, send: Send) -> None:
        refusal = await guard.validate_request(Request(scope, receive), is_post=False)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        scope["state"] = {"principal": Principal("tester", "Tester", "t", role="tester")}
        await app(scope, receive, send)

    return admit


@asynccontextmanager
async def gateway(era: str) -> AsyncIterator[str]:
    """The address at which the judge meets the full server through the gateway."""
    entry = {
        "command": sys.executable,
        "args": ["-W", "ignore", "-m", "tests.conformance.everything"],
        "cwd": str(ROOT),
        "protocol": era,
    }
    roles = {"tester": {"tools": {SERVER: ["*"]}}}
    async with house({SERVER: entry}, roles, admit=as_tester) as opened:
        yield opened.at(SERVER)


async def judge(revision: str, era: str) -> list[Verdict]:
    """Play every scenario of the revision against the gateway. Raises PeerMissing without the judge."""
    with tempfile.TemporaryDirectory() as folder:
        async with gateway(era) as url:
            command = [*node_program(PACKAGE), "server", "--url", url, "--requirements", revision, "-o", folder]
            with anyio.fail_after(DEADLINE):
                await anyio.run_process(command, cwd=ROOT, check=False, stderr=subprocess.STDOUT)
        wanted = set(required(revision, "server"))
        return _verdicts(Path(folder), wanted)


def _verdicts(folder: Path, wanted: set[str]) -> list[Verdict]:
    return [verdict_of(checks, folder, wanted) for checks in sorted(folder.rglob("checks.json"))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server-era", choices=("legacy", "modern"), default="modern")
    parser.add_argument("revisions", nargs="*", default=REVISIONS)
    options = parser.parse_args()
    failed = 0
    for revision in options.revisions:
        verdicts = anyio.run(judge, revision, options.server_era)
        wanted = required(revision, "server")
        passed = sum(verdict.passed for verdict in verdicts if verdict.is_required)
        failed += len(wanted) - passed
        print(f"{revision}, server in the {options.server_era} era: {passed} of {len(wanted)} required scenarios pass")
        for verdict in verdicts:
            if verdict.failures:
                print(f"  {'required' if verdict.is_required else 'unscored'} {verdict.scenario}")
                print("".join(f"    {line}\n" for line in verdict.failures))
        missing = set(wanted) - {verdict.scenario for verdict in verdicts}
        if missing:
            print(f"  not played: {sorted(missing)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
