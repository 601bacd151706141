"""The two streams of a command: answers on stdout, everything else on stderr, dressed up for terminals only."""

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import click

from squidbot.cli.errors import CommandError
from squidbot.core.domain.redaction import Redactor
from squidbot.core.domain.text import visible
from squidbot.core.ports import OnProgress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_SECONDS_BETWEEN_LINES = 0.1


class Output:
    """Prints a command's answer, and what a person should know meanwhile."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._bars: list[Progress] = []
        self.redactor = Redactor()
        """Takes out what appears nowhere, whoever says it."""

    @property
    def on_terminal(self) -> bool:
        """Whether a person reads the answer, so that nothing in it may play with the terminal."""
        return sys.stdout.isatty()

    @property
    def dressed(self) -> bool:
        """Whether the answer goes to a terminal that takes colour."""
        return _is_dressed(sys.stdout)

    @property
    def dressed_aside(self) -> bool:
        """Whether what is said beside the answer goes to a terminal that takes colour."""
        return _is_dressed(sys.stderr)

    def clean(self, text: str, *, newlines: bool = True) -> str:
        """Foreign words as they may be shown: no secret, no control character."""
        return visible(self.redactor.text(text), newlines=newlines)

    def document(self, value: Any) -> None:
        """The whole answer as JSON."""
        self.write(json.dumps(value, indent=2, default=str))

    def write(self, text: str) -> None:
        """Words of ours, or an answer that is wanted to the letter."""
        try:
            sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
            sys.stdout.flush()
        except BrokenPipeError:
            # `squidbot tools list | head`: the rest is not wanted, and Python must not complain about it at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def heading(self, text: str, *, beside: str = "") -> None:
        """A title, with a word beside it."""
        text, beside = self.clean(text, newlines=False), self.clean(beside, newlines=False)
        if self.dressed:
            text, beside = click.style(text, bold=True), click.style(beside, dim=True)
        self.write(f"{text}  {beside}".rstrip())

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Rows under headers: ruled on a terminal, in plain columns otherwise."""
        cells = [[self.clean(cell, newlines=False) for cell in row] for row in rows]
        if self.dressed:
            self._ruled(headers, cells)
        else:
            self.write(_columns([[header.upper() for header in headers], *cells]))

    def json_text(self, value: Any) -> None:
        """JSON for people: coloured on a terminal, and nothing in it unseen."""
        text = json.dumps(value, indent=2, ensure_ascii=False)
        if not self.dressed:
            self.write(visible(text) if self.on_terminal else text)
            return
        from rich.highlighter import JSONHighlighter
        from rich.text import Text

        _console(sys.stdout).print(JSONHighlighter()(Text(visible(text))), soft_wrap=True)

    def labelled(self, label: str, text: str, *, hint: str | None = None) -> None:
        """A verdict and its words, with what to do about it on the next line."""
        text = self.clean(text).replace("\n", "\n  ")
        self.write(f"{click.style(label, fg=_COLORS.get(label), bold=True) if self.dressed else label}: {text}")
        if hint:
            self.write(f"  {self.clean(hint)}")

    def tell(self, who: str, what: str) -> None:
        """One line of something that happens, beside the answer if that is JSON."""
        who, what = self.clean(who), self.clean(what, newlines=False)
        word = who.strip()
        if _is_dressed(sys.stderr if self.as_json else sys.stdout):
            who = who.replace(word, click.style(word, fg=_COLORS.get(word, "cyan"), bold=True))
        (self._aside if self.as_json else self.write)(f"{who} {what}")

    def note(self, text: str) -> None:
        """A word beside the answer, on stderr."""
        text = self.clean(text)
        self._aside(click.style(text, dim=True) if _is_dressed(sys.stderr) else text)

    def fail(self, error: CommandError, *, traceback: BaseException | None = None) -> int:
        """Say why the command ends; the answer is its exit code."""
        message, hint = self.clean(str(error)), self.clean(error.hint) if error.hint else None
        if traceback is not None:
            import traceback as tracebacks

            self._aside(self.clean("".join(tracebacks.format_exception(traceback))))
        if self.as_json:
            self.write(json.dumps({"error": {"code": error.code, "message": message, "hint": hint}}, indent=2))
            return error.exit_code
        dressed = _is_dressed(sys.stderr)
        self._aside(f"{click.style('error:', fg='red', bold=True) if dressed else 'error:'} {message}")
        if hint:
            self._aside(f"{click.style('hint:', fg='cyan', bold=True) if dressed else 'hint:'}  {hint}")
        return error.exit_code

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """A spinner while something is waited for, where somebody can see it."""
        if not _is_dressed(sys.stderr):
            yield
            return
        with _console(sys.stderr).status(text, spinner="dots"):
            yield

    @contextmanager
    def progress(self, text: str) -> Iterator[OnProgress]:
        """What a call should report its progress to: a bar on a terminal, lines otherwise."""
        if _is_dressed(sys.stderr):
            with self._bar(text) as report:
                yield report
        else:
            yield self._lines(text)

    @contextmanager
    def bars(self) -> "Iterator[Progress]":
        """Where calls show how far they are, on a terminal that takes colour; gone afterwards."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
        with (
            Progress(*columns, TimeElapsedColumn(), console=_console(sys.stderr), transient=True) as bar,
            self._showing(bar),
        ):
            yield bar

    @contextmanager
    def _bar(self, text: str) -> Iterator[OnProgress]:
        with self.bars() as bar:
            task = bar.add_task(text, total=None)

            async def report(progress: float, total: float | None, message: str | None) -> None:
                words = self.clean(f"{text}: {message}" if message else text, newlines=False)
                bar.update(task, completed=progress, total=total, description=words)

            yield report

    @contextmanager
    def _showing(self, bar: "Progress") -> Iterator[None]:
        self._bars.append(bar)
        try:
            yield
        finally:
            self._bars.remove(bar)

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Nothing moves on the terminal meanwhile: somebody is typing."""
        bars = list(self._bars)
        for bar in bars:
            bar.stop()
        try:
            yield
        finally:
            for bar in bars:
                if bar in self._bars:
                    bar.start()

    def _lines(self, text: str) -> OnProgress:
        last = float("-inf")

        async def report(progress: float, total: float | None, message: str | None) -> None:
            nonlocal last
            now = time.monotonic()
            # A server that reports a thousand times a second is not worth a thousand lines; its end always is.
            if now - last < _SECONDS_BETWEEN_LINES and progress != total:
                return
            last = now
            amount = f"{progress:g}/{total:g}" if total is not None else f"{progress:g}"
            self._aside(self.clean(f"{text}: {amount} {message or ''}".rstrip(), newlines=False))

        return report

    def _aside(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def _ruled(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        console = _console(sys.stdout)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        for index, header in enumerate(headers):
            # Names are there to be copied: they stay whole unless one alone would take most of the line.
            widest = max(len(row[index]) for row in rows)
            whole = index < len(headers) - 1 and widest <= max(24, console.width * 2 // 3)
            table.add_column(header, style="cyan" if index == 0 else "", overflow="fold", no_wrap=whole)
        for row in rows:
            # As Text, so that square brackets in foreign words are words, not rich's markup.
            table.add_row(*(Text(cell, style=_COLORS.get(cell, "")) for cell in row))
        console.print(table)


_COLORS = {
    "ready": "green",
    "ok": "green",
    "failed": "red",
    "error": "red",
    "degraded": "yellow",
    "warning": "yellow",
    "allowed": "green",
    "refused": "yellow",
    "limited": "yellow",
    "timeout": "red",
    "tool_error": "red",
    "server_error": "red",
    "cancelled": "yellow",
    "unknown": "red",
}


def _is_dressed(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _console(stream: TextIO) -> "Console":
    from rich.console import Console

    return Console(stderr=stream is sys.stderr, highlight=False)


def _columns(rows: Sequence[Sequence[str]]) -> str:
    """Cells under each other, two spaces apart, no space at the end of a line."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
