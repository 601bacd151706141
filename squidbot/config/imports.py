"""Reads the files that other tools already have: what is in them becomes server entries and roles of ours."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from squidbot.config.definitions import BUILTIN_NAMES, builtin_entries
from squidbot.config.report import kind_of
from squidbot.config.server import MCPServerConfig
from squidbot.config.strict import SERVER_NAME
from squidbot.core.domain.errors import ConfigError, Problem

Kind: TypeAlias = Literal["mcpServers", "servers", "agent", "roles"]

_OWN_KEYS = frozenset({"tools", "gateway", "audit", "limits", "alerts", "model", "agent", "redis"})
_TRANSPORTS = {
    "stdio": "stdio",
    "local": "stdio",
    "sse": "sse",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "ws": "websocket",
    "websocket": "websocket",
}
_RENAMED = {"httpUrl": "url", "serverUrl": "url", "envFile": "env_file", "working_directory": "cwd"}
_THEIR_VARIABLES = {
    "${workspaceFolder}": "${PWD}",
    "${userHome}": "${HOME}",
    "${pathSeparator}": "/",
    "${/}": "/",
}
_UNOWNED = {
    "mcp-server-github": "github",
    "mcp-server-filesystem": "filesystem",
    "mcp-server-brave-search": "brave",
}
"""Package names that agent files carry and nobody owns: whoever takes one would run in everybody's name."""


@dataclass(slots=True)
class Imported:
    """What another tool's file came to, and what had to be changed or left out."""

    kind: Kind
    servers: dict[str, dict[str, Any]] = field(default_factory=dict)
    roles: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def settings(self) -> dict[str, Any]:
        """A settings document that says the same."""
        document: dict[str, Any] = {"tools": {"mcp_servers": self.servers}}
        return {**document, "roles": self.roles} if self.roles else document


def kind_of_document(document: Mapping[str, Any]) -> Kind | None:
    """Which other tool's file this is, or None if it is none that is known."""
    if isinstance(document.get("tools"), list):
        return "agent"
    if document.keys() & _OWN_KEYS:
        return None
    if "mcpServers" in document:
        return "mcpServers"
    if "mcp_servers" in document or document.keys() >= {"version", "roles"}:
        return "roles"
    return "servers" if "servers" in document else None


def import_document(document: Mapping[str, Any], *, kind: Kind | None = None) -> Imported:
    """The servers and roles of another tool's file. Raises ConfigError if it is none that is known."""
    kind = kind or kind_of_document(document)
    match kind:
        case "mcpServers" | "servers":
            imported = Imported(kind)
            _add_servers(imported, _object(document.get(kind), kind))
            _note_inputs(imported, document.get("inputs"))
        case "agent":
            imported = _agent(document.get("tools"))
        case "roles":
            imported = Imported(kind)
            _add_servers(imported, _listed(document.get("mcp_servers") or {}, "mcp_servers"))
            imported.roles = _roles(_object(document.get("roles") or {}, "roles"), imported)
        case None:
            raise ConfigError(
                "This is no file that can be imported",
                hint="Known are files with 'mcpServers', 'servers', 'mcp_servers' and 'roles', or a list of 'tools'.",
            )
    return imported


def _add_servers(imported: Imported, entries: Mapping[str, Any]) -> None:
    for name, entry in entries.items():
        ours = _name(name, taken=imported.servers)
        if ours != name:
            imported.notes.append(
                f"the server {name[:80]!r} is called {ours!r} here: names are made of A-Z a-z 0-9 _ . -"
            )
        imported.servers[ours] = _entry(ours, entry, imported.notes) if isinstance(entry, Mapping) else entry


def _name(name: str, *, taken: Iterable[str]) -> str:
    """The name, or the nearest one that is allowed and not yet taken."""
    if re.match(SERVER_NAME, name) and name not in taken:
        return name
    ours = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-_.")[:60] or "server"
    number = 2
    free = ours
    while free in taken:
        free, number = f"{ours}-{number}", number + 1
    return free


def _entry(name: str, entry: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """One entry in our words; what squidbot has no word for is left out, with a note."""
    given = {_RENAMED.get(key, key): value for key, value in entry.items() if value is not None}
    kind = given.pop("transport", given.pop("type", None))
    if kind is not None:
        given["transport"] = _TRANSPORTS.get(str(kind).lower(), kind)
    if "disabled" in given:
        given["enabled"] = not given.pop("disabled")
    left_out = sorted(str(key) for key in given.keys() - MCPServerConfig.model_fields.keys() | given.keys() & {"name"})
    if left_out:
        notes.append(f"of the server {name!r} is left out what squidbot has no use for: {', '.join(left_out)}")
    kept = {key: value for key, value in given.items() if key not in left_out and value not in ({}, [])}
    return {key: _translated(value, name, notes) for key, value in kept.items()}


def _translated(value: Any, name: str, notes: list[str]) -> Any:
    """`${input:github-token}`, which another tool asks a person for, becomes the variable `${GITHUB_TOKEN}`."""

    def variable(match: re.Match[str]) -> str:
        asked = re.sub(r"\W", "_", match[1]).upper()
        asked = asked if not asked[:1].isdigit() else f"_{asked}"
        notes.append(f"the server {name!r} asks for the input {match[1]!r}: set the variable {asked!r}")
        return f"${{{asked}}}"

    def change(text: str) -> str:
        for theirs, ours in _THEIR_VARIABLES.items():
            text = text.replace(theirs, ours)
        return re.sub(r"\$\{input:([^{}]+)\}", variable, text)

    return _over_texts(value, change)


def _over_texts(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case Mapping():
            return {key: _over_texts(part, change) for key, part in value.items()}
        case list():
            return [_over_texts(part, change) for part in value]
        case _:
            return value


def _note_inputs(imported: Imported, inputs: Any) -> None:
    """Inputs that no server asks for are worth a word: perhaps a name is misspelt."""
    for asked in inputs if isinstance(inputs, list) else []:
        identity = asked.get("id") if isinstance(asked, Mapping) else None
        if identity and not any(f"the input {identity!r}" in note for note in imported.notes):
            imported.notes.append(f"no server uses the input {str(identity)[:80]!r}")


def _agent(tools: Any) -> Imported:
    imported = Imported("agent")
    entries: dict[str, Any] = {}
    for index, tool in enumerate(tools if isinstance(tools, list) else []):
        if not isinstance(tool, Mapping) or tool.get("type") != "mcp":
            kind = tool.get("type") if isinstance(tool, Mapping) else tool
            imported.notes.append(f"tools[{index}] is left out: it is {str(kind)[:40]!r}, not of type 'mcp'")
            continue
        entry = {str(key): value for key, value in tool.items() if key != "type"}
        package = str(entry.pop("server", ""))
        name = str(
            entry.pop("name", "") or _name_of_package(package) or _name_of_package(str(entry.get("command", "")))
        )
        if package and "command" not in entry and "url" not in entry:
            started = _package(package, entry.get("args"), imported.notes)
            if started is None:
                imported.notes.append(f"tools[{index}] is left out: the built-in for {package!r} does not ship yet")
                continue
            entry |= started
        entries[name if name not in entries else f"{name}-{index}"] = entry
    _add_servers(imported, entries)
    return imported


def _name_of_package(package: str) -> str:
    """`@modelcontextprotocol/server-memory@1.2` and `mcp-server-memory` are both the server `memory`."""
    bare = package.rstrip("/").rpartition("/")[2].partition("@")[0].partition("==")[0]
    return re.sub(r"^(mcp-)?server-|^mcp-|-mcp$|(-mcp)?-server$", "", bare) or bare


def _package(package: str, args: Any, notes: list[str]) -> dict[str, Any] | None:
    """How a package is started: one of npm's by npx, one of PyPI's by uvx; one that nobody owns never."""
    more = args if isinstance(args, list) else []
    builtin = _UNOWNED.get(package, package)
    if builtin in BUILTIN_NAMES:
        entry = builtin_entries().get(builtin)
        if package in _UNOWNED:
            notes.append(f"nobody owns the package {package!r}; the built-in server {builtin!r} takes its place")
        return {**entry, "args": [*entry["args"], *more]} if entry else None
    if package.startswith(("http://", "https://", "ws://", "wss://")):
        return {"url": package}
    if package.startswith("@") or "/" in package:
        return {"command": "npx", "args": ["-y", package, *more]}
    return {"command": "uvx", "args": [package, *more]}


def _roles(roles: Mapping[str, Any], imported: Imported) -> dict[str, dict[str, Any]]:
    """Roles of a mapping file; the file is the whole truth about a role, so it replaces a shipped one."""
    result: dict[str, dict[str, Any]] = {}
    for role, body in roles.items():
        given = _object(body, f"roles.{role}")
        grants = next((given[key] for key in ("tools", "mcp_servers", "servers", "permissions") if key in given), None)
        if grants is None:
            grants = {key: value for key, value in given.items() if isinstance(value, list)}
        tools = {server: _tools(part) for server, part in _listed(grants, f"roles.{role}").items()}
        result[role] = {"description": str(given.get("description", "")), "replace": True, "tools": tools}
        imported.notes += [
            f"the role {role!r} names the server {server!r} and none of its tools: nothing is granted"
            for server, named in tools.items()
            if named == []
        ]
        imported.notes += [
            f"the role {role!r} names the server {server!r}, which the file does not define"
            for server in tools
            if server not in imported.servers and server not in BUILTIN_NAMES
        ]
    return result


def _tools(part: Any) -> Any:
    """The tools that are named; a server without any is no grant of all, for what is not named is refused."""
    match part:
        case {"tools": tools} | {"allowed_tools": tools}:
            return tools
        case None | {}:
            return []
        case _:
            return part


def _listed(value: Any, path: str) -> Mapping[str, Any]:
    """A mapping by name, or a list of entries that carry theirs."""
    if not isinstance(value, list):
        return _object(value, path)
    entries = [entry if isinstance(entry, Mapping) else {"name": entry} for entry in value]
    named = {str(entry.get("name") or entry.get("server")): entry for entry in entries}
    return {
        name: {key: part for key, part in entry.items() if key not in {"name", "server"}}
        for name, entry in named.items()
    }


def _object(value: Any, path: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    raise ConfigError("The file cannot be imported:", [Problem(path, f"found {kind_of(value)}; expected an object")])
