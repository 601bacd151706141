"""Whoever writes to the one file lets others have their turn, and waits for nobody for ever."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from squidbot.adapters.store import sqlite
from squidbot.adapters.store.sqlite import SQLiteFile

pytestmark = pytest.mark.requirement("E-05")


@pytest.fixture
def files(tmp_path: Path) -> Iterator[list[SQLiteFile]]:
    """The same file, as two processes have it."""
    found = [SQLiteFile(tmp_path / "audit.db", lock_timeout=5.0) for _ in range(2)]
    yield found
    for file in found:
        file.dispose()


def test_one_after_the_other_and_nobody_is_left_out(files: list[SQLiteFile]) -> None:
    """One process that writes without a pause must not have the trail for itself."""
    inside: list[int] = []
    order: list[int] = []
    together: list[bool] = []
    until = time.monotonic() + 0.5

    def write(number: int) -> None:
        while time.monotonic() < until:
            with files[number].turn():
                inside.append(number)
                order.append(number)
                time.sleep(0.002)
                together.append(len(inside) > 1)
                inside.remove(number)
            time.sleep(0.001)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not any(together)
    assert min(order.count(0), order.count(1)) >= 5


def test_who_does_not_give_it_back_is_not_waited_for(files: list[SQLiteFile], monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was stopped in the middle holds up others for a moment; then the database itself decides."""
    monkeypatch.setattr(sqlite, "_PATIENCE", 0.1)
    with files[0].turn():
        began = time.monotonic()
        with files[1].turn():
            assert time.monotonic() - began >= 0.1
    with files[1].turn():
        assert not files[0]._takes_turn()


def test_where_nothing_can_be_written_nobody_waits(tmp_path: Path) -> None:
    file = SQLiteFile(tmp_path / "nowhere" / "audit.db", lock_timeout=5.0)
    with file.turn():
        assert not file._takes_turn()
