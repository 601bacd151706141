"""Memory that a large message took goes back to the system with it."""

import subprocess
import sys

import pytest

MEASURED = """
from squidbot.adapters.mcp.allocator import give_large_blocks_back
from tests.faults.measure import resident

assert give_large_blocks_back()
before = resident()
for _ in range(3):
    # Pieces of a few megabytes, as a message is read, joined, decoded and parsed.
    pieces = [bytes([number]) * 3_000_000 for number in range(10)]
    whole = b"".join(pieces)
    text = whole.decode("latin-1")
    pinned = bytearray(700_000)
    del pieces, whole, text
print((resident() - before) // 1_000_000)
"""


@pytest.mark.requirement("B-15")
def test_what_large_messages_took_is_given_back_at_once() -> None:
    """glibc keeps it for the next ones, which may never come: 50 MB after one answer of 9 MB."""
    run = subprocess.run([sys.executable, "-c", MEASURED], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 10
