"""The matrix of faults, transports and outcomes: for a terminal, and as the page docs/faults.md."""

from collections.abc import Iterable, Mapping, Sequence

from tests.faults.case import TRANSPORTS, Case, Transport
from tests.faults.judge import KEPT, LAG, NEIGHBOUR, RISE, SLACK, Verdict

ROWS: Mapping[int, str] = {
    0: "none: what the others are held against",
    1: "the command or its folder does not exist or cannot be run",
    2: "ends at start, or nobody listens",
    3: "dies after the opening",
    4: "hangs while it is opened",
    5: "starts slowly",
    6: "ignores the probe for the newer revision, or ends at it",
    7: "lies about its revision, or speaks one that is too old",
    8: "names a revision that does not exist",
    9: "answers the opening with what is no answer",
    10: "prints what is no message",
    11: "closes its output and lives on",
    12: "floods its standard error",
    13: "is gone in the middle of a call",
    14: "does its work, and is gone before it can say so",
    15: "never answers a call",
    16: "reports progress and never answers",
    17: "answers a byte at a time",
    18: "answers too late",
    19: "answers with more than is allowed",
    20: "answers without end",
    21: "answers with too many parts",
    22: "packs its answer badly, or as a bomb",
    23: "nests its answer too deep",
    24: "answers with what cannot be parsed",
    25: "answers in broken UTF-8",
    26: "answers with text and numbers that are hard to keep",
    27: "answers twice, unasked, or under another's id",
    28: "says two things at once",
    29: "breaks its promise of structured content",
    30: "promises by a schema that freezes whoever checks it",
    31: "answers with odd or empty blocks",
    32: "lists without end",
    33: "lists more than anybody can use",
    34: "lists one bad tool, or nothing that is a list",
    35: "announces changes without end",
    36: "floods with notifications or questions",
    37: "does not read",
    38: "is stuck, burning or frozen",
    40: "refuses with an HTTP status",
    41: "wants a sign-in, and points at a trap for it",
    42: "breaks its HTTP answer off",
    43: "hangs in the middle of an HTTP answer",
    44: "answers like a web server that has never heard of MCP",
    45: "opens a stream in which the answer never comes",
    46: "answers with much, but not too much",
    47: "names a wrong place for messages",
    48: "refuses messages beside a stream that lives",
    49: "redirects, or names addresses that are not its own",
    50: "speaks no HTTP, or TLS that cannot be trusted",
    51: "breaks the rules of WebSocket",
    52: "is behind a bad network",
    55: "leaves processes behind",
    56: "does not end, or ends slowly",
}


def outcome(verdict: Verdict | None) -> str:
    """One cell of the matrix."""
    if verdict is None:
        return ""
    if not verdict.held:
        return "BROKEN" if verdict.broken else "LATE" if verdict.late else "MISSED"
    kind = verdict.outcome.partition(":")[0]
    return kind if kind == "ok" else f"{kind}, {verdict.seconds:.1f} s"


def matrix(cases: Sequence[Case], verdicts: Mapping[str, Verdict]) -> Iterable[tuple[Case, list[str]]]:
    """Each case that was tried, with its outcomes in the order of the transports."""
    for case in sorted(cases, key=lambda case: case.row):
        found = {transport: verdicts.get(f"{case.name}-{transport}") for transport in case.over}
        if any(found.values()):
            yield case, [outcome(found.get(transport)) for transport in TRANSPORTS]


def table(cases: Sequence[Case], verdicts: Mapping[str, Verdict]) -> str:
    """The matrix for a terminal."""
    lines = [f"{'fault':<42}" + "".join(f"{transport:<22}" for transport in TRANSPORTS)]
    lines += [f"{case.name:<42}" + "".join(f"{cell:<22}" for cell in cells) for case, cells in matrix(cases, verdicts)]
    return "\n".join(line.rstrip() for line in lines)


def summary(verdicts: Sequence[Verdict]) -> list[str]:
    """The promise in figures, a line each."""
    over = max((verdict.seconds - verdict.limit for verdict in verdicts), default=0.0)
    kinds = [verdict.outcome.partition(":")[0] for verdict in verdicts]
    return [
        (
            f"{len(verdicts)} cells: {kinds.count('ok')} answered, {kinds.count('error')} calls and "
            f"{kinds.count('no connection')} connections ended in an error that says why"
        ),
        (
            f"broken: {sum(bool(verdict.broken) for verdict in verdicts)}, "
            f"late: {sum(bool(verdict.late) and not verdict.broken for verdict in verdicts)}, "
            f"figures missed: {sum(bool(verdict.missed) and verdict.in_doubt and not verdict.late for verdict in verdicts)}"
        ),
        f"measured again, alone: {sum(verdict.attempts > 1 for verdict in verdicts)}",
        f"longest past a deadline: {max(over, 0.0):.2f} s (at most {SLACK:g})",
        f"slowest neighbour, p99: {_worst(verdicts, 'p99') * 1000:.0f} ms (at most {NEIGHBOUR * 1000:g})",
        f"longest block of the event loop: {_worst(verdicts, 'lag') * 1000:.0f} ms (at most {LAG * 1000:g})",
        (
            f"most memory taken: {_worst(verdicts, 'risen'):.0f} MB (at most {RISE:g}), "
            f"kept: {_worst(verdicts, 'kept'):.0f} MB (at most {KEPT:g})"
        ),
    ]


def _worst(verdicts: Sequence[Verdict], figure: str) -> float:
    return max((getattr(verdict, figure) for verdict in verdicts), default=0.0)


BY_HAND = "## Promises, as numbers"
"""Where the part of docs/faults.md begins that is written by hand, after other programs than the runner."""


def page(cases: Sequence[Case], verdicts: Mapping[str, Verdict], *, before: str) -> str:
    """The whole of docs/faults.md; what was written by hand into the one `before` stays."""
    lines = [
        "# Servers that misbehave",
        "",
        "Each fault below is a small server of its own in [tests/faults/servers](../tests/faults/servers), run beside a healthy one in one",
        "`MCPClient`. Whatever the faulty one does, only its own calls are affected: its caller gets an error that names",
        "the server and the cause within the deadline, the neighbour goes on, and nothing is left of it afterwards.",
        "",
        "`ok` means that the call was answered (the fault is one that a client can see past), `error` that it failed with a reason, `no connection`",
        "that the server was refused with one; beside it the seconds that it took. A call had 1.5 s and a connection 2 s, unless the fault needs more to be made.",
        "`http` is streamable HTTP that answers by a stream of events, `json` by a body. An empty cell was not tried: variants of one fault are",
        "sampled over the transports in turn, and `--all` tries every one. Cells run two at a time; one that was late (`LATE`) or missed a figure",
        "(`MISSED`), and nothing else, was measured again, alone: once, and again only while others used more than a quarter of the machine. The last",
        "measurement is the one shown. `BROKEN` is never tried twice. Time in which the machine had no processor for us is taken off: it says nothing",
        "about squidbot.",
        "",
        "This page is written by `python -m tests.faults.run --write`; `make faults` prints the same matrix. Its last part,",
        "[promises, as numbers](#promises-as-numbers), is what the programs of `tests/faults/promises` print in a full dose.",
        "",
        *[f"- {line}" for line in summary(list(verdicts.values()))],
    ]
    row: int | None = None
    for case, cells in matrix(cases, verdicts):
        if case.row != row:
            row = case.row
            lines += ["", f"## {row}. {ROWS[row]}", "", _line(["fault", *TRANSPORTS]), _line(["---"] * 6)]
        lines.append(_line([f"`{case.name}`", *cells]))
    found = before.find(BY_HAND)
    return "\n".join(lines) + "\n" + (f"\n{before[found:]}" if found >= 0 else "")


def _line(cells: Sequence[str | Transport]) -> str:
    return f"| {' | '.join(cells)} |"
