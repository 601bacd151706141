"""Randomness taken from the system many at a time."""

import os

from squidbot.core.services.chance import Chance


def test_no_bytes_are_given_twice() -> None:
    """Two calls with the same id would be mistaken for each other."""
    chance = Chance()
    given = [chance.bytes(10) for _ in range(5_000)]
    assert len(set(given)) == len(given)
    assert all(len(one) == 10 for one in given)
    assert len(chance.bytes(10_000)) == 10_000


def test_a_forked_child_has_randomness_of_its_own() -> None:
    """It would make the same ids as its parent."""
    chance = Chance()
    chance.bytes(1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, chance.bytes(16))
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 16) != chance.bytes(16)
    os.close(read)
    os.close(write)
