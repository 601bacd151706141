"""Our page of the protocol says what the SDK says, so that the two can share a wire."""

import logging
from collections.abc import Mapping
from typing import Any, get_args

import mcp_types as types
import pytest
from mcp.shared import inbound
from mcp_types import version
from pydantic import ValidationError

from squidbot.adapters.mcp import protocol
from squidbot.adapters.mcp.introduction import discovered, initialized

CODES = (
    "PARSE_ERROR",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "INVALID_PARAMS",
    "INTERNAL_ERROR",
    "CONNECTION_CLOSED",
    "REQUEST_TIMEOUT",
    "UNSUPPORTED_PROTOCOL_VERSION",
)
NAMES = {
    "PROTOCOL_VERSION_KEY": types.PROTOCOL_VERSION_META_KEY,
    "CLIENT_INFO_KEY": types.CLIENT_INFO_META_KEY,
    "CLIENT_CAPABILITIES_KEY": types.CLIENT_CAPABILITIES_META_KEY,
    "LOG_LEVEL_KEY": types.LOG_LEVEL_META_KEY,
    "SERVER_INFO_KEY": types.SERVER_INFO_META_KEY,
    "VERSION_HEADER": inbound.MCP_PROTOCOL_VERSION_HEADER,
    "METHOD_HEADER": inbound.MCP_METHOD_HEADER,
    "NAME_HEADER": inbound.MCP_NAME_HEADER,
    "PARAM_HEADER_KEY": inbound.X_MCP_HEADER_KEY,
    "HANDSHAKE_VERSIONS": version.HANDSHAKE_PROTOCOL_VERSIONS,
    "MODERN_VERSIONS": version.MODERN_PROTOCOL_VERSIONS,
    "LOG_LEVELS": get_args(types.LoggingLevel),
}
SERVER = {"name": "s", "version": "1"}
LEGACY = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": SERVER}
MODERN = {"supportedVersions": ["2026-07-28"], "capabilities": {}}


def test_codes_names_and_revisions_are_the_sdks() -> None:
    """A number that differs would turn one error into another."""
    assert {name: getattr(protocol, name) for name in CODES} == {name: getattr(types, name) for name in CODES}
    assert {name: getattr(protocol, name) for name in NAMES} == NAMES


@pytest.mark.parametrize(
    "change",
    [
        {},
        {
            "capabilities": {
                "tools": {"listChanged": True},
                "prompts": {},
                "resources": {"subscribe": True},
                "logging": {},
            }
        },
        {"capabilities": {"tools": {"listChanged": "perhaps"}}},
        {"capabilities": {"tools": True}},
        {"capabilities": {"experimental": {"x": 1}}},
        {"capabilities": {"unheard-of": 1}},
        {"capabilities": None},
        {"serverInfo": {"name": "s"}},
        {"serverInfo": {**SERVER, "title": 7}},
        {"serverInfo": {**SERVER, "title": "S", "websiteUrl": "https://s.example", "more": 1}},
        {"instructions": "Be kind."},
        {"instructions": ["Be kind."]},
        {"protocolVersion": None, "supportedVersions": None},
        {"_meta": {types.SERVER_INFO_META_KEY: SERVER}},
        {"_meta": {types.SERVER_INFO_META_KEY: "me"}},
        {"_meta": "none"},
        {"_meta": None},
    ],
)
def test_an_introduction_is_valid_for_us_where_it_is_for_the_sdk(change: Mapping[str, Any]) -> None:
    """Which servers can be used must not depend on who reads their first words."""
    for said, ours, model in (
        ({**LEGACY, **change}, initialized, types.InitializeResult),
        ({**MODERN, **change}, discovered, types.DiscoverResult),
    ):
        try:
            theirs: Any = model.model_validate(said)
        except ValidationError:
            with pytest.raises(ValidationError):
                ours(said)
            continue
        mine = ours(said)
        assert mine.instructions == theirs.instructions
        for kind in ("tools", "prompts", "resources", "logging"):
            there, here = getattr(theirs.capabilities, kind), getattr(mine.offers, kind)
            assert (here is None) == (there is None)
            assert getattr(here, "list_changed", None) == getattr(there, "list_changed", None)
        if model is types.InitializeResult:
            assert mine.info == theirs.server_info.model_dump(mode="json", by_alias=True, exclude_none=True)


@pytest.mark.parametrize(("ours", "said"), [(initialized, LEGACY), (discovered, MODERN)])
def test_a_revision_that_nobody_shares_is_an_error_in_words(ours: Any, said: Mapping[str, Any]) -> None:
    """A server of the future is told from one that is broken."""
    with pytest.raises(RuntimeError, match="2099-01-01"):
        ours({**said, "protocolVersion": "2099-01-01", "supportedVersions": ["2099-01-01"]})


def test_an_error_is_written_as_it_was_read() -> None:
    """What a server says of its error is for its client, not for us."""
    assert protocol.MCPError(-5, "full").error.wire() == {"code": -5, "message": "full"}
    assert protocol.MCPError(-5, "full", {"free": 0}).error.wire() == {
        "code": -5,
        "message": "full",
        "data": {"free": 0},
    }


def test_a_fault_in_taking_a_notification_costs_that_one_alone(caplog: pytest.LogCaptureFixture) -> None:
    """It happens where frames are read: an exception there would end the connection."""

    def broken(method: str, params: Mapping[str, Any] | None) -> bool:
        raise KeyError(method)

    with caplog.at_level(logging.ERROR):
        assert protocol.run_notify_intercept(broken, "notifications/x", None) is False
    assert "notifications/x" in caplog.text
    assert protocol.run_notify_intercept(None, "notifications/x", None) is False
    assert protocol.run_notify_intercept(lambda method, params: True, "notifications/x", None) is True
