"""Finds the settings file, reads it, and stops with one report of all that is wrong with it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs
import yaml
from pydantic import ValidationError

from squidbot.config.files import read_text
from squidbot.config.report import problems_of
from squidbot.config.schema import Origin, Settings
from squidbot.config.server import ServerOrigin
from squidbot.core.domain.errors import ConfigError

_NAMES = ("squidbot.json", "squidbot.yaml", "squidbot.yml")


def find_settings(
    explicit: Path | None = None, environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Path | None:
    """The settings file that counts, or None if there is none. Raises ConfigError if one was named and is not there."""
    ours = os.environ if environ is None else environ
    named = [("--config", explicit)] if explicit else []
    named += [(name, Path(ours[name])) for name in ("SQUIDBOT_CONFIG", "MCP_CONFIG_PATH") if ours.get(name)]
    for origin, path in named[:1]:
        place = (cwd or Path.cwd()) / path.expanduser()
        if not place.exists():
            raise ConfigError(f"There is no settings file {str(path)!r}, which {origin} names.")
        return place
    folders = (cwd or Path.cwd(), Path(platformdirs.user_config_dir("squidbot")))
    return next((folder / name for folder in folders for name in _NAMES if (folder / name).is_file()), None)


def load_settings(
    path: Path | None = None, *, environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Settings:
    """The settings, resolved: of `path`, else of the file that is found, else the embedded default. Raises ConfigError."""
    source = find_settings(path, environ, cwd)
    document: dict[str, Any] = read_document(source) if source else {}
    context = {"settings": Origin(source=source), "server": ServerOrigin(folder=source.parent if source else None)}
    try:
        settings = Settings.model_validate(document, context=context)
    except ValidationError as error:
        raise ConfigError(f"{str(source)!r} cannot be used:", problems_of(error, Settings)) from None
    return settings.resolved(environ)


def read_document(path: Path) -> dict[str, Any]:
    """The document in a settings file."""
    document = yaml.safe_load(read_text(path))
    if not isinstance(document, dict):
        raise ConfigError(f"{str(path)!r} is no object")
    return document
