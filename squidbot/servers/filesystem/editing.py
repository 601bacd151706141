"""Exact replacement in a text, and the change as a diff that costs little however large the text is."""

import difflib
import io
import re
from itertools import takewhile

from squidbot.servers.refusal import Refused

_CONTEXT = 3
_MAX_WINDOW = 2_000
_MAX_DIFF = 50_000
_HUNK = re.compile(r"^@@ -(\d+)(.*?) \+(\d+)", re.MULTILINE)


def replace_exactly(text: str, old: str, new: str, *, every: bool) -> tuple[str, int]:
    """The text with `old` replaced, and how often; refused unless `old` is there, and just once without `every`."""
    count = text.count(old)
    if count == 0:
        raise Refused(f"old_text is not in the file{_why_not(text, old)}")
    if count > 1 and not every:
        raise Refused(
            f"old_text is in the file {count} times: add lines around it until it is there once, or set replace_all"
        )
    return text.replace(old, new), count


def unified_diff(path: str, before: str, after: str) -> str:
    """The difference as `diff -u` shows it; of a change that spans too much only its size."""
    old, new = (list(io.StringIO(text, newline="\n")) for text in (before, after))
    # Comparing only what lies between the first and the last change keeps difflib away from the rest.
    head = _same(old, new)
    tail = _same(old[head:][::-1], new[head:][::-1])
    start = max(head - _CONTEXT, 0)
    old, new = (lines[start : len(lines) - max(tail - _CONTEXT, 0)] for lines in (old, new))
    if max(len(old), len(new)) > _MAX_WINDOW:
        return f"(a change from line {head + 1} on, over {len(new)} lines: too long to show)\n"
    diff = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", n=_CONTEXT)
    )
    diff = _HUNK.sub(lambda hunk: f"@@ -{int(hunk[1]) + start}{hunk[2]} +{int(hunk[3]) + start}", diff)
    return diff if len(diff) <= _MAX_DIFF else f"{diff[:_MAX_DIFF]}\n(cut: the diff has {len(diff)} characters)\n"


def _same(first: list[str], second: list[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def _why_not(text: str, old: str) -> str:
    if "\r\n" in text and "\r\n" not in old and old.replace("\n", "\r\n") in text:
        return ": its lines end in CR LF, so write \\r\\n in old_text and new_text"
    lines = text.splitlines()[:5_000]
    wanted = max(old.splitlines(), key=len)
    if close := difflib.get_close_matches(wanted, lines, n=1):
        return f": the nearest line is {lines.index(close[0]) + 1}: {close[0][:200]!r}"
    return ": read_file shows what is there"
