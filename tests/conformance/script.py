"""What a client does in each scenario of the conformance judge, whichever client it is."""

import json
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import anyio

CLIENT_METADATA = "https://conformance-test.local/client-metadata.json"
"""The address that the judge takes for a client's own metadata document."""

REDIRECT = "http://127.0.0.1:{port}/callback"

Call: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[object]]

SAMPLES: dict[str, Any] = {"string": "text", "number": 5, "integer": 3, "boolean": True, "object": {}, "array": []}


def scenario() -> str:
    """The scenario that the judge plays."""
    return os.environ.get("MCP_CONFORMANCE_SCENARIO", "")


def context() -> dict[str, Any]:
    """What the judge tells the client beside the address: credentials, calls to make."""
    told = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    return told if isinstance(told, dict) else {}


def is_modern() -> bool:
    """Whether the judge plays on the stateless wire."""
    return os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "") >= "2026-07-28"


def defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A form filled in by somebody who accepts what it proposes, and says yes to the rest."""
    return {
        name: part.get("default", SAMPLES.get(str(part.get("type"))))
        for name, part in schema.get("properties", {}).items()
        if "default" in part or name in schema.get("required", ())
    }


def arguments_for(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that fit a simple schema."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    return {name: SAMPLES.get(str(properties.get(name, {}).get("type"))) for name in schema.get("required", ())}


async def play(tools: Mapping[str, Mapping[str, Any]], call: Call) -> None:
    """Make the calls of the scenario, given the input schemas of the tools that the client listed."""
    if "toolCalls" in context():
        for wanted in context()["toolCalls"]:
            await call(wanted["name"], wanted["arguments"])
        return
    if scenario() == "json-schema-2020-12-preservation":
        focal, echo = tools
        await call(echo, {"schema": tools[focal]})
        return
    if scenario() == "sse-retry":
        # The judge takes any GET for the reconnection, also the standing stream's if a quick client calls before it came.
        await anyio.sleep(1)
    for name, schema in tools.items():
        await call(name, arguments_for(schema))
