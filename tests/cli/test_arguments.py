"""`key=value` on the command line."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squidbot.cli.arguments import read_arguments, typed_arguments
from squidbot.cli.errors import CommandError

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "n": {"type": "integer"},
        "x": {"type": "number"},
        "flag": {"type": "boolean"},
        "list": {"type": "array"},
        "thing": {"type": "object"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "either": {"type": ["string", "integer"]},
        "color": {"enum": ["red", "green"]},
        "open": {},
    },
}


def typed(*pairs: str, whole: str | None = None) -> dict[str, Any]:
    return typed_arguments(read_arguments(pairs, whole), SCHEMA)


@pytest.mark.requirement("G-03")
@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("text=3", "3"),
        ("text=true", "true"),
        ('text={"a": 1}', '{"a": 1}'),
        ("text=", ""),
        ("text=a=b", "a=b"),
        ("n=3", 3),
        ("n=three", "three"),
        ("x=1.5", 1.5),
        ("x=NaN", "NaN"),
        ("flag=true", True),
        ("list=[1, 2]", [1, 2]),
        ('thing={"a": [true]}', {"a": [True]}),
        ("maybe=null", None),
        ("maybe=3", "3"),
        ("either=3", 3),
        ("either=three", "three"),
        ("either=true", "true"),
        ("color=red", "red"),
        ("open=3", 3),
        ("open=word", "word"),
        ("unknown=[1]", [1]),
    ],
)
def test_a_value_has_the_type_that_the_schema_gives_it(pair: str, value: object) -> None:
    """Nobody wants to quote strings twice, and a ticket number 007 must not become 7 where text is asked for."""
    (given_value,) = typed(pair).values()
    assert (given_value, type(given_value)) == (value, type(value))


@given(st.text().filter(lambda text: not text.startswith("@")))
def test_any_text_reaches_a_string_parameter_as_it_is(text: str) -> None:
    """Whatever is typed, a string is that string."""
    assert typed(f"text={text}") == {"text": text}


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_any_json_reaches_an_open_parameter_as_it_is(value: object) -> None:
    """JSON is JSON, also nested."""
    assert typed(f"open={json.dumps(value)}") == {"open": value}


def test_a_file_is_read_whole_and_typed_like_a_value(folder: Path) -> None:
    """Long text lives in files."""
    (folder / "note.txt").write_text("line 1\nline 2\n")
    (folder / "list.json").write_text("[1, 2]\n")
    assert typed("text=@note.txt", "list=@list.json") == {"text": "line 1\nline 2\n", "list": [1, 2]}


def test_standard_input_is_a_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a pipe can feed a tool."""
    monkeypatch.setattr("sys.stdin", io.StringIO("from a pipe"))
    assert typed("text=@-") == {"text": "from a pipe"}


def test_all_at_once_is_json_and_a_pair_goes_on_top(folder: Path) -> None:
    """Programs write one document; a person changes one value of it."""
    (folder / "all.json").write_text('{"n": 1, "text": "a"}')
    assert typed("n=2", whole="@all.json") == {"n": 2, "text": "a"}
    assert typed(whole='{"text": 5}') == {"text": 5}


@pytest.mark.parametrize(
    ("pairs", "whole", "words"),
    [
        (["word"], None, "'word' is no argument"),
        (["=x"], None, "'=x' is no argument"),
        (["text=\udcff"], None, "argument 'text' is no UTF-8 text"),
        (["n=1", "n=2"], None, "argument 'n' is given twice"),
        (["text=@gone.txt"], None, "text=@gone.txt: the file cannot be read: no such file or directory"),
        (["text=@."], None, "is a directory"),
        (["text=@blob"], None, "no UTF-8 text"),
        (["text=@a\0b"], None, "cannot be read"),
        ([], "{", "--args is no valid JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
        ([], "", "--args is no valid JSON"),
        ([], "[1]", "--args must be a JSON object, not an array"),
        ([], "null", "--args must be a JSON object, not null"),
        ([], "3", "--args must be a JSON object, not a"),
        ([], '{"a": NaN}', "NaN is no JSON number"),
        ([], '{"a": 1, "a": 2}', "key 'a' is there twice"),
        ([], "[" * 100_000, "--args is no valid JSON"),
        ([], "@gone.json", "--args @gone.json: the file cannot be read"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(
    folder: Path, pairs: list[str], whole: str | None, words: str
) -> None:
    """The mistake is on the command line, so the message points there, and no server needs to know of it."""
    (folder / "blob").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CommandError) as caught:
        read_arguments(pairs, whole)
    assert words in str(caught.value)
    assert (caught.value.code, caught.value.exit_code) == ("invalid_arguments", 2)
