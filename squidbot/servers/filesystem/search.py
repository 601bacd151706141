"""Finds files by name and lines by text, within bounds of time and number.

A regular expression of somebody else can run for ever, and no thread can be told to stop: such a search
runs in a process of its own (`python -m squidbot.servers.filesystem.search`), which is killed when its time is up.
"""

import dataclasses
import fnmatch
import functools
import itertools
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from squidbot.servers.filesystem.reading import HEAD, bounded_lines
from squidbot.servers.filesystem.sandbox import Entry, Parts, Sandbox, parts_of
from squidbot.servers.refusal import Refused

MAX_DEPTH = 64
MAX_FILE = 100_000_000
"""Bytes of a file that is still read line by line."""
_MAX_LINE = 10_000
_SHOWN_LINE = 300
_GRACE = 1.0
_GLANCE = 0.1


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for: names that fit `glob`, and in those files lines that have `text`."""

    path: str = "."
    glob: str | None = None
    text: str | None = None
    regex: bool = False
    ignore_case: bool = False
    limit: int = 100
    seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Match:
    """A file, or with `line` one line of it."""

    path: str
    line: int | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found; `cut` says why it is not all there is."""

    matches: tuple[Match, ...]
    searched: int
    cut: str | None = None


def search(sandbox: Sandbox, query: Query) -> Findings:
    """All that fits the query, where its pattern is dangerous in a process that can be killed."""
    return _in_worker(sandbox, query) if query.regex and query.text else scan(sandbox, query)


def scan(sandbox: Sandbox, query: Query) -> Findings:
    """All that fits the query, looked for here and now."""
    deadline = time.monotonic() + query.seconds
    late = f"stopped after {query.seconds:g} seconds"
    start = parts_of(query.path)
    fits = _line_test(query)
    matches: list[Match] = []
    searched = 0
    for entry in sandbox.walk(start, MAX_DEPTH):
        if _is_over(sandbox, deadline):
            return Findings(tuple(matches), searched, late)
        inside = parts_of(entry.path)[len(start) :]
        if query.glob is not None and not glob_fits(inside, query.glob):
            continue
        searched += 1
        found = [Match(entry.path)] if fits is None else _lines(sandbox, entry, fits=fits, deadline=deadline)
        matches.extend(itertools.islice(found, query.limit + 1 - len(matches)))
        if len(matches) > query.limit:
            return Findings(tuple(matches[: query.limit]), searched, f"stopped at {query.limit} matches")
    return Findings(tuple(matches), searched, late if _is_over(sandbox, deadline) else None)


def glob_fits(parts: Parts, glob: str) -> bool:
    """Whether a path fits: `*` and `?` stay within one name, `**` spans any number; without `/` only the name counts."""
    pattern = tuple(glob.split("/"))
    if len(pattern) == 1:
        return bool(parts) and fnmatch.fnmatchcase(parts[-1], glob)

    # Remembered positions keep many `**` from multiplying into each other.
    @functools.cache
    def fits(part: int, step: int) -> bool:
        if step == len(pattern):
            return part == len(parts)
        if pattern[step] == "**":
            return fits(part, step + 1) or (part < len(parts) and fits(part + 1, step))
        return part < len(parts) and fnmatch.fnmatchcase(parts[part], pattern[step]) and fits(part + 1, step + 1)

    return fits(0, 0)


def _line_test(query: Query) -> Callable[[str], object] | None:
    if not query.text:
        return None
    flags = re.IGNORECASE if query.ignore_case else 0
    try:
        pattern = re.compile(query.text if query.regex else re.escape(query.text), flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise Refused(
            f"text {query.text!r} is no regular expression ({error}): set regex to false to find it as it is"
        ) from None
    return pattern.search


def _lines(sandbox: Sandbox, entry: Entry, *, fits: Callable[[str], object], deadline: float) -> Iterator[Match]:
    if entry.kind != "file" or entry.size > MAX_FILE:
        return
    try:
        with sandbox.file(parts_of(entry.path)) as descriptor, open(descriptor, "rb", closefd=False) as file:
            if b"\0" in file.read(HEAD):
                return
            file.seek(0)
            for number, (raw, _) in enumerate(bounded_lines(file, _MAX_LINE), 1):
                line = raw.decode("utf-8", "replace").rstrip("\r\n")
                if fits(line):
                    yield Match(entry.path, number, line[:_SHOWN_LINE])
                if _is_over(sandbox, deadline):
                    return
    except (Refused, OSError):
        # Gone, swapped or unreadable since it was listed: not ours to report in a search.
        return


def _in_worker(sandbox: Sandbox, query: Query) -> Findings:
    deadline = time.monotonic() + query.seconds + _GRACE
    job = json.dumps({"root": sandbox.root, "parent": os.getpid(), "query": dataclasses.asdict(query)})
    # -P, and our own path handed on: a module that somebody wrote into the folder must never be imported.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "squidbot.servers.filesystem.search"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=(sandbox.root,),
        env=environment,
    ) as process:
        answer = json.loads(_answer(process, job, lambda: _is_over(sandbox, deadline)) or "null")
    if process.returncode > 0:
        raise RuntimeError(f"the process of a search ended with {process.returncode}")
    if answer is None:
        raise Refused(
            f"the expression {query.text!r} took longer than {query.seconds:g} seconds: make it simpler"
            " (no repetition inside a repetition), search a smaller path, or set regex to false"
        )
    if "refused" in answer:
        raise Refused(answer["refused"])
    return Findings(tuple(Match(**match) for match in answer["matches"]), answer["searched"], answer["cut"])


def _answer(process: subprocess.Popen[str], job: str, is_over: Callable[[], bool]) -> str:
    """What the worker says, nothing if it had to be killed."""
    untold: str | None = job
    while not is_over():
        try:
            return process.communicate(untold, timeout=_GLANCE)[0]
        except subprocess.TimeoutExpired:
            untold = None
    process.kill()
    return ""


def _is_over(sandbox: Sandbox, deadline: float) -> bool:
    return sandbox.closing.is_set() or time.monotonic() > deadline


def _work() -> None:
    text = sys.stdin.read()
    if not text:
        return  # The one who asked is gone already.
    job = json.loads(text)
    query = Query(**job["query"])
    _end_with(job["parent"], seconds=query.seconds + _GRACE)
    try:
        answer = dataclasses.asdict(scan(Sandbox(job["root"]), query))
    except Refused as refusal:
        answer = {"refused": str(refusal)}
    json.dump(answer, sys.stdout)


def _end_with(parent: int, *, seconds: float) -> None:
    """Whatever becomes of the one who asked, this process ends: matching lets signals through, little else does."""

    def look(_signal: int, _frame: object) -> None:
        if os.getppid() != parent:
            os._exit(1)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _GLANCE, _GLANCE)
    limit = int(seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))


if __name__ == "__main__":
    _work()
