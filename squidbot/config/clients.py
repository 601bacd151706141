"""Writes squidbot into the configuration files of MCP clients, and leaves everything else in them as it was."""

import json
import os
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from squidbot.config.edit import inserted, replace_text, without
from squidbot.config.files import display, read_text
from squidbot.config.jsonc import JSONSyntaxError, parse_jsonc
from squidbot.core.domain.errors import ConfigError

ClientName: TypeAlias = Literal["claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini"]
CLIENTS: tuple[ClientName, ...] = get_args(ClientName)
ENTRY = "squidbot"
"""What the gateway is called in a client's file."""
_OWNER_ONLY = 0o600


@dataclass(frozen=True, slots=True)
class Way:
    """How a client reaches the gateway: at a url with a token, or by a command that it starts."""

    url: str
    token: str | None
    command: Sequence[str]
    env: Mapping[str, str]


def needs_token(client: ClientName) -> bool:
    """Whether the client's file holds a token; one that only starts commands needs none."""
    return client != "claude-desktop"


def file_of(client: ClientName, *, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Path:
    """The file that the client reads: of the project in this folder, or of this person if it has only that."""
    variables, here, home = os.environ if environ is None else environ, cwd or Path.cwd(), Path.home()
    match client:
        case "claude-code":
            return here / ".mcp.json"
        case "cursor":
            return here / ".cursor" / "mcp.json"
        case "vscode":
            return here / ".vscode" / "mcp.json"
        case "codex":
            return Path(variables.get("CODEX_HOME") or home / ".codex") / "config.toml"
        case "gemini":
            return home / ".gemini" / "settings.json"
        case "claude-desktop":
            return _desktop_folder(variables, home) / "claude_desktop_config.json"


def entry_of(client: ClientName, way: Way) -> dict[str, Any]:
    """The gateway in the words of the client."""
    headers = {"Authorization": f"Bearer {way.token}"}
    match client:
        case "claude-code" | "vscode":
            return {"type": "http", "url": way.url, "headers": headers}
        case "cursor":
            return {"url": way.url, "headers": headers}
        case "gemini":
            # In its file `url` would mean SSE.
            return {"httpUrl": way.url, "headers": headers}
        case "codex":
            # `headers` would be ignored, and `bearer_token` is refused.
            return {"url": way.url, "http_headers": headers}
        case "claude-desktop":
            command, *args = way.command
            return {"command": command, "args": args, **({"env": dict(way.env)} if way.env else {})}


def snippet(client: ClientName, entry: Mapping[str, Any]) -> str:
    """What a person would put into the client's file."""
    if client == "codex":
        return _toml_table(entry)
    return json.dumps({_place(client)[0]: {ENTRY: entry}}, indent=2)


def write(client: ClientName, path: Path, entry: Mapping[str, Any]) -> None:
    """Put the entry into the file, in the place of one that was there. Raises ConfigError, and writes nothing."""
    path = path.resolve()  # a link stays a link: what it points to is written
    try:
        text = read_text(path) if path.exists() else ""
    except (OSError, ValueError) as error:
        raise ConfigError(f"{display(path)} cannot be read: {_reason(error)}") from None
    changed = _toml_changed(path, text, entry) if client == "codex" else _json_changed(client, path, text, entry)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, changed, mode=_OWNER_ONLY if needs_token(client) else None)
    except OSError as error:
        raise ConfigError(f"{display(path)} cannot be written: {_reason(error)}") from None


def _place(client: ClientName) -> tuple[str]:
    return ("servers",) if client == "vscode" else ("mcpServers",)


def _json_changed(client: ClientName, path: Path, text: str, entry: Mapping[str, Any]) -> str:
    place = _place(client)
    try:
        document = parse_jsonc(text if text.strip() else "{\n}\n")
        value = document.value
        servers = value.get(place[0], {}) if isinstance(value, dict) else None
        if not isinstance(servers, dict):
            raise _not_ours(path, f"it has no object {place[0]!r}")
        if ENTRY in servers:
            document = parse_jsonc(without(document, (*place, ENTRY)))
        return inserted(document, place, ENTRY, entry)
    except JSONSyntaxError as error:
        line = text.count("\n", 0, error.offset) + 1
        raise _not_ours(path, f"line {line}: {error}") from None


def _toml_changed(path: Path, text: str, entry: Mapping[str, Any]) -> str:
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_ours(path, str(error)) from None
    kept = _without_table(text)
    changed = f"{kept.rstrip()}\n\n{_toml_table(entry)}".lstrip("\n")
    try:
        after = tomllib.loads(changed)
    except tomllib.TOMLDecodeError:
        after = {}
    before.setdefault("mcp_servers", {})[ENTRY] = json.loads(json.dumps(entry))
    if after != before:
        # TOML has many ways to say the same thing: one that is not understood here is not touched.
        raise _not_ours(path, f"'mcp_servers.{ENTRY}' is written in a way that squidbot does not rewrite")
    return changed


def _without_table(text: str) -> str:
    """The text without the table of the gateway and those below it."""
    ours = re.compile(rf"\s*\[\s*mcp_servers\s*\.\s*[\"']?{ENTRY}[\"']?\s*[\].]")
    kept, inside = [], False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            inside = ours.match(line) is not None
        if not inside:
            kept.append(line)
    return "".join(kept)


def _toml_table(entry: Mapping[str, Any]) -> str:
    # A JSON string is a TOML string as well.
    lines = [f"[mcp_servers.{ENTRY}]"]
    for key, value in entry.items():
        if isinstance(value, Mapping):
            inner = ", ".join(f"{json.dumps(name)} = {json.dumps(word)}" for name, word in value.items())
            lines.append(f"{key} = {{ {inner} }}")
        else:
            lines.append(f"{key} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def _desktop_folder(variables: Mapping[str, str], home: Path) -> Path:
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "Claude"
    if sys.platform == "win32":
        return Path(variables.get("APPDATA") or home / "AppData" / "Roaming") / "Claude"
    return Path(variables.get("XDG_CONFIG_HOME") or home / ".config") / "Claude"


def _not_ours(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"{display(path)} cannot be changed: {why}",
        hint="Without --write the lines are printed, to be put there by hand.",
    )


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
