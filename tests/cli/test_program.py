"""The program itself, beside what its commands do: how little it does for nothing."""

import json
import subprocess
import sys

SEARCHES = """
import gc, json, sys
from squidbot.__main__ import main
whole = []
gc.callbacks.append(lambda phase, about: whole.append(about["generation"] == 2) if phase == "start" else None)
sys.argv = ["squidbot", "tools", "--help"]
main()
sys.stderr.write(json.dumps([sum(whole), gc.get_freeze_count()]))
"""


def test_a_command_does_not_search_all_it_has_loaded_for_garbage_neither_before_nor_at_its_end() -> None:
    """There is none, and to find that out takes longer than most commands."""
    done = subprocess.run([sys.executable, "-c", SEARCHES], capture_output=True, text=True, check=True, timeout=60)
    searches, spared = json.loads(done.stderr)
    assert searches == 0
    assert spared > 10_000
