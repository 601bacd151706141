"""The promises that have a number, each in a small dose: whether they hold at all, not how well."""

import subprocess
import sys

import pytest

from tests.faults.scene import ROOT


def kept(name: str, *options: str) -> None:
    """Run a promise's own program."""
    command = [sys.executable, "-m", f"tests.faults.promises.{name}", *options]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=230, check=False)
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


@pytest.mark.deadline(240)
@pytest.mark.requirement("B-15")
def test_a_machine_without_memory_or_threads_keeps_what_there_is() -> None:
    """Nor must it fall over here, nor lose what works."""
    kept("shortage")


@pytest.mark.deadline(120)
@pytest.mark.requirement("E-05", "E-06")
def test_nothing_that_was_answered_is_missing_after_a_kill() -> None:
    """P1 and P3: an answer is a promise that the call is on record, and nothing happens unannounced."""
    kept("acknowledged", "--calls", "100", "--kills", "3")
    kept("acknowledged", "--calls", "60", "--kills", "2", "--door", "tests.faults.promises.doors:guarded")


@pytest.mark.deadline(120)
@pytest.mark.requirement("E-05")
def test_without_a_record_there_is_no_call() -> None:
    """P2: a gateway that goes on unrecorded is the one that an attacker wants."""
    kept("unrecorded", "--calls", "100")
    kept("unrecorded", "--calls", "50", "--door", "tests.faults.promises.doors:guarded")


@pytest.mark.deadline(120)
@pytest.mark.requirement("E-06")
def test_tampering_is_found_wherever_it_is_done() -> None:
    """P4: one place where it goes unseen is the place where it will be done."""
    kept("tampering", "--positions", "40", "--rows", "0")


@pytest.mark.deadline(120)
@pytest.mark.requirement("E-01", "E-03")
def test_a_role_reaches_exactly_its_tools_however_they_are_spelt() -> None:
    """P8: counted where it matters, at the servers."""
    kept("wall", "--generated", "500")


@pytest.mark.deadline(240)
@pytest.mark.requirement("E-05", "A-03")
def test_no_planted_secret_is_found_anywhere() -> None:
    """P10: in the log, the record, an error or on the terminal."""
    kept("canaries", "--each", "2")


@pytest.mark.deadline(120)
@pytest.mark.requirement("E-07")
def test_a_limit_lets_through_exactly_what_it_says() -> None:
    """P11: with many callers, and with the true time to wait."""
    kept("exactness", "--callers", "100", "--minutes", "2")


@pytest.mark.deadline(120)
@pytest.mark.requirement("G-01")
def test_nobody_gets_the_answer_to_anothers_call() -> None:
    """P9: equal ids, one connection to the server, answers in any order."""
    kept("crosstalk", "--calls", "400")


@pytest.mark.deadline(180)
@pytest.mark.requirement("B-07", "G-01")
def test_a_gateway_is_there_at_once_whatever_hangs() -> None:
    """P13: the numbers are for a machine that does nothing else."""
    kept("gateway_start", "--patience", "15")


@pytest.mark.deadline(240)
@pytest.mark.requirement("E-05", "G-01")
@pytest.mark.parametrize("number", ["TERM", "INT", "KILL"])
def test_a_gateway_that_ends_under_load_answers_or_says_so(number: str) -> None:
    """P14: nobody waits in vain, and what was answered is on record, however it ends."""
    kept("gateway_stop", "--runs", "1", "--rate", "50", "--signal", number)


@pytest.mark.deadline(240)
@pytest.mark.requirement("B-01", "G-01")
def test_nothing_is_left_of_a_gateway_that_ends() -> None:
    """P7: neither of one that is told to end nor of one that is killed."""
    kept("gateway_leftovers", "--stops", "1", "--kills", "1")
