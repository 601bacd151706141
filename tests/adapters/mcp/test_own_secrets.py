"""What a server lists is read by everybody; the secrets that it was given are not."""

import base64
import json

import pytest

from squidbot.adapters.mcp.own_secrets import without_own_secrets
from squidbot.adapters.mcp.remembered import Remembered

SECRET = "s3cr3t-of-this-server"
ENCODED = base64.b64encode(f"user:{SECRET}".encode()).decode()


@pytest.mark.requirement("E-05")
def test_a_server_that_tells_its_secret_in_its_lists_is_not_repeated() -> None:
    """A default in a schema is seen by every client, a description by every model, and a file keeps both."""
    tool = {
        "name": "tell",
        "description": f"Uses {SECRET}, or {ENCODED}",
        "inputSchema": {"type": "object", "properties": {SECRET: {"default": SECRET, "maximum": 7}}},
    }
    known = Remembered(
        era="legacy",
        protocol="2025-11-25",
        instructions=f"Log in with {SECRET}",
        info={"name": "leak", "title": SECRET},
        tools=[tool, {"name": "other"}],
        resources=[{"uri": f"postgres://app:{SECRET}@db/shop"}],
    )
    told = without_own_secrets(known, [SECRET])
    said = json.dumps([told.instructions, told.info, told.tools, told.resources])
    assert SECRET not in said
    assert ENCODED not in said
    assert told.tools[0]["inputSchema"]["properties"]["[hidden]"] == {"default": "[hidden]", "maximum": 7}
    assert told.tools[1] == {"name": "other"}
    assert told.resources == [{"uri": "postgres://app:[hidden]@db/shop"}]


def test_what_has_no_secret_stays_the_same_object() -> None:
    """Ten thousand tools are looked through once, not made anew."""
    known = Remembered(era="legacy", protocol="2025-11-25", tools=[{"name": "tell"}])
    assert without_own_secrets(known, [SECRET]).tools is known.tools
    assert without_own_secrets(known, []) is known
