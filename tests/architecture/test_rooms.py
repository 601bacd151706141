"""The table of rooms holds: who imports what, and the few things that only one place may do."""

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.architecture.rooms import MAY_IMPORT_LATE, MAY_PRINT, OWNS_TASKS, ROOMS, SHAPELESS, SHELLS, room_of
from tests.architecture.source import Module, imports, modules, parse, within

Rule = Callable[[Module], Iterator[str]]


def strangers(module: Module) -> Iterator[str]:
    """Imports that the module's room does not allow."""
    name = room_of(module.name)
    if name is None:
        yield f"{module.place}: is in no room; add its room to the table, and say why in docs/architecture.md"
        return
    room = ROOMS[name]
    for found in imports(module):
        root = found.module.partition(".")[0]
        if root not in sys.stdlib_module_names and not within(found.module, (name, *room.own, *room.libraries)):
            yield f"{module.at(found.node)}: {name} may not import {found.module!r}"


def late_imports(module: Module) -> Iterator[str]:
    """Imports inside functions, where the room has no reason for them."""
    if module.name != "squidbot" and not within(module.name, MAY_IMPORT_LATE):
        yield from (
            f"{module.at(found.node)}: imports {found.module!r} in a function"
            for found in imports(module)
            if found.late
        )


def shells(module: Module) -> Iterator[str]:
    """Ways in which a setting could become a command line."""
    for call in _calls(module):
        if any(word.arg == "shell" and not _is_false(word.value) for word in call.keywords):
            yield f"{module.at(call)}: hands a command to a shell"
        if ast.unparse(call.func) in SHELLS:
            yield f"{module.at(call)}: {ast.unparse(call.func)} runs a shell"


def prints(module: Module) -> Iterator[str]:
    """Words on stdout from a room that has no business there."""
    if not within(module.name, MAY_PRINT):
        yield from (f"{module.at(call)}: prints" for call in _calls(module) if _name(call.func) == "print")


def loose_tasks(module: Module) -> Iterator[str]:
    """Tasks outside a task group, which nobody awaits."""
    if not within(module.name, OWNS_TASKS):
        for call in _calls(module):
            if _name(call.func) in {"create_task", "ensure_future"}:
                yield f"{module.at(call)}: starts a task that no task group owns"


def shapeless_names(module: Module) -> Iterator[str]:
    """Classes named for nothing."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef) and node.name.endswith(SHAPELESS):
            yield f"{module.at(node)}: {node.name!r} does not say what it is"


def mocks(module: Module) -> Iterator[str]:
    """Stand-ins that agree with whatever they are told."""
    for found in imports(module):
        if within(found.module, ("unittest.mock", "mock", "pytest_mock")):
            yield f"{module.at(found.node)}: imports {found.module!r}; use the real thing, or a fake of a port"


@pytest.mark.parametrize("rule", [strangers, late_imports, shells, prints, loose_tasks, shapeless_names])
def test_no_module_of_squidbot_breaks(rule: Rule) -> None:
    """A plan of the house that nothing enforces is soon a drawing of another house."""
    assert [problem for module in modules("squidbot") for problem in rule(module)] == []


@pytest.mark.parametrize("rule", [mocks, shells])
def test_no_test_breaks(rule: Rule) -> None:
    """A mock passes when the real thing would fail, so tests use real things."""
    assert [problem for module in modules("tests") for problem in rule(module)] == []


@pytest.mark.parametrize(
    ("rule", "module", "text"),
    [
        (strangers, "squidbot/core/domain/bad.py", "import anyio"),
        (strangers, "squidbot/core/domain/bad.py", "from squidbot.core import ports"),
        (strangers, "squidbot/core/services/bad.py", "from loguru import logger"),
        (strangers, "squidbot/core/services/bad.py", "from squidbot.config.schema import Settings"),
        (strangers, "squidbot/config/bad.py", "from squidbot.core.ports import ToolPort"),
        (strangers, "squidbot/adapters/registry/bad.py", "import mcp"),
        (strangers, "squidbot/adapters/mcp/bad.py", "from squidbot.config.load import load_settings"),
        (strangers, "squidbot/adapters/mcp/bad.py", "from squidbot import MCPClient"),
        (strangers, "squidbot/gateway/bad.py", "from mcp.client.session import ClientSession"),
        (strangers, "squidbot/gateway/bad.py", "from squidbot.adapters.mcp.client import MCPClient"),
        (strangers, "squidbot/cli/bad.py", "from dependency_injector import providers"),
        (strangers, "squidbot/servers/bad.py", "from squidbot.core.domain.tools import ToolId"),
        (strangers, "squidbot/core/domain/bad.py", "from .tools import ToolId"),
        (strangers, "squidbot/attic/bad.py", "import json"),
        (late_imports, "squidbot/core/services/bad.py", "def f():\n    import json"),
        (
            late_imports,
            "squidbot/adapters/mcp/bad.py",
            "class A:\n    async def f(self):\n        from json import loads",
        ),
        (shells, "squidbot/cli/bad.py", "subprocess.run('ls', shell=True)"),
        (shells, "squidbot/cli/bad.py", "subprocess.run('ls', shell=flag)"),
        (shells, "squidbot/cli/bad.py", "os.system('ls')"),
        (shells, "squidbot/cli/bad.py", "await asyncio.create_subprocess_shell('ls')"),
        (prints, "squidbot/config/bad.py", "print('hello')"),
        (loose_tasks, "squidbot/adapters/mcp/session.py", "asyncio.create_task(f())"),
        (loose_tasks, "squidbot/gateway/bad.py", "asyncio.ensure_future(f())"),
        (shapeless_names, "squidbot/core/services/bad.py", "class ToolManager: ..."),
        (mocks, "tests/bad.py", "from unittest.mock import Mock"),
        (mocks, "tests/bad.py", "from unittest import mock"),
    ],
)
def test_every_rule_finds_what_it_is_there_for(rule: Rule, module: str, text: str) -> None:
    """A rule that cannot fail proves nothing."""
    assert list(rule(parse(text, Path(module))))


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("squidbot/core/services/good.py", "import anyio\nfrom squidbot.core.ports import ToolPort"),
        ("squidbot/adapters/mcp/good.py", "import mcp\nfrom squidbot.config.schema import MCPServerConfig"),
        ("squidbot/gateway/good.py", "from mcp.server import Server"),
        ("squidbot/servers/git/good.py", "import mcp\nfrom squidbot.servers.git import tools"),
    ],
)
def test_what_the_table_allows_passes(module: str, text: str) -> None:
    """A rule that refuses what the plan allows would be switched off by the next person."""
    assert list(strangers(parse(text, Path(module)))) == []


def _calls(module: Module) -> Iterator[ast.Call]:
    return (node for node in ast.walk(module.tree) if isinstance(node, ast.Call))


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False


def _name(function: ast.expr) -> str | None:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return None
