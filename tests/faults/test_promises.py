"""The promises that have a number, each in a small dose: whether they hold at all, not how well."""

import subprocess
import sys

import pytest

from tests.faults.scene import ROOT


def kept(name: str, *options: str) -> None:
    """Run a promise's own program."""
    command = [sys.executable, "-m", f"tests.faults.promises.{name}", *options]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr[-3000:]}"


@pytest.mark.deadline(120)
@pytest.mark.requirement("B-01")
def test_nothing_is_left_of_servers_that_end_badly() -> None:
    """A process that outlives us keeps its secrets, its port and its memory."""
    kept("leftovers", "--cycles", "1", "--kills", "1")


@pytest.mark.deadline(120)
@pytest.mark.requirement("B-15")
def test_a_machine_without_open_files_refuses_new_servers_and_keeps_the_old() -> None:
    """The worst moment to fall over is when the machine is full."""
    kept("descriptors")
