"""Finds the settings file, reads it, and stops with one report of all that is wrong with it."""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import ValidationError

from squidbot.config import documents
from squidbot.config.definitions import builtin_entries, with_builtins
from squidbot.config.documents import Document
from squidbot.config.imports import import_document, kind_of_document
from squidbot.config.report import problems_of
from squidbot.config.schema import Origin, Settings, unusable
from squidbot.config.server import ServerOrigin
from squidbot.core.domain.errors import ConfigError

_NAMES = ("squidbot.json", "squidbot.yaml", "squidbot.yml")
_SERVERS = "tools.mcp_servers"
_KEYS_OF_KINDS = {"mcpServers": "mcpServers", "servers": "servers", "roles": "mcp_servers"}
"""What stands in another tool's file where ours has `tools.mcp_servers`."""

_log = logging.getLogger("squidbot.config")


def find_settings(
    explicit: Path | None = None, environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Path | None:
    """The settings file that counts, or None if there is none. Raises ConfigError if one was named and is not there."""
    ours = os.environ if environ is None else environ
    here = cwd or Path.cwd()
    named = [("the command line", explicit)] if explicit else []
    named += [(name, Path(ours[name])) for name in ("SQUIDBOT_CONFIG", "MCP_CONFIG_PATH") if ours.get(name)]
    for origin, path in named[:1]:
        place = here / path.expanduser()
        if not _exists(place):
            raise ConfigError(
                f"There is no settings file {str(path)!r}, which {origin} names.",
                hint="'squidbot init' writes one; without a name, ./squidbot.json or the embedded default is used.",
            )
        return place
    folders = (here, Path(platformdirs.user_config_dir("squidbot")))
    return next((folder / name for folder in folders for name in _NAMES if _exists(folder / name)), None)


def load_settings(
    path: Path | None = None, *, environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Settings:
    """The settings, resolved: of `path`, else of the file that is found, else the embedded default. Raises ConfigError."""
    settings, key = _read_settings(find_settings(path, environ, cwd), environ)
    for note in settings.notes:
        _log.warning("%s: %s", settings.source, note)
    try:
        return settings.resolved(environ)
    except ConfigError as error:
        raise _as_in_file(error, key) from None


def read_settings(path: Path, *, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of a file as written, with their references. Raises ConfigError."""
    return _read_settings(path, environ)[0]


def read_document(path: Path) -> dict[str, Any]:
    """What a JSON or YAML file says. Raises ConfigError."""
    return documents.read(path).value


def check_document(
    document: Document, *, source: Path | None, environ: Mapping[str, str] | None = None, notes: Sequence[str] = ()
) -> Settings:
    """The settings that a document of ours makes, as written. Raises ConfigError with everything that is wrong."""
    value = dict(document.value)
    tools = value.get("tools", {})
    server = ServerOrigin(folder=source.parent.absolute() if source else None)
    if isinstance(tools, dict):
        if "mcp_servers" in tools:
            value["tools"] = {**tools, "mcp_servers": with_builtins(tools["mcp_servers"], environ)}
        else:
            # Nobody said which servers: those that come with squidbot, as far as they can be used.
            value["tools"] = {**tools, "mcp_servers": builtin_entries(environ)}
            server = replace(server, optional=True)
    context = {"settings": Origin(source=source, notes=tuple(notes)), "server": server}
    try:
        return Settings.model_validate(value, context=context)
    except ValidationError as error:
        raise ConfigError(unusable(source), problems_of(error, Settings, lines=document.lines)) from None


def _read_settings(source: Path | None, environ: Mapping[str, str] | None) -> tuple[Settings, str | None]:
    """The settings as written, and the key under which another tool's file has its servers."""
    document = documents.read(source) if source else Document({}, {})
    kind = kind_of_document(document.value)
    if kind is None:
        return check_document(document, source=source, environ=environ), None
    imported = import_document(document.value, kind=kind)
    key = _KEYS_OF_KINDS.get(kind)
    lines = {
        ("tools", "mcp_servers", *place[1:]): line for place, line in document.lines.items() if place[:1] == (key,)
    }
    roles = {place: line for place, line in document.lines.items() if place[:1] == ("roles",)}
    ours = Document(imported.settings(), {**lines, **roles})
    try:
        return check_document(ours, source=source, environ=environ, notes=imported.notes), key
    except ConfigError as error:
        raise _as_in_file(error, key) from None


def _as_in_file(error: ConfigError, key: str | None) -> ConfigError:
    """The same report with the paths that the reader's own file has."""
    if key is None:
        return error
    problems = [
        replace(problem, path=problem.path.replace(_SERVERS, key, 1)) if problem.path.startswith(_SERVERS) else problem
        for problem in error.problems
    ]
    return ConfigError(error.message, problems, hint=error.hint)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that no file can have
        return False
