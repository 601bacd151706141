"""What git says, turned into what to do next."""

import re

_CREDENTIALS = re.compile(r"(://)[^/@\s'\"]+@")
_LOUD = re.compile(r"^(fatal|error|warning|remote): ?")
_SHOWN = 1_500

_NEXT: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"' exists; cannot create '"),
        "one branch is in the way of the other, as 'a' is of 'a/b': use another name, or have the one that is there removed",
    ),
    (
        re.compile(r"\.lock': File exists|cannot lock ref"),
        "another git process is at work in this repository: try again in a moment",
    ),
    (
        re.compile(
            r"terminal prompts disabled|Authentication failed|Permission denied \(|Host key verification failed"
        ),
        "the remote does not let this server in, and nobody can be asked here: its operator must set up credentials",
    ),
    (
        re.compile(r"promisor remote|lazy fetching disabled"),
        "this clone is partial and lacks what this needs: its operator must complete it, with git fetch --refetch",
    ),
    (
        re.compile(r"transport '.*' not allowed|remote helper"),
        "the address of this remote uses a protocol that is not allowed here: use https, ssh or a path",
    ),
    (
        re.compile(r"Could not read from remote|unable to access|does not appear to be a git repository"),
        "the remote cannot be reached: its address may be wrong, or the remote away",
    ),
    (
        re.compile(r"would be overwritten by|not uptodate|not up to date"),
        "these changes would be lost, so nothing was done: commit them first with git_commit",
    ),
    (
        re.compile(r"paths are ignored by"),
        "an ignored file is not committed: leave it out, or take it out of .gitignore",
    ),
)


def shown(name: bytes) -> str:
    """A name or text of git's as it is written in answers; bytes that are no UTF-8 come out escaped."""
    return name.decode("utf-8", "backslashreplace")


def listed(names: list[str], most: int = 20) -> str:
    """Names in a sentence."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more


def complaint(messages: bytes, place: str) -> str:
    """Why git failed and what to do, without credentials and without this machine's path of the repository."""
    text = _CREDENTIALS.sub(r"\1", shown(messages)).replace(f"{place}/", "").replace(place, ".")
    said = [_LOUD.sub("", line).rstrip() for line in text.splitlines() if not line.startswith("hint:")]
    what = "\n".join(line for line in said if line)[:_SHOWN] or "git failed without a word"
    hint = next((words for pattern, words in _NEXT if pattern.search(text)), None)
    return f"{hint}. git said: {what}" if hint else what


def remote_words(messages: bytes) -> list[str]:
    """What the other side of a push said."""
    lines = _CREDENTIALS.sub(r"\1", shown(messages)).splitlines()
    return [line.removeprefix("remote:").strip() for line in lines if line.startswith("remote:") and line[7:].strip()][
        :50
    ]
