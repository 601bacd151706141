"""`squidbot audit`: the record of every attempt, followed, searched, proved whole, exported and pruned."""

import csv
import io
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

import click

from squidbot.cli.errors import CommandError
from squidbot.cli.exits import DONE, FAILED, INTERRUPTED, USAGE
from squidbot.cli.grammar import Group, RoleName, ServerName
from squidbot.cli.invocation import Invocation
from squidbot.cli.moments import moment
from squidbot.core.domain.audit import (
    OUTCOMES,
    RECORD_COLUMNS,
    Outcome,
    RecordFilter,
    ToolExecution,
    Usage,
    Verification,
    record_json,
)
from squidbot.core.domain.callers import OPERATOR
from squidbot.core.domain.shapes import verification_json
from squidbot.core.domain.text import visible

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_SHOWN = 60


@click.group(cls=Group, example="squidbot audit tail --role backend_developer --since 1d")
def audit() -> None:
    """The record of every call: follow, search, verify, export."""


def _filters(command: Any) -> Any:
    """The options that say which records are wanted."""
    for option in (
        click.option("--since", metavar="WHEN", help="A date, a date and time, or 15m, 12h, 7d ago."),
        click.option("--outcome", type=click.Choice(OUTCOMES), help="Only attempts that ended so."),
        click.option("--tool", metavar="GLOB", help="Only this tool."),
        click.option("--server", type=ServerName(), metavar="GLOB", help="Only this server."),
        click.option("--role", type=RoleName(), metavar="GLOB", help="Only this role."),
    ):
        command = option(command)
    return command


@audit.command("tail", example="squidbot audit tail -f --outcome refused")
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes, until interrupted.")
@click.option(
    "-n", "--lines", type=click.IntRange(min=0), default=20, show_default=True, help="How many of the newest."
)
@_filters
@click.pass_obj
def tail(call: Invocation, /, *, follow: bool, lines: int, **wanted: Any) -> int:
    """Show the newest records, oldest first."""
    only = _filter(**wanted)

    async def ask() -> list[ToolExecution]:
        async with call.store() as store:
            seen = await store.heads()
            newest = [record async for record in store.records(only, newest=lines)]
            if follow:
                _show_lines(call, newest)
                shown = {record.id for record in newest}
                # From before the look at the newest: nothing that was written meanwhile is missed, or shown twice.
                async for record in store.follow(only, after=seen):
                    if record.id not in shown:
                        _show_lines(call, [record])
            return newest

    try:
        found = call.run(ask)
    except KeyboardInterrupt:
        if not follow:
            raise
        return INTERRUPTED  # no error to tell: so it ends, and every line is a record
    if call.json:
        call.output.document([record_json(record) for record in found])
    elif found:
        call.output.table(("time", "role", "tool", "outcome", "ms", "arguments", "id"), [_row(item) for item in found])
    elif lines:
        call.output.note("No records yet." if only == RecordFilter() else "No record fits.")
    return DONE


@audit.command("show", example="squidbot audit show 0193a1b2c3d4")
@click.argument("record_id", metavar="ID")
@click.pass_obj
def show(call: Invocation, record_id: str) -> None:
    """Show one record whole. The beginning of its id is enough."""

    async def ask() -> ToolExecution | None:
        async with call.store() as store:
            return await store.get(record_id) or await store.get_by_beginning(record_id)

    record = call.run(ask)
    if record is None:
        raise CommandError(
            f"there is no record {record_id!r}, or more than one begins so",
            code="unknown_record",
            exit_code=USAGE,
            hint="'squidbot audit tail' shows ids.",
        )
    if call.json:
        call.output.document(record_json(record))
        return
    call.output.heading(f"{record.server}/{record.tool}" if record.server else record.tool, beside=record.outcome)
    for name, value in record_json(record).items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        call.output.write(call.output.clean(f"{name:<16} {text}".replace("\n", f"\n{'':<17}")))


@audit.command("stats", example="squidbot audit stats --since 7d")
@_filters
@click.pass_obj
def stats(call: Invocation, /, **wanted: Any) -> None:
    """Show usage by role, server and tool: calls, errors, refusals, time."""
    only = _filter(**wanted)

    async def ask() -> list[Usage]:
        async with call.store() as store:
            return await store.usage(only)

    found = call.run(ask)
    if call.json:
        call.output.document([asdict(usage) for usage in found])
    elif found:
        headers = ("role", "server", "tool", "calls", "errors", "refused", "mean ms", "worst ms")
        call.output.table(headers, [_usage_row(usage) for usage in found])
    else:
        call.output.note("No records yet.")


@audit.command("verify", example="squidbot audit verify")
@click.pass_obj
def verify(call: Invocation) -> int:
    """Prove that no record was changed, removed, inserted, reordered or cut off; exits with 1 if one was."""

    async def ask() -> Verification:
        async with call.store() as store:
            return await store.verify()

    with call.output.waiting("Checking every record…"):
        verdict = call.run(ask)
    if call.json:
        call.output.document(verification_json(verdict))
    elif verdict.ok:
        chains = f" in {verdict.chains} chains" if verdict.chains != 1 else ""
        call.output.labelled("ok", f"{verdict.records:,} records{chains}, none of them touched.")
    else:
        bad = dict(verdict.first_bad or {})
        hint = "Keep a copy of the database and of audit.head as they are, and compare them with a backup."
        call.output.labelled("error", f"{_place(bad)}{bad.get('reason')}", hint=hint)
    return DONE if verdict.ok else FAILED


@audit.command("export", example="squidbot audit export --format csv --since 30d --output audit.csv")
@click.option("--format", "form", type=click.Choice(["jsonl", "csv"]), default="jsonl", show_default=True)
@click.option("-o", "--output", "file", type=click.Path(path_type=Path), help="A file; else standard output.")
@_filters
@click.pass_obj
def export(call: Invocation, /, form: str, file: Path | None, **wanted: Any) -> None:
    """Write records as JSON lines or CSV, oldest first."""
    only = _filter(**wanted)

    async def ask(target: TextIO) -> int:
        line, count = _LINES[form], 0
        shown = visible if target.isatty() else str
        async with call.store() as store:
            if form == "csv":
                target.write(_csv_line(RECORD_COLUMNS))
            async for record in store.records(only):
                target.write(shown(line(record)))
                count += 1
        return count

    if file is None:
        count = call.run(lambda: ask(sys.stdout))
    else:
        try:
            with file.open("w", encoding="utf-8", newline="") as target:
                count = call.run(lambda: ask(target))
        except OSError as error:
            raise CommandError(f"cannot write {str(file)!r}: {error.strerror}", code="usage") from None
    call.output.note(f"{count:,} records.")


@audit.command("prune", example="squidbot audit prune --before 2026-01-01")
@click.option("--before", required=True, metavar="DATE", help="A date, or 90d ago: older records go.")
@click.pass_obj
def prune(call: Invocation, before: str) -> None:
    """Remove old records; what stays can still be verified, and that something was removed is recorded."""
    until = moment(before)
    if until > moment("0s"):
        raise CommandError(
            f"{before!r} is yet to come: every record would go",
            code="usage",
            hint="Give a day of the past, or 0s for all records.",
        )

    async def ask() -> int:
        async with call.store() as store:
            return await store.prune(until, caller=call.caller(OPERATOR))

    removed = call.run(ask)
    if call.json:
        call.output.document({"removed": removed, "before": until})
    else:
        records = "1 record" if removed == 1 else f"{removed:,} records"
        call.output.write(f"Removed {records} from before {until}.")


def _place(bad: Mapping[str, Any]) -> str:
    """Where the first bad row is, as far as that can be told."""
    match bad:
        case {"sequence": int(number), "chain": chain}:
            return f"record {bad.get('id') or '?'} (number {number} of chain {chain!r}): "
        case {"chain": str(chain)}:
            return f"chain {chain!r}: "
        case _:
            return ""


def _filter(
    role: str | None, server: str | None, tool: str | None, outcome: Outcome | None, since: str | None
) -> RecordFilter:
    return RecordFilter(
        role=role, server=server, tool=tool, outcome=outcome, since=moment(since) if since is not None else None
    )


def _show_lines(call: Invocation, records: list[ToolExecution]) -> None:
    for record in records:
        if call.json:
            text = json.dumps(record_json(record), ensure_ascii=False)
            call.output.write(visible(text) if call.output.on_terminal else text)
        else:
            time, role, tool, outcome, duration, arguments, identity = _row(record)
            line = f"{time}  {role:<20} {tool:<36} {outcome:<12} {duration:>7} ms  {arguments}  {identity}"
            call.output.write(call.output.clean(line, newlines=False))


def _row(record: ToolExecution) -> tuple[str, ...]:
    what = f"{record.server}/{record.tool}" if record.server else record.tool
    # Which of the two it was stands last in the arguments, and may be cut off here.
    kind = "revoke" if record.kind == "grant" and '"enabled":false' in record.arguments else record.kind
    arguments = record.arguments if len(record.arguments) <= _SHOWN else f"{record.arguments[:_SHOWN]}…"
    return (
        record.timestamp[:19].replace("T", " "),
        record.role,
        what if kind in ("call", what) else f"{kind} {what}",
        record.outcome,
        f"{record.duration * 1000:.1f}",
        arguments,
        record.id,
    )


def _usage_row(usage: Usage) -> tuple[str, ...]:
    counts = (usage.calls, usage.errors, usage.refused)
    times = (usage.mean_seconds, usage.worst_seconds)
    names = (usage.role, usage.server, usage.tool)
    return (*names, *(f"{count:,}" for count in counts), *(f"{time * 1000:.1f}" for time in times))


def _jsonl_line(record: ToolExecution) -> str:
    return json.dumps(record_json(record), ensure_ascii=False) + "\n"


def _csv_record(record: ToolExecution) -> str:
    return _csv_line([_inert(getattr(record, name)) for name in RECORD_COLUMNS])


def _inert(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _csv_line(cells: Any) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


_LINES: dict[str, Callable[[ToolExecution], str]] = {"jsonl": _jsonl_line, "csv": _csv_record}
