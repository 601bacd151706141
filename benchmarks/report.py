"""Writes docs/benchmarks.md from what was measured last (benchmarks/results).

python -m benchmarks.report
"""

import json
from collections.abc import Iterable
from statistics import median
from typing import Any

from benchmarks.keeping import RESULTS, ROOT

PAGE = ROOT / "docs/benchmarks.md"
_HEAD = """# Measured

Everything here comes from one run of `make bench` on one machine ({cores} cores, {system}, Python {python}), written by
`python -m benchmarks.report`. Read the ratios: all that is compared took turns in the same run, on loopback, with the load on the
same cores. Medians stand first, the lowest and the highest round in brackets. Tests never assert times.

In short: {gateway}
{library} What a call costs does not grow with the number of tools, servers or clients.

![Calls per second of gateways with 64 connections](images/gateways.svg)
"""


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [names, ["---", *("---:" for _ in names[1:])], *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def spread(values: list[float], digits: int = 0) -> str:
    low, high = f"{min(values):,.{digits}f}", f"{max(values):,.{digits}f}"
    return f"{median(values):,.{digits}f} ({low} to {high})"


def in_short() -> dict[str, str]:
    """What the numbers come to, in a sentence each."""
    calls = {
        one["name"]: median(row["calls"] for row in one["connections"]["64"]) for one in read("gateways")["gateways"]
    }
    ours, floor = calls["squidbot"], calls["floor"]
    rivals = {name: rate for name, rate in calls.items() if name != "floor" and not name.startswith("squidbot")}
    fastest = max(rivals, key=lambda name: rivals[name])
    ratio = ours / rivals[fastest]
    others = f"{fastest}, the fastest of those that only pass calls on,"
    stands = f"{ratio:.1f} times as many calls as {others}" if ratio >= 1 else f"{ratio:.0%} of the calls of {others}"
    stdio = read("library")["stdio"]["32"]
    library = median(mine / theirs for mine, theirs in zip(stdio["MCPClient"], stdio["plain SDK"], strict=True))
    return {
        "gateway": f"with 64 connections, and everything on, a gateway answers {stands}\n"
        f"{ours / calls['plain SDK, both sides']:.1f} times as many as one made with the plain SDK, which checks and records nothing, and "
        f"{ours / floor:.0%} of what a bare\napplication without any check does on this machine.",
        "library": f"Over stdio the library makes {library:.1f} times as many calls as the plain SDK.",
    }


def gateways() -> str:
    found = read("gateways")
    ours = next(one for one in found["gateways"] if one["name"] == "squidbot")
    parts = [
        "## Gateways\n",
        "HTTP in, stdio out, one trivial echo server behind each, which is quick enough not to be what is measured; wrk with a new request",
        "id each time, and every answer checked. squidbot does all that it does for a team: token, role, limit, schema, an intent and an end on the disk",
        "for each call, metrics. The others pass on. `floor` is a bare ASGI application over a pipe, without any check: what the machine allows.\n",
    ]
    for connections in ("1", "16", "64"):
        mine = median(row["calls"] for row in ours["connections"][connections])
        rows = []
        for one in found["gateways"]:
            measured = one["connections"][connections]
            if not measured:
                continue
            calls = [row["calls"] for row in measured]
            rows.append(
                [
                    one["name"],
                    spread(calls),
                    f"{median(row['p50_ms'] for row in measured):.2f}",
                    f"{median(row['p99_ms'] for row in measured):.2f}",
                    f"{mine / median(calls):.2f}",
                    f"{sum(row['wrong'] + row['errors'] for row in measured):,.0f}",
                ]
            )
        plural = "" if connections == "1" else "s"
        head = [
            f"{connections} connection{plural}",
            "calls/s",
            "p50 ms",
            "p99 ms",
            "squidbot's calls to these",
            "wrong",
        ]
        parts.append(table(head, rows) + "\n")
    return "\n".join(parts)


def library() -> str:
    found = read("library")
    rows = []
    for upstream, by_callers in found.items():
        if upstream == "machine":
            continue
        for callers, rates in by_callers.items():
            for name, values in rates.items():
                ratios = [mine / theirs for mine, theirs in zip(values, rates["plain SDK"], strict=True)]
                rows.append([f"{name}, {upstream}, {callers} at once", spread(values), spread(ratios, 2)])
    words = "The same echo server called by a program. `the door` is `AgentMCPService`, with and without its record on disk.\n"
    return f"## The library\n\n{words}\n" + table(["", "calls/s", "beside the plain SDK"], rows) + "\n"


def door() -> str:
    found = read("door")
    rows = [
        [f"{name}, {callers}", spread(measured["calls"][name]), spread(measured["p50_ms"][name], 3)]
        for callers, measured in found.items()
        if callers != "machine"
        for name in measured["calls"]
    ]
    words = "Calls of a tool in memory through the guarded door: what the record costs, and nothing else.\n"
    return f"## The door\n\n{words}\n" + table(["", "calls/s", "p50 ms"], rows) + "\n"


def audit() -> str:
    found = read("audit")
    rows = [
        ["one commit of SQLite alone, the median", f"{found['bare_commit_ms']:.2f} ms"],
        ["a call's two records, one caller, the median", f"{found['one_caller_p50_ms']:.2f} ms"],
        [f"calls with {found['callers']} callers, two records each", f"{found['calls']:,.0f}/s"],
        ["p50 and p99 of those", f"{found['p50_ms']:.2f} and {found['p99_ms']:.2f} ms"],
        ["records verified", f"{found['verified_per_second']:,.0f}/s"],
    ]
    for name, searched in found.items():
        if not name.startswith("of "):
            continue
        count = f"{int(name.split()[1]):,}"
        for what, value in searched.items():
            per_second = what.endswith("per second")
            rows.append([f"of {count} records: {what}", f"{value:,.0f}" if per_second else f"{value:,.1f} ms"])
    return "## The record\n\n" + table(["", ""], rows) + "\n"


def start() -> str:
    found = read("start")
    rows = []
    for count, taken in found.items():
        if count == "machine":
            continue
        mine, sdk, bare = (median(taken[name]) for name in ("ours", "plain", "bare"))
        rows.append([count, f"{mine:.2f}", f"{sdk:.2f}", f"{bare:.2f}", f"{mine / sdk:.2f}", f"{mine / bare:.2f}"])
    words = "Seconds until the tools of all stdio servers are listed. `processes` is what the machine needs to start as many bare ones.\n"
    head = ["servers", "squidbot", "plain SDK, one by one", "processes", "beside the SDK", "beside the processes"]
    return f"## Start\n\n{words}\n" + table(head, rows) + "\n"


def cold() -> str:
    found = read("cold")
    rows = []
    for command, measured in found.items():
        if command == "machine":
            continue
        mine, theirs = zip(*measured["seconds"], strict=True)
        ratios = [one / other for one, other in measured["seconds"]]
        rows.append(
            [
                f"`squidbot {command}`",
                f"{median(mine) * 1000:,.0f}",
                f"{measured['beside']}: {median(theirs) * 1000:,.0f}",
                spread(ratios, 2),
            ]
        )
    return "## Commands from nothing\n\n" + table(["", "ms", "beside, ms", "ratio"], rows) + "\n"


def scale() -> str:
    found = read("scale")
    parts = [
        "## Scale\n",
        "How costs grow. `p50_ms` is what one caller waits for at the gateway, `calls` what sixteen get done in a second, whatever else is",
        "there; `decide_us`, `filter_ms`, `index_ms` and `search_ms` are one permission, the list of a role, the making of a search and one",
        "search, in one process; `list_ms` is `tools/list` over HTTP, all pages. `kb_each` is the memory of one idle client with an open stream.\n",
    ]
    for what in ("tools", "servers", "clients"):
        rows = found[what]
        columns = list(next(iter(rows.values())))
        body = [[f"{int(count):,}", *(f"{row[column]:,.2f}" for column in columns)] for count, row in rows.items()]
        parts.append(table([what, *columns], body) + "\n")
    return "\n".join(parts)


def main() -> None:
    machine = read("gateways")["machine"]
    parts = [_HEAD.format(**machine, **in_short()), gateways(), library(), door(), audit(), start(), cold(), scale()]
    PAGE.write_text("\n".join(parts))


if __name__ == "__main__":
    main()
