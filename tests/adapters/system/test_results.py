"""Results that are kept whole: read back to the letter, by name only, the newest of them."""

import os
from pathlib import Path

import pytest

from squidbot.adapters.system.results import FolderShelf

pytestmark = pytest.mark.requirement("D-03")


@pytest.mark.parametrize("text", ["", "a\r\nb\rc\n", "日本語\x00", "x" * 1_000_000])
def test_what_was_kept_is_read_back_to_the_letter(tmp_path: Path, text: str) -> None:
    """A model that reads on must find what the tool said."""
    shelf = FolderShelf(tmp_path / "kept")
    name = shelf.keep(text)
    assert shelf.read(name) == text
    assert (tmp_path / "kept" / f"{name}.txt").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["", "../secret", "0123456789abcdef", "x" * 16, "0123456789ABCDEF", "a/b"])
def test_a_name_that_was_not_given_out_reads_nothing(tmp_path: Path, name: str) -> None:
    """The name comes from a model, which may have it from anybody."""
    (tmp_path / "secret.txt").write_text("secret")
    with pytest.raises(KeyError):
        FolderShelf(tmp_path / "kept").read(name)


def test_a_lone_surrogate_does_not_end_the_run(tmp_path: Path) -> None:
    """Half a character is what some servers send."""
    shelf = FolderShelf(tmp_path)
    assert shelf.read(shelf.keep("a\ud800b")) == "a\\ud800b"


def test_the_oldest_make_room(tmp_path: Path) -> None:
    """A state folder must not grow for ever."""
    shelf = FolderShelf(tmp_path)
    names = []
    for number in range(210):
        names.append(shelf.keep(str(number)))
        os.utime(tmp_path / f"{names[-1]}.txt", (number, number))
    assert len(list(tmp_path.iterdir())) <= 201
    with pytest.raises(KeyError):
        shelf.read(names[0])
    assert shelf.read(names[-2]) == "208"
