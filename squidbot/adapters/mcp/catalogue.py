"""What one server offers: fetched raw, kept raw, and converted in one place."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from loguru import logger

from squidbot.adapters.mcp.channel import Bounds
from squidbot.adapters.mcp.dispatcher import HeaderMap
from squidbot.adapters.mcp.listing import LeftOut, prompts_of, resources_of, tools_of
from squidbot.adapters.mcp.overrides import overridden
from squidbot.adapters.mcp.own_secrets import without_own_secrets
from squidbot.adapters.mcp.protocol import METHOD_NOT_FOUND, PARAM_HEADER_KEY, MCPError
from squidbot.adapters.mcp.remembered import Remembered
from squidbot.adapters.mcp.session import Session
from squidbot.config.schema import MCPServerConfig
from squidbot.core.domain.prompts import PromptDefinition, ResourceDefinition
from squidbot.core.domain.tools import ToolDefinition

Kind: TypeAlias = Literal["tools", "prompts", "resources"]
KINDS: tuple[Kind, ...] = ("tools", "prompts", "resources")

_BESIDE = 1 / 6
"""The part of the time to start that each list but that of the tools may take, with all its pages: a server that
hangs there, or has pages without end, is still good for its tools."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Everything usable that a server has listed."""

    tools: Mapping[str, ToolDefinition] = field(default_factory=dict)
    prompts: tuple[PromptDefinition, ...] = ()
    resources: tuple[ResourceDefinition, ...] = ()
    headers: Mapping[str, HeaderMap] = field(default_factory=dict)
    """For tools that ask for it, the arguments that travel as headers too."""

    @classmethod
    def of(cls, known: Remembered, config: MCPServerConfig) -> "Catalogue":
        """What is usable of the raw lists, by the server's settings."""
        listed = _with_valid_headers(known.tools, config.name) if known.era == "modern" else known.tools
        tools = tools_of(listed, server=config.name, allow=config.allow, deny=config.deny) if config.load_tools else []
        tools = overridden(tools, config.overrides, server=config.name)
        maps = _header_maps(tools) if known.era == "modern" else {}
        return cls(
            tools={tool.tool: tool for tool in tools},
            prompts=tuple(prompts_of(known.prompts, server=config.name)) if config.load_prompts else (),
            resources=(
                *resources_of(known.resources, server=config.name),
                *resources_of(known.templates, server=config.name, templates=True),
            ),
            headers={tool: found for tool, found in maps.items() if found},
        )


async def fetch(
    session: Session,
    config: MCPServerConfig,
    *,
    bounds: Bounds,
    timeout: float,
    kinds: Iterable[Kind] = KINDS,
    before: Remembered | None = None,
) -> Remembered:
    """Ask the server for the lists of `kinds`; the others stay as they were `before`. Raises MCPError."""
    known = replace(
        before or Remembered(era=session.era, protocol=session.protocol),
        era=session.era,
        protocol=session.protocol,
        instructions=session.said.instructions,
        info=session.said.info,
    )
    offers = session.offers
    asked: dict[str, tuple[str, str]] = {}
    wanted = set(kinds)
    if "tools" in wanted and config.load_tools and offers.tools is not None:
        asked["tools"] = ("tools/list", "tools")
    if "prompts" in wanted and config.load_prompts and offers.prompts is not None:
        asked["prompts"] = ("prompts/list", "prompts")
    if "resources" in wanted and offers.resources is not None:
        asked["resources"] = ("resources/list", "resources")
        asked["templates"] = ("resources/templates/list", "resourceTemplates")
    found: dict[str, Any] = {}
    for name, (method, key) in asked.items():
        try:
            within = math.inf if name == "tools" else _BESIDE * config.startup_timeout
            found[name] = await session.pages(
                method, key, bounds=bounds, timeout=timeout, within=within, server=config.name
            )
        except MCPError as error:
            # A server that is gone has not said that it has none; one that fails keeps what it listed before.
            if name == "tools" or session.wire.ended.is_set():
                raise
            if error.code != METHOD_NOT_FOUND:
                logger.bind(server=config.name).warning(
                    "server {!r}: {} failed: {}", config.name, method, error.error.message
                )
    return without_own_secrets(replace(known, **found), config.secrets)


def _header_maps(tools: Iterable[ToolDefinition]) -> dict[str, HeaderMap]:
    """Which arguments of which tools travel as headers too."""
    asking = [tool for tool in tools if _names_headers(tool.parameters)]
    if not asking:
        return {}
    from mcp.shared.inbound import x_mcp_header_map

    return {tool.tool: x_mcp_header_map(tool.parameters) for tool in asking}


def _with_valid_headers(items: Iterable[Any], server: str) -> list[Any]:
    """The stateless era has clients drop tools whose header annotations are not valid."""
    kept = []
    left_out = LeftOut(server, "tool")
    for item in items:
        reason = _invalid_header(item.get("inputSchema")) if isinstance(item, Mapping) else None
        if reason is None:
            kept.append(item)
        else:
            left_out.add(item, f"invalid {PARAM_HEADER_KEY} ({reason})")
    left_out.sum_up()
    return kept


def _invalid_header(schema: Any) -> str | None:
    if not _names_headers(schema):
        return None
    from mcp.shared.inbound import find_invalid_x_mcp_header

    return find_invalid_x_mcp_header(schema)


def _names_headers(schema: Any) -> bool:
    """Whether any may be in it: they are rare, and what reads them takes long to load."""
    return PARAM_HEADER_KEY in str(schema)
