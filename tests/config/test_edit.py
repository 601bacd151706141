"""Adding and removing servers in a file that a person wrote."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squidbot.config.edit import add_server, remove_server
from squidbot.config.load import read_document
from squidbot.core.domain.errors import ConfigError

COMMENTED = """{
  // mine
  "tools": {
    "mcp_servers": {
      "a": {"command": "x"}, // first
      /* second */
      "b": {"command": "y"} // last
    }
  },
  "redis": "redis://h", // kept
}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "squidbot.json"
    file.write_text(COMMENTED)
    return file


def servers(path: Path) -> list[str]:
    return list(read_document(path)["tools"]["mcp_servers"])


@pytest.mark.requirement("G-03")
def test_adding_a_server_keeps_every_comment(path: Path) -> None:
    """The file is the person's, not ours."""
    path.chmod(0o640)
    add_server(path, "c", {"url": "https://h", "headers": {"A": "${B}"}})
    added = '"b": {"command": "y"}, // last\n      "c": {\n        "url": "https://h",\n        "headers": {\n          "A": "${B}"\n        }\n      }\n    }\n'
    assert path.read_text() == COMMENTED.replace('"b": {"command": "y"} // last\n    }\n', added)
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.requirement("G-03")
@pytest.mark.parametrize("name", ["a", "b"])
def test_removing_what_was_there_leaves_the_rest(path: Path, name: str) -> None:
    """First or last, with or without a comma."""
    remove_server(path, name)
    assert servers(path) == [other for other in "ab" if other != name]
    assert all(comment in path.read_text() for comment in ("// mine", "/* second */", "// kept"))


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{\n}\n",
        '{"tools": {}}',
        '{"tools": {"mcp_servers": {}}}',
        '{"redis": "redis://h",}',
        "{ // c\n}",
        '{"tools": {"max_retries": 1}} // end',
    ],
)
def test_a_server_can_be_added_wherever_there_is_none_yet_and_removed_again(path: Path, text: str) -> None:
    """Objects on the way are made as needed."""
    path.write_text(text)
    add_server(path, "one", {"command": "x"})
    add_server(path, "two", {"command": "y"})
    assert servers(path) == ["one", "two"]
    remove_server(path, "one")
    remove_server(path, "two")
    assert servers(path) == []


def test_a_file_that_is_not_there_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """An entry may hold a secret."""
    path = tmp_path / "new.json"
    add_server(path, "a", {"command": "x"})
    assert servers(path) == ["a"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_stays_a_link(path: Path, tmp_path: Path) -> None:
    """Settings are often kept elsewhere and linked."""
    link = tmp_path / "link.json"
    link.symlink_to(path)
    add_server(link, "c", {"command": "x"})
    assert link.is_symlink()
    assert servers(path) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("name", "entry", "message"),
    [
        ("a", {"command": "x"}, "has a server 'a' already"),
        ("c", {"command": "x", "url": "http://h"}, "c.url: belongs to"),
        ("c d", {"command": "x"}, "'c d' is no name for a server"),
    ],
)
def test_what_would_break_the_file_is_not_written(path: Path, name: str, entry: dict[str, str], message: str) -> None:
    """Nothing is lost by a slip."""
    with pytest.raises(ConfigError, match=message):
        add_server(path, name, entry)
    assert path.read_text() == COMMENTED


def test_removing_an_unknown_server_names_the_nearest(path: Path) -> None:
    """And writes nothing."""
    path.write_text('{"tools": {"mcp_servers": {"github-main": {"command": "x"}}}}')
    with pytest.raises(ConfigError, match="has no server 'github_main'") as caught:
        remove_server(path, "github_main")
    assert caught.value.hint == "Did you mean 'github-main'?"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("s.yaml", "redis: redis://h # mine\n", "is YAML, which squidbot does not rewrite"),
        ("s.json", '{"mcpServers": {}}', "is another tool's file"),
        ("s.json", '{"tools": []}', "is another tool's file"),
        ("s.json", '{"tools": 3}', "tools: found 3; expected an object"),
        ("s.json", '{"tools": {"mcp_servers": 3}}', "found 3; expected an object"),
        ("s.json", "{", "is not valid JSON"),
    ],
)
def test_files_that_cannot_be_edited_safely_are_left_alone(tmp_path: Path, name: str, text: str, message: str) -> None:
    """With a word on what to do instead."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        add_server(path, "c", {"command": "x"})
    assert path.read_text() == text


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """Not a traceback."""
    with pytest.raises(ConfigError, match="cannot be written: No such file or directory"):
        add_server(tmp_path / "nope" / "s.json", "c", {"command": "x"})


GAP = st.sampled_from(["", " ", "\n", " // c, }\n", "/* , } */", "\n\n  "])


@settings(max_examples=200, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.lists(st.tuples(GAP, GAP, GAP, GAP), max_size=4), st.booleans(), st.integers(0, 5), GAP)
def test_any_layout_survives_an_addition_and_a_removal(
    path: Path, gaps: list[tuple[str, ...]], trailing: bool, which: int, last: str
) -> None:
    """Commas and braces in comments must not fool it."""
    names = [f"s{number}" for number in range(len(gaps))]
    members = [f'{a}"{name}"{b}:{c}{{"command": "x"}}{d}' for name, (a, b, c, d) in zip(names, gaps, strict=True)]
    body = ",".join(members) + ("," if trailing and members else "") + last
    path.write_text('{"tools": {"mcp_servers": {' + body + "}}}")
    add_server(path, "new", {"command": "y"})
    assert servers(path) == [*names, "new"]
    gone = [*names, "new"][which % (len(names) + 1)]
    remove_server(path, gone)
    assert servers(path) == [name for name in [*names, "new"] if name != gone]
