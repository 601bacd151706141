"""Calls per second and latency of gateways, all in one run, each beside the floor and beside squidbot.

python -m benchmarks.gateways [--rounds 3] [--seconds 4] [--only NAME ...]

The order changes from round to round, so that what else the machine does weighs on all. Needs wrk (apt install wrk).
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.gateways.chart import chart
from benchmarks.gateways.subjects import ENVIRONMENTS, HERE, ROOT, SUBJECTS, Running, Subject
from benchmarks.keeping import keep
from tests.peers.install import install_all

CONNECTIONS = (1, 16, 64)
_HEAD = f"  {'':<26}{'calls/s':>9}  {'(spread)':<20}{'p50 ms':>8}{'p99 ms':>9}{'squidbot is':>14}{'wrong':>7}{'MB':>6}"
Measured = dict[str, dict[int, list[dict[str, float]]]]


def measure(found: Running, connections: int, seconds: int) -> dict[str, float]:
    """One load on one gateway; every answer is checked."""
    headers = [part for pair in found.headers.items() for part in pair]
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", str(HERE / "load.lua")]
    run = subprocess.run(
        [*command, found.url, "--", found.tool, *headers],
        check=False,
        capture_output=True,
        text=True,
        timeout=seconds + 60,
    )
    line = next((line for line in run.stdout.splitlines() if line.startswith("RESULT ")), None)
    if line is None:
        raise RuntimeError(f"wrk said nothing:\n{run.stdout}{run.stderr}")
    said: dict[str, float] = json.loads(line.removeprefix("RESULT "))
    return {**said, "calls": said["right"] / said["seconds"], "memory_mb": resident(found.pid)}


def resident(pid: int) -> float:
    """Megabytes in memory of a process alone, without its children."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def one_round(subjects: list[Subject], found: Measured, seconds: int) -> None:
    for subject in subjects:
        print(f"  {subject.name} …", file=sys.stderr, flush=True)
        try:
            with subject.running() as running:
                measure(running, 16, 1)  # warm
                for connections in CONNECTIONS:
                    found[subject.name][connections].append(measure(running, connections, seconds))
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            print(f"  {subject.name} cannot be measured: {error}", file=sys.stderr)


def median(rows: list[dict[str, float]], key: str) -> float:
    return statistics.median(row[key] for row in rows) if rows else 0.0


def spread(rows: list[dict[str, float]], key: str) -> str:
    values = [row[key] for row in rows]
    return f"{min(values):,.0f} to {max(values):,.0f}" if values else "-"


def report(subjects: list[Subject], found: Measured) -> str:
    """The table, as text."""
    lines = []
    for connections in CONNECTIONS:
        ours = median(found["squidbot"][connections], "calls") if "squidbot" in found else 0.0
        lines += [f"{connections} connections", _HEAD]
        for subject in subjects:
            rows = found[subject.name][connections]
            if not rows:
                lines.append(f"  {subject.name:<26}{'not measured':>12}")
                continue
            calls = median(rows, "calls")
            ratio = f"{ours / calls:.2f} x" if ours and calls else ""
            wrong = sum(row["wrong"] + row["errors"] for row in rows)
            lines.append(
                f"  {subject.name:<26}{calls:>9,.0f}  {spread(rows, 'calls'):<20}{median(rows, 'p50_ms'):>8.2f}"
                f"{median(rows, 'p99_ms'):>9.2f}  {ratio:>12}{wrong:>7,.0f}{median(rows, 'memory_mb'):>6.0f}"
            )
        lines.append("")
    return "\n".join(lines)


def document(subjects: list[Subject], found: Measured, options: argparse.Namespace) -> dict[str, Any]:
    return {
        "rounds": options.rounds,
        "seconds": options.seconds,
        "gateways": [
            {"name": subject.name, "does": subject.does, "connections": found[subject.name]} for subject in subjects
        ],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--only", nargs="*", default=None, metavar="NAME")
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        print("wrk is missing, which makes the load. On Debian and Ubuntu: apt install wrk", file=sys.stderr)
        return 2
    subjects = [subject for subject in SUBJECTS if options.only is None or subject.name in options.only]
    install_all(ENVIRONMENTS)
    found: Measured = {subject.name: {connections: [] for connections in CONNECTIONS} for subject in subjects}
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
        turn = number % len(subjects)
        one_round(subjects[turn:] + subjects[:turn], found, options.seconds)
    print(report(subjects, found))
    if options.only is None:
        keep("gateways", document(subjects, found, options))
        bars = [(subject.name, median(found[subject.name][64], "calls")) for subject in subjects]
        (ROOT / "docs/images/gateways.svg").write_text(chart(bars, "Calls per second, 64 connections"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
