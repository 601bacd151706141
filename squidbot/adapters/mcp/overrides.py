"""Tools as the settings would have them: renamed, described anew, or with arguments that are set already."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from loguru import logger

from squidbot.config.schema import ToolOverride
from squidbot.core.domain.tools import ToolDefinition


def overridden(
    tools: Sequence[ToolDefinition], overrides: Mapping[str, ToolOverride], *, server: str
) -> list[ToolDefinition]:
    """The server's tools with the settings' overrides. One that names no tool, or a name that is taken, is left out."""
    own = {tool.tool: tool for tool in tools}
    made: dict[str, ToolDefinition] = {}
    gone: set[str] = set()
    for name, override in overrides.items():
        source = own.get(override.tool or name)
        if source is None:
            logger.bind(server=server).warning(
                "server {!r}: the settings override its tool {!r}, which it does not have",
                server,
                override.tool or name,
            )
            continue
        made[name] = _shown(source, name, override)
        kept = override.keep if override.keep is not None else bool(override.arguments)
        if name != source.tool and not kept:
            gone.add(source.tool)
    for name in sorted(made.keys() & own.keys() - gone):
        if made[name].upstream not in (None, name):
            logger.bind(server=server).warning(
                "server {!r}: the settings call another tool {!r}, which hides the server's own", server, name
            )
    return [*(tool for tool in tools if tool.tool not in gone and tool.tool not in made), *made.values()]


def _shown(tool: ToolDefinition, name: str, override: ToolOverride) -> ToolDefinition:
    return replace(
        tool,
        tool=name,
        name=name,
        upstream=None if name == tool.tool else tool.tool,
        description=override.description or tool.description,
        fixed=dict(override.arguments),
        parameters=_without(tool.parameters, override.arguments),
    )


def _without(schema: Mapping[str, Any], fixed: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of what a caller may still choose."""
    if not fixed:
        return schema
    properties = {key: part for key, part in schema.get("properties", {}).items() if key not in fixed}
    required = [key for key in schema.get("required", []) if key not in fixed]
    rest = {key: part for key, part in schema.items() if key != "required"}
    return {**rest, "properties": properties, **({"required": required} if required else {})}
