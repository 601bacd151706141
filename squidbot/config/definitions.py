"""The built-in server definitions as settings would write them, and how an entry that only names one takes it over."""

import importlib.util
import sys
from collections.abc import Mapping
from typing import Any

from squidbot.config.state import state_folder

BUILTIN_NAMES = ("github", "brave", "filesystem", "git", "jira")

# Versions are pinned: what an unpinned name starts tomorrow is somebody else's decision.
_BRAVE = "@brave/brave-search-mcp-server@2.1.4"

_OWN: Mapping[str, Mapping[str, Any]] = {
    "github": {
        "description": "Pull requests, issues and code on GitHub",
        "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}", "GITHUB_API_URL": "${GITHUB_API_URL:-}"},
        "read_only": ["get_*", "list_*", "search_*"],
        "flows": {
            "untrusted": ["get_issue", "list_issues", "get_pull_request"],
            "private": ["get_repository", "search_code", "get_pull_request"],
            "egress": ["create_*", "update_*", "add_*"],
        },
    },
    "filesystem": {
        "description": "Files in one folder of their own, with no way out of it",
        "read_only": ["read_file", "list_directory", "search_files", "file_info"],
        "flows": {"private": ["read_file", "search_files"]},
    },
    "git": {
        "description": "A git repository: status, diff, log, branches, commits",
        "read_only": ["git_status", "git_diff", "git_log"],
        "flows": {"private": ["git_diff", "git_log"], "egress": ["git_push"]},
    },
    "jira": {
        "description": "Tickets and sprints in Jira",
        "env": {
            "JIRA_URL": "${JIRA_URL}",
            "JIRA_USERNAME": "${JIRA_USERNAME}",
            "JIRA_API_TOKEN": "${JIRA_API_TOKEN}",
        },
        "read_only": ["get_*", "search_*"],
        "flows": {
            "private": ["get_*", "search_*"],
            "egress": ["create_*", "update_*", "add_*", "change_*"],
        },
    },
}


_LEFT_TO_THE_USER: Mapping[str, tuple[str, ...]] = {"git": ("--repository", "${SQUIDBOT_REPOSITORY}")}
"""Arguments without which a server says no, as long as an entry gives none of its own."""


def builtin_entries(environ: Mapping[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """The built-in entries that start something that exists, by name, fresh each time."""
    entries: dict[str, dict[str, Any]] = {
        name: {
            **entry,
            "command": sys.executable,
            # -P: a `squidbot` folder in the working directory is not us.
            "args": ["-P", "-m", f"squidbot.servers.{name}", *_LEFT_TO_THE_USER.get(name, ())],
            # A server's environment is minimal: without this it would look for its folder elsewhere.
            "env": {**entry.get("env", {}), "SQUIDBOT_HOME": str(state_folder(environ))},
        }
        for name, entry in _OWN.items()
        if importlib.util.find_spec(f"squidbot.servers.{name}") is not None
    }
    entries["brave"] = {
        "description": "Web search by Brave, through its maker's own server",
        "command": "npx",
        "args": ["-y", _BRAVE, "--transport", "stdio"],
        "env": {"BRAVE_API_KEY": "${BRAVE_API_KEY}"},
        "read_only": ["brave_*"],
        "flows": {"untrusted": ["brave_*"]},
        # The first start downloads the package.
        "startup_timeout": 120,
    }
    return {name: entries[name] for name in BUILTIN_NAMES if name in entries}


def with_builtins(servers: Any, environ: Mapping[str, str] | None = None) -> Any:
    """`servers` with each entry that only names a built-in completed by it; anything malformed is left as it is."""
    if not isinstance(servers, dict):
        return servers
    named = [name for name, entry in servers.items() if _only_names(entry) and name in BUILTIN_NAMES]
    shipped = builtin_entries(environ) if named else {}
    return {
        name: _completed(name, shipped[name], entry) if name in named and name in shipped else entry
        for name, entry in servers.items()
    }


def _only_names(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("command") is None and entry.get("url") is None


def _completed(name: str, shipped: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry's fields over the built-in's; `args` are added and `env` is merged, since neither can be known whole."""
    merged = {**shipped, **entry}
    if isinstance(entry.get("args"), list):
        start = len(shipped["args"]) - len(_LEFT_TO_THE_USER.get(name, ()))
        merged["args"] = [*shipped["args"][:start], *entry["args"]]
    if isinstance(entry.get("env"), dict):
        merged["env"] = {**shipped["env"], **entry["env"]}
    return merged
