"""Packages that are put off: nobody can tell, but by what is loaded."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.running import ROOT

PACKAGE = {
    "outer/__init__.py": "print('outer')\nfrom outer.heavy import weight\nfrom outer.light import feather\n",
    "outer/heavy.py": "print('heavy')\nweight = 9\n",
    "outer/light.py": "print('light')\nfeather = 1\n",
    "outer/inner/__init__.py": "print('inner')\nfrom outer.heavy import weight as gravity\n",
    "outer/inner/core.py": "print('core')\nfrom outer.light import feather\nnut = 2\n",
}


def _ran(folder: Path, program: str) -> list[str]:
    for name, text in PACKAGE.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    lines = f"import sys\nsys.path[:0] = [{str(folder)!r}]\nfrom squidbot.gateway.mcp.deferred import defer\n{program}"
    ran = subprocess.run(
        [sys.executable, "-c", lines], capture_output=True, text=True, cwd=ROOT, check=False, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("from outer.inner.core import nut; print(nut)", "core light 2"),
        ("from outer.inner.core import nut; from outer import weight; print(weight)", "core light outer heavy 9"),
        ("import outer.light; import outer; print(outer.weight, outer.light.feather)", "light outer heavy 9 1"),
        ("from outer.inner import gravity; print(gravity)", "inner heavy 9"),
        ("from outer import heavy; print(heavy.weight, outer_ran := 1)", "outer heavy light 9 1"),
        (
            "import outer; print(hasattr(outer, 'nothing'), outer.__name__, outer.__package__)",
            "outer heavy light False outer outer",
        ),
        ("import outer; print(hasattr(outer, '__all__'))", "False"),
    ],
)
def test_what_is_put_off_runs_when_something_is_wanted_of_it(tmp_path: Path, program: str, said: str) -> None:
    """Modules are found without it; any name of it runs it first, once."""
    assert _ran(tmp_path, f"defer('outer', 'outer.inner', 'outer.missing')\n{program}") == said.split()


def test_what_has_run_already_stays_as_it_is(tmp_path: Path) -> None:
    """A program that uses a package before us keeps it."""
    program = "import outer\nbefore = outer\ndefer('outer')\nimport outer\nprint(outer is before)"
    assert _ran(tmp_path, program) == ["outer", "heavy", "light", "True"]


def test_the_gateway_loads_of_the_sdk_what_it_uses() -> None:
    """A tenth of its memory was a library of cryptography that nobody called; and the SDK is all there for who wants it."""
    program = (
        "import sys, squidbot.gateway.mcp.endpoint\n"
        "print(*(name in sys.modules for name in ('cryptography', 'mcp.server.mcpserver', 'mcp.client.client')))\n"
        "from mcp import Client\nfrom mcp.server import MCPServer\nimport mcp.client.client\n"
        "print(Client is mcp.client.client.Client, mcp.client.Client is Client, mcp.server.mcpserver.MCPServer is MCPServer)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False, timeout=60
    )
    assert ran.stdout.split() == ["False"] * 3 + ["True"] * 3, ran.stderr
