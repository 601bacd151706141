"""The JSON Schema of the settings, for editors that complete and check; the shipped file is written by running this."""

import json
from pathlib import Path
from typing import Any

from squidbot.config.definitions import BUILTIN_NAMES
from squidbot.config.schema import Settings

SCHEMA_FILE = Path(__file__).with_name("squidbot.schema.json")


def settings_schema() -> dict[str, Any]:
    """The schema that every settings file fits, as far as a schema can tell."""
    schema = Settings.model_json_schema(by_alias=True)
    entry = schema["$defs"]["MCPServerConfig"]["properties"]
    # The name is the key that an entry stands under; `envFile` is how another editor's files spell it.
    del entry["name"]
    del entry["transport"]["default"]
    entry["envFile"] = {**entry["env_file"], "title": "Env File, as other tools spell it"}
    servers = schema["$defs"]["ToolsSettings"]["properties"]["mcp_servers"]
    servers["description"] = f"The servers by name. Built in, to be named with {{}}: {', '.join(BUILTIN_NAMES)}."
    _close(schema)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "squidbot settings",
    }


def _close(node: Any) -> None:
    """Where keys have a pattern, others are wrong: pydantic refuses them, and its schema forgets to say so."""
    match node:
        case dict():
            if "patternProperties" in node:
                node["additionalProperties"] = False
            for part in node.values():
                _close(part)
        case list():
            for part in node:
                _close(part)


def schema_text() -> str:
    """The schema as the shipped file has it."""
    return json.dumps(settings_schema(), indent=2, sort_keys=False) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
