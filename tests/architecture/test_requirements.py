"""Promises and tests hold each other: no marker without a promise, no kept promise without a test."""

import ast
import re
from collections.abc import Iterator

from tests.architecture.source import ROOT, Module, modules

LINE = re.compile(r"^\| (?P<id>[A-H]-\d{2}) \| .+ \| (?P<state>\w+) \|$", re.MULTILINE)


def promises() -> dict[str, str]:
    """Each promise's state, by its id."""
    text = (ROOT / "docs/requirements.md").read_text("utf-8")
    return {line["id"]: line["state"] for line in LINE.finditer(text)}


def markers() -> Iterator[tuple[str, str]]:
    """Each id that a test claims to prove, and where."""
    for module in modules("tests"):
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.requirement":
                yield from ((identity, module.at(node)) for identity in _ids(node, module))


def _ids(call: ast.Call, module: Module) -> Iterator[str]:
    assert call.args, f"{module.at(call)}: names no promise"
    for argument in call.args:
        assert isinstance(argument, ast.Constant), (
            f"{module.at(call)}: ids are written out, so that they can be read here"
        )
        yield str(argument.value)


def test_every_promise_is_written_down_once_as_open_or_done() -> None:
    """A table that cannot be read would make the other two tests pass on nothing."""
    text = (ROOT / "docs/requirements.md").read_text("utf-8")
    ids = re.findall(r"^\| ([A-H]-\d{2})", text, re.MULTILINE)
    assert len(ids) == len(set(ids)) == len(promises()) > 0
    assert set(promises().values()) <= {"open", "done"}


def test_every_marker_names_a_promise() -> None:
    """A marker with a typing error proves a promise that nobody made."""
    known = promises()
    assert [f"{place}: {identity!r} is no promise" for identity, place in markers() if identity not in known] == []


def test_every_promise_that_is_done_has_a_test() -> None:
    """Done means shown."""
    proven = {identity for identity, _ in markers()}
    assert [identity for identity, state in promises().items() if state == "done" and identity not in proven] == []
