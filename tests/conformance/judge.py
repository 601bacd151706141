"""Runs the conformance judge on a client program and reads its verdict.

python -m tests.conformance.judge tests/conformance/plain.py [2026-07-28 ...]     # prints the scores
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.peers.install import PEERS, node_program

ROOT = Path(__file__).resolve().parents[2]
REVISIONS = ("2025-11-25", "2026-07-28")
PACKAGE = "@modelcontextprotocol/conformance"
DEADLINE = 300.0
"""Seconds for all scenarios of one revision."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge found in one scenario."""

    scenario: str
    is_required: bool
    failures: tuple[str, ...]
    last_words: str = ""
    """What a client that failed said on stderr."""

    @property
    def passed(self) -> bool:
        return not self.failures


def required(revision: str, side: str = "client") -> list[str]:
    """The scenarios for a side that a revision requires, as the judge's own file lists them."""
    text = (PEERS / "node" / "node_modules" / PACKAGE / "requirements" / f"{revision}.yaml").read_text(encoding="utf-8")
    section = re.search(rf"^{side}:\n((?:  - .*\n|\n)*)", text, re.MULTILINE)
    return re.findall(r"^  - (\S+)", section[1], re.MULTILINE) if section else []


def judge(client: Path, revision: str) -> list[Verdict]:
    """Play every scenario of the revision against the client program. Raises PeerMissing without the judge."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{sys.executable} tests/conformance/turn.py {client.relative_to(ROOT)}"
        patience = str(int(DEADLINE * 1000))  # of one client, which first waits for its turn
        options = ("--command", program, "--requirements", revision, "--timeout", patience, "-o", folder)
        subprocess.run(
            [*node_program(PACKAGE), "client", *options],
            cwd=ROOT,
            env=os.environ | {"PYTHONWARNINGS": "ignore", "SQUIDBOT_TEST_TURNS": folder},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=DEADLINE,
            check=False,
        )
        wanted = set(required(revision))
        return [verdict_of(checks, Path(folder), wanted) for checks in sorted(Path(folder).rglob("checks.json"))]


def verdict_of(checks: Path, folder: Path, wanted: set[str]) -> Verdict:
    """What the judge wrote down of one scenario."""
    # A scenario's folder is its name and the time: auth/basic-cimd-2026-11-18T08-00-00-000Z
    name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", str(checks.parent.relative_to(folder)))
    name = name if name in wanted else name.removeprefix("server-")
    found = json.loads(checks.read_text(encoding="utf-8"))
    failures = tuple(
        f"{check['id']}: {check.get('errorMessage') or check.get('description')}"
        for check in found
        if check["status"] == "FAILURE"
    )
    if not found:
        failures = ("no check ran",)
    stderr = checks.parent / "stderr.txt"
    is_told = bool(failures) and stderr.exists()
    last_words = stderr.read_text(encoding="utf-8", errors="replace")[-500:] if is_told else ""
    return Verdict(name, name in wanted, failures, last_words)


def main() -> int:
    client, revisions = ROOT / sys.argv[1], sys.argv[2:] or REVISIONS
    for revision in revisions:
        verdicts = judge(client, revision)
        scored = [verdict for verdict in verdicts if verdict.is_required]
        passed = sum(verdict.passed for verdict in scored)
        print(f"{revision}: {passed} of {len(required(revision))} required scenarios pass")
        for verdict in verdicts:
            if verdict.failures:
                print(f"  {'required' if verdict.is_required else 'unscored'} {verdict.scenario}")
                print("".join(f"    {line}\n" for line in (*verdict.failures, *verdict.last_words.splitlines()[-3:])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
