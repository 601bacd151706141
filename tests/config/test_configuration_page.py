"""docs/configuration.md says what the program does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from squidbot.config.fields import AuthConfig
from squidbot.config.load import load_settings
from squidbot.config.schema import MCPServerConfig, Settings

PAGE = (Path(__file__).parents[2] / "docs/configuration.md").read_text(encoding="utf-8")
GUIDE, _, WRONG = PAGE.partition("\n## When something is wrong")
REPORTS = re.findall(r"```json\n(.*?)```\n\n```text\n(.*?)```", WRONG, re.DOTALL)


@pytest.mark.requirement("A-04")
@pytest.mark.parametrize(("document", "report"), REPORTS, ids=["fields", "references", "syntax"])
def test_the_reports_on_the_page_are_what_the_program_prints(document: str, report: str, tmp_path: Path) -> None:
    """Word for word, from the command that people type."""
    (tmp_path / "squidbot.json").write_text(document)
    program = Path(sys.executable).with_name("squidbot")
    run = subprocess.run(
        [program, "config", "check"], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (2, "", report)
    assert "k-81f20" not in report


def test_three_reports_are_shown() -> None:
    """The page promises three, and a pattern that finds none would prove nothing."""
    assert len(REPORTS) == 3


@pytest.mark.requirement("A-02")
@pytest.mark.parametrize("document", re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL))
def test_every_example_on_the_page_loads(document: str, tmp_path: Path) -> None:
    """People copy them."""
    (tmp_path / "squidbot.json").write_text(document)
    assert load_settings(tmp_path / "squidbot.json", environ={}).mcp.servers


@pytest.mark.parametrize("name", [*MCPServerConfig.model_fields, *AuthConfig.model_fields, *Settings.model_fields])
def test_every_field_is_on_the_page(name: str) -> None:
    """A field that no page names is a field that nobody finds."""
    if name not in {"name", "schema_url"}:
        assert re.search(rf"`[^`\n]*\b{name}\b", GUIDE)
