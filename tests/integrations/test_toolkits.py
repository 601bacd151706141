"""Every toolkit with the real framework and a scripted model, in the environment where the frameworks are."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.needs import peer
from tests.fixtures.running import ROOT
from tests.peers.install import python_program

SILENT = {"AGNO_TELEMETRY": "false", "OPENAI_AGENTS_DISABLE_TRACING": "1", "LANGSMITH_TRACING": "false"}
"""What keeps the frameworks from telling their makers about a run."""
FRAMEWORKS = ("agno", "openai_agents", "pydantic_ai", "langchain")


def inside(*arguments: str, framework: str) -> subprocess.CompletedProcess[str]:
    """Run pytest there; what it covers counts here, if anything is counted."""
    [python] = peer(lambda: python_program("frameworks", "python"))
    # What this environment's own coverage left behind would begin a second count there.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    counted = ["-m", "coverage", "run"] if len(environ) < len(os.environ) else []
    return subprocess.run(
        [python, *counted, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        env={**environ, **SILENT, "FRAMEWORK": framework, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.peers
@pytest.mark.requirement("G-11")
@pytest.mark.deadline(300)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_agent_of_another_framework_works_through_the_guarded_door(framework: str) -> None:
    """A double of a framework agrees with whatever we believe of it; the framework itself does not."""
    run = inside("tests/integrations/inside.py", "tests/integrations/examples.py", framework=framework)
    assert run.returncode == 0, f"{run.stdout[-6000:]}\n{run.stderr[-2000:]}"
    assert "passed" in run.stdout
    assert "skipped" not in run.stdout


@pytest.mark.requirement("G-11")
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_no_toolkit_reaches_for_a_tool_but_through_the_door(framework: str) -> None:
    """Each is a few lines over what they share, and small enough to be read before it is trusted."""
    lines = (ROOT / f"squidbot/integrations/{framework}.py").read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line.strip()]) < 70
    assert not any("registry" in line or "source" in line or ".client" in line for line in lines)


def test_squidbot_itself_loads_without_any_of_the_frameworks() -> None:
    """An extra that is not installed costs nothing and breaks nothing."""
    code = "import squidbot.integrations, squidbot.integrations.role_tools as r; print(r.ANY)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=Path("/"))
    assert run.stdout.strip() == "('*',)", run.stderr
