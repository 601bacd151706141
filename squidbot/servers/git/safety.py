"""What git must not do here: run a program that the repository names, ask a person, speak an odd protocol, wait for ever.

A repository's own configuration can be written by whoever can write its files, so nothing that it names is run. What has
a fixed name is switched off (`SETTINGS`, `environment`) and git behaves as if it were not there. What has a name of its
own, such as a filter, cannot be switched off without changing what git does, so it is refused (`refuse_programs`).
Configuration of the user or of the system is the operator's, and counts.

The configuration is looked at right before git reads it, and not locked: who may write in `.git` itself, at the very
moment of a call, is not kept out. Give nobody who is not trusted both this server and a way to write there.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from squidbot.servers.refusal import Refused

SETTINGS = (
    # A folder that cannot exist: no hook is found.
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "color.ui=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "log.showSignature=false",
    "merge.verifySignatures=false",
    "push.gpgSign=false",
    "push.followTags=false",
    "rerere.enabled=false",
    "submodule.recurse=false",
    # No name made up from the machine's.
    "user.useConfigOnly=true",
)

Purpose: TypeAlias = Literal["references", "files", "network"]

_PROGRAMS: dict[Purpose, re.Pattern[str]] = {
    "references": re.compile(r"hook\..*\.command", re.DOTALL),
    "files": re.compile(
        r"filter\..*\.(clean|smudge|process)|merge\..*\.driver|branch\..*\.mergeoptions|pull\.twohead"
        r"|lfs\.(customtransfer|extension)\..*|hook\..*\.command",
        re.DOTALL,
    ),
    "network": re.compile(
        r"core\.(sshcommand|alternaterefscommand)|credential\.(.*\.)?helper|remote\..*\.(uploadpack|receivepack|vcs)"
        # What a server sends is written to whatever file is named.
        r"|http\.(.*\.)?savecookies"
        r"|lfs\.(customtransfer|extension)\..*|hook\..*\.command",
        re.DOTALL,
    ),
}

_OPERATORS = re.compile(
    r"GIT_(CONFIG_(GLOBAL|SYSTEM|NOSYSTEM|COUNT|KEY_\d+|VALUE_\d+)|(AUTHOR|COMMITTER)_(NAME|EMAIL)|EXEC_PATH|SSH|SSH_COMMAND|SSL_\w+)"
)
"""Variables of git that the operator may set for this server; all others are for people at a terminal."""

_FIXED = {
    # Not even for an object that is missing in a partial clone: that would run what the repository names for its remote.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ASKPASS": "",
    "GIT_EDITOR": ":",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    # What git says is read by us too.
    "LC_ALL": "C.UTF-8",
    "LANGUAGE": "",
}

REACHING_OUT = {"GIT_ALLOW_PROTOCOL": "file:http:https:ssh"}
"""For the commands that are meant to talk to a remote, once the repository's configuration has been looked at."""


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """The variables for git: those of this server without what redirects git or lets it ask."""
    kept = {
        name: value
        for name, value in given.items()
        if (not name.startswith("GIT_") or _OPERATORS.fullmatch(name)) and name not in {"SSH_ASKPASS", "DISPLAY"}
    }
    return kept | _FIXED


def repository_keys(listing: bytes) -> list[str]:
    """The keys that the repository's own configuration sets, from `git config --list --show-scope -z`."""
    fields = listing.decode("utf-8", "backslashreplace").split("\0")
    pairs = zip(fields[::2], fields[1::2], strict=False)
    return [entry.partition("\n")[0] for scope, entry in pairs if scope not in {"system", "global", "command"}]


def refuse_programs(keys: Iterable[str], purpose: Purpose) -> None:
    """Refuse to work where the repository's own configuration would have git run a program of its choice."""
    found = sorted({key for key in keys if _PROGRAMS[purpose].fullmatch(key)})
    if found:
        raise Refused(
            f"the repository's own configuration would run a program or change what git does: {', '.join(found)}. "
            "Nothing was done. A person who trusts it can move it to the user's configuration (git config --global), "
            "or remove it (git config --unset)"
        )
