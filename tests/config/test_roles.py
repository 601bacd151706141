"""Roles of the settings, and of a role-mapping file, as the core decides by them."""

from pathlib import Path
from typing import Any

import pytest

from squidbot.config.load import load_settings
from squidbot.config.roles import load_tool_mapping, mapper_of
from squidbot.config.schema import Settings
from squidbot.core.domain.errors import ConfigError

MAPPING = """
version: 1
mcp_servers:
  git: {command: uvx, args: [mcp-server-git, --repository, .]}
  issues: {url: "https://mcp.example.com/mcp"}
roles:
  reader:
    description: Looks only
    tools:
      git: [git_log, git_diff]
      issues: {tools: ["get_*"]}
"""


def settings(**roles: Any) -> Settings:
    return Settings.model_validate({"roles": roles})


@pytest.mark.requirement("E-01")
def test_settings_add_to_a_shipped_role_or_take_its_place() -> None:
    """Both are wanted, and which it is must be said."""
    given = settings(
        designer={"tools": {"files": ["read_*"]}}, qa_tester={"replace": True, "tools": {"git": ["git_log"]}}
    )
    mapper = mapper_of(given)
    assert mapper.can_use_tool("designer", "github", "create_issue")
    assert mapper.can_use_tool("designer", "files", "read_file")
    assert mapper.get_all_tools_for_role("qa_tester") == {"git": ["git_log"]}
    assert mapper.roles["designer"].description == "Design feedback"
    assert len(mapper.roles) == 9


@pytest.mark.requirement("E-11")
def test_conditions_come_from_the_settings() -> None:
    """Plain settings, no program."""
    mapper = mapper_of(settings(dev={"tools": {"git": [{"tool": "git_push", "when": {"branch": ["feature/*"]}}]}}))
    assert mapper.decide("dev", "git", "git_push", {"branch": "feature/x"}).allowed
    assert not mapper.decide("dev", "git", "git_push", {"branch": "main"}).allowed


@pytest.mark.requirement("E-03", "E-11")
@pytest.mark.parametrize(
    ("roles", "complaint"),
    [
        ({"operator": {}}, "is no role that settings can define"),
        ({"admin": {"tools": {"git": ["*"]}}}, "is no role that settings can define"),
        ({"dev": {"tools": {"git": [{"tool": "a", "when": {"branch": []}}]}}}, "branch"),
        ({"dev": {"tools": {"git": [{"tool": "a", "when": ["feature/*"]}]}}}, "when"),
        ({"dev": {"tools": {"git": [{"when": {}}]}}}, "tool"),
    ],
)
def test_a_malformed_role_stops_the_load(tmp_path: Path, roles: dict[str, Any], complaint: str) -> None:
    """A condition that is read as none would be a hole."""
    import json

    file = tmp_path / "squidbot.json"
    file.write_text(json.dumps({"roles": roles}))
    with pytest.raises(ConfigError, match=complaint):
        load_settings(file)


@pytest.mark.requirement("A-05", "E-02")
def test_a_role_mapping_file_is_the_whole_truth_about_its_roles(tmp_path: Path) -> None:
    """Files that teams already have are read as they are."""
    file = tmp_path / "roles.yaml"
    file.write_text(MAPPING)
    mapper = load_tool_mapping(file)
    assert mapper.get_servers_for_role("reader") == ["git", "issues"]
    assert mapper.get_tools_for_role("reader", "git") == ["git_log", "git_diff"]
    assert mapper.can_use_tool("reader", "issues", "get_issue")
    assert not mapper.can_use_tool("designer", "github", "create_issue")
    assert mapper.get_server_config("git") == {"command": "uvx", "args": ["mcp-server-git", "--repository", "."]}
    assert mapper.get_server_config("nowhere") == {}


@pytest.mark.requirement("A-05", "E-02")
def test_a_mapping_may_leave_its_servers_to_others(tmp_path: Path) -> None:
    """With a version and roles it is a mapping still, and no settings file in which keys are wrong."""
    file = tmp_path / "roles.yaml"
    file.write_text("version: '1.0'\nroles: {dev: {mcp_servers: {git: [git_log]}}}")
    assert load_tool_mapping(file).get_all_tools_for_role("dev") == {"git": ["git_log"]}
    assert load_tool_mapping(file).get_server_config("git") == {}


def test_a_settings_file_serves_as_a_mapping_too(tmp_path: Path) -> None:
    """For `roles diff` and `roles simulate` the proposal is usually the next settings file."""
    file = tmp_path / "next.json"
    file.write_text('{"roles": {"designer": {"tools": {"filesystem": ["*"]}}}}')
    mapper = load_tool_mapping(str(file))
    assert mapper.can_use_tool("designer", "filesystem", "read_file")
    assert mapper.get_server_config("filesystem")["description"]


@pytest.mark.parametrize("content", [None, "version: 1\nmcp_servers: {}\nroles: {dev: {tools: {git: [3]}}}", "[1, 2"])
def test_a_mapping_that_cannot_be_read_says_why(tmp_path: Path, content: str | None) -> None:
    """Never a mapping with less, or more, than was meant."""
    file = tmp_path / "roles.yaml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError):
        load_tool_mapping(file)
