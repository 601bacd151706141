"""A change of the settings is noticed; a file that was only touched is not one."""

import os
from pathlib import Path

import pytest

from squidbot.config.load import load_settings
from squidbot.config.watch import Watched, files_of


@pytest.mark.requirement("G-10")
def test_only_what_a_file_says_counts(tmp_path: Path) -> None:
    """An editor that saves the same text again must not restart anything."""
    path = tmp_path / "squidbot.json"
    path.write_text("{}")
    watched = Watched()
    watched.look([path])
    assert not watched.changed()
    os.utime(path, ns=(1, 1))
    assert not watched.changed()
    path.write_text('{"redis": null}')
    assert watched.changed()
    assert not watched.changed()


@pytest.mark.requirement("G-10")
def test_a_file_that_goes_or_comes_is_a_change(tmp_path: Path) -> None:
    """Editors and deployments put a new file in the old one's place."""
    path, fresh = tmp_path / "squidbot.json", tmp_path / "fresh"
    path.write_text("{}")
    watched = Watched()
    watched.look([path])
    path.unlink()
    assert watched.changed()
    path.write_text("{}")
    assert watched.changed()
    fresh.write_text("{ }")
    fresh.replace(path)
    assert watched.changed()


@pytest.mark.requirement("G-10")
def test_the_env_files_of_servers_are_watched_too(tmp_path: Path) -> None:
    """A secret that was changed there is a change of the settings."""
    path = tmp_path / "squidbot.json"
    (tmp_path / "one.env").write_text("TOKEN=a")
    path.write_text('{"tools": {"mcp_servers": {"x": {"command": "x", "env_file": "one.env"}}}}')
    watched = Watched()
    watched.look(files_of(load_settings(path)))
    assert not watched.changed()
    (tmp_path / "one.env").write_text("TOKEN=b")
    assert watched.changed()
    watched.look([path])
    (tmp_path / "one.env").write_text("TOKEN=c")
    assert not watched.changed()


def test_the_embedded_default_has_no_file() -> None:
    """There is nothing to watch, and nothing to read each second."""
    assert files_of(load_settings(cwd=Path("/"))) == []
