"""What is known of a server from the last time: written whole or not at all, and never trusted blindly."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squidbot.adapters.mcp.remembered import Memory, Remembered

KNOWN = Remembered("legacy", "2025-06-18", tools=[{"name": "t"}], info={"name": "n"}, instructions="Be kind.")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
near_files = st.fixed_dictionaries(
    {"era": st.just("legacy") | json_values, "protocol": st.text() | json_values, "over_sse": st.booleans()}
    | {"instructions": st.none() | json_values, "info": json_values}
    | {name: st.just([]) | json_values for name in ("tools", "prompts", "resources", "templates")}
)


@pytest.mark.requirement("B-05", "B-07")
def test_what_was_learnt_is_there_the_next_time_and_for_its_definition_alone(tmp_path: Path) -> None:
    """A second run must not ask again; a changed definition must."""
    Memory(tmp_path).keep("digest", KNOWN)
    assert Memory(tmp_path).recall("digest") == KNOWN
    assert Memory(tmp_path).recall("another") is None


def test_without_a_state_folder_it_remembers_for_as_long_as_it_lives() -> None:
    """A library that was given no folder writes nowhere."""
    memory = Memory(None)
    assert memory.recall("digest") is None
    memory.keep("digest", KNOWN)
    assert memory.recall("digest") == KNOWN


def test_the_file_is_for_its_owner_alone_and_has_no_half_written_neighbours(tmp_path: Path) -> None:
    """Lists may tell of a team's work, and a crash must not leave rubbish."""
    Memory(tmp_path).keep("digest", KNOWN)
    (file,) = (tmp_path / "servers").iterdir()
    assert (file.name, file.stat().st_mode & 0o077) == ("digest.json", 0)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"era": "legacy"}', b"[" * 100_000, b"\xff"],
    ids=["empty", "cut off", "a list", "null", "of another version", "too deep", "no text"],
)
def test_a_file_that_cannot_be_used_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    """A broken memory costs a second, never a start."""
    (tmp_path / "servers").mkdir()
    (tmp_path / "servers/digest.json").write_bytes(content)
    assert Memory(tmp_path).recall("digest") is None


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    """Nothing of ours is so large."""
    (tmp_path / "servers").mkdir()
    with (tmp_path / "servers/digest.json").open("wb") as file:
        file.truncate(64_000_001)
    assert Memory(tmp_path).recall("digest") is None


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(near_files)
def test_whatever_a_file_holds_only_lists_are_taken_for_lists(tmp_path: Path, content: dict[str, Any]) -> None:
    """Others can write to the folder: another version, an editor, a broken disk."""
    (tmp_path / "servers").mkdir(exist_ok=True)
    (tmp_path / "servers/digest.json").write_text(json.dumps(content), "utf-8")
    known = Memory(tmp_path).recall("digest")
    if known is not None:
        assert known.era in ("legacy", "modern")
        assert isinstance(known.tools, list)
        assert isinstance(known.templates, list)


def test_a_folder_that_cannot_be_written_costs_the_memory_and_nothing_else(tmp_path: Path) -> None:
    """A full or read-only disk must not keep servers from being used."""
    (tmp_path / "servers").write_text("in the way")
    memory = Memory(tmp_path)
    memory.keep("digest", KNOWN)
    assert memory.recall("digest") == KNOWN


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """Otherwise every start on a full disk would fill it further."""
    folder = tmp_path / "servers"
    (folder / "digest.json").mkdir(parents=True)
    (folder / "digest.json/in the way").touch()
    Memory(tmp_path).keep("digest", KNOWN)
    assert [path.name for path in folder.iterdir()] == ["digest.json"]
