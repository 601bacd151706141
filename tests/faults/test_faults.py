"""Servers that misbehave, one by one beside a healthy one, over every transport."""

import ast
import gc
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.case import Cell
from tests.faults.cases import CASES, CELLS, TESTED
from tests.faults.judge import judge
from tests.faults.report import ROWS
from tests.faults.scene import ROOT

SERVERS = sorted(Path(__file__).with_name("servers").glob("*.py"))
PLAYED_ELSEWHERE = {"says_what_it_is_told", "flaky", "sulks", "leaks_environment"}


@pytest.fixture(scope="module", autouse=True)
def set_aside() -> Iterator[None]:
    """What pytest itself has loaded is looked through by no collection: that takes longer than most faults."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.anyio
@pytest.mark.requirement("B-06", "B-08", "B-14", "B-15", "C-01", "D-02", "D-05")
@pytest.mark.parametrize("cell", TESTED, ids=str)
async def test_a_server_that_misbehaves_hurts_nobody_but_its_own_callers(cell: Cell) -> None:
    """Nine servers out of ten are somebody else's, and one of them is always broken."""
    verdict = await judge(cell)
    assert [*verdict.broken, *verdict.late] == [], verdict.outcome


def test_every_faulty_server_is_tried() -> None:
    """A script that nobody runs proves nothing."""
    scripts = {path.stem for path in SERVERS} - PLAYED_ELSEWHERE
    assert sorted(scripts - {case.fault for case in CASES}) == []


def test_every_faulty_server_says_in_one_sentence_what_it_does() -> None:
    """Its name and its first line are all that a reader of the matrix has."""
    silent = [path.name for path in SERVERS if not re.fullmatch(r".+\.", ast.get_docstring(_tree(path)) or "")]
    assert silent == []


def test_every_kind_of_fault_is_tried_over_every_transport_that_can_have_it() -> None:
    """A sample that leaves out a kind would make the matrix a lie."""
    assert {cell.case.name for cell in CELLS} == {case.name for case in CASES}
    assert {case.row for case in CASES} == set(ROWS)


def test_the_page_of_faults_shows_every_one_of_them() -> None:
    """The page is written by the runner; one that was forgotten tells of another time."""
    shown = set(re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs/faults.md").read_text("utf-8"), re.MULTILINE))
    assert shown == {case.name for case in CASES}


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))
