"""The servers that squidbot knows by itself."""

import sys
from importlib.util import find_spec

import pytest

from squidbot.config.builtin import BUILTIN_NAMES, DEFAULT_MCP_SERVERS, get_default_mcp_config
from squidbot.config.schema import MCPConfig
from squidbot.core.domain.errors import ConfigError


@pytest.mark.requirement("A-06")
def test_every_built_in_definition_starts_something_that_exists() -> None:
    """A definition that starts nothing is a trap, one that runs an unowned package a break-in."""
    assert set(DEFAULT_MCP_SERVERS) <= set(BUILTIN_NAMES)
    assert {"filesystem", "brave"} <= set(DEFAULT_MCP_SERVERS)
    for name, server in DEFAULT_MCP_SERVERS.items():
        if server.command == sys.executable:
            assert find_spec(server.args[2]), name
        else:
            assert (name, server.command, server.args[1].rpartition("@")[0]) == (
                "brave",
                "npx",
                "@brave/brave-search-mcp-server",
            )


@pytest.mark.requirement("A-06")
def test_default_configurations_are_fresh_each_time() -> None:
    """Whoever changes one must not change everybody's."""
    first, second = get_default_mcp_config(), get_default_mcp_config()
    first.servers.clear()
    assert second.servers
    assert second.servers["brave"].env is not get_default_mcp_config().servers["brave"].env


@pytest.mark.requirement("A-06")
def test_settings_name_a_built_in_without_defining_it() -> None:
    """Own fields go on top; arguments are added, variables merged."""
    entry = {"args": ["/data"], "env": {"A": "1"}, "lazy": True, "read_only": []}
    server = MCPConfig.from_dict({"servers": {"filesystem": entry}}).servers["filesystem"]
    assert server.args == ["-P", "-m", "squidbot.servers.filesystem", "/data"]
    assert server.env.keys() == {"A", "SQUIDBOT_HOME"}
    assert (server.lazy, server.read_only) == (True, [])


def test_an_entry_of_a_built_ins_name_may_be_something_else() -> None:
    """The name is the person's to give."""
    assert MCPConfig.from_dict({"servers": {"brave": {"command": "mine"}}}).servers["brave"].args == []


def test_a_malformed_entry_of_a_built_ins_name_is_reported_not_completed() -> None:
    """Completing must never raise by itself."""
    with pytest.raises(ConfigError, match=r"servers\.brave\.args: found a string|servers\.brave\.args: found"):
        MCPConfig.from_dict({"servers": {"brave": {"args": "x"}}})


@pytest.mark.requirement("A-06", "A-03")
def test_built_ins_that_nobody_named_are_left_out_without_their_variable(caplog: pytest.LogCaptureFixture) -> None:
    """With a warning, and without the rest suffering."""
    assert "brave" not in get_default_mcp_config().resolved({}).servers
    assert "'brave' (BRAVE_API_KEY)" in caplog.text
    assert get_default_mcp_config().resolved({"BRAVE_API_KEY": "k"}).servers["brave"].env["BRAVE_API_KEY"] == "k"
