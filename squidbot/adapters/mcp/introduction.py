"""How a server introduces itself, whichever way it was asked: its revision, what it offers, and what it is called."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from squidbot.adapters.mcp.protocol import HANDSHAKE_VERSIONS, MODERN_VERSIONS, SERVER_INFO_KEY

_Object: TypeAlias = dict[str, Any]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Lists(_Part):
    """A kind of thing that the server lists."""

    list_changed: bool | None = Field(None, alias="listChanged")
    subscribe: bool | None = None


class Offers(_Part):
    """What the server says that it can do."""

    tools: Lists | None = None
    prompts: Lists | None = None
    resources: Lists | None = None
    logging: _Object | None = None
    completions: _Object | None = None
    experimental: dict[str, _Object] | None = None
    extensions: dict[str, _Object] | None = None


class _Info(_Part):
    name: str
    version: str
    title: str | None = None
    description: str | None = None
    website_url: str | None = Field(None, alias="websiteUrl")
    icons: list[_Object] | None = None


class Introduction(_Part):
    """The answer to the opening, as far as anybody needs it."""

    protocol: str
    offers: Offers
    info: _Object
    instructions: str | None = None


class _Initialized(_Part):
    protocol: str = Field(alias="protocolVersion")
    offers: Offers = Field(alias="capabilities")
    info: _Info = Field(alias="serverInfo")
    instructions: str | None = None
    meta: _Object | None = Field(None, alias="_meta")


class _Discovered(_Part):
    versions: list[str] = Field(alias="supportedVersions")
    offers: Offers = Field(alias="capabilities")
    instructions: str | None = None
    meta: _Object | None = Field(None, alias="_meta")


def initialized(raw: Mapping[str, Any]) -> Introduction:
    """From the result of `initialize`. Raises ValidationError, or RuntimeError where no revision is shared."""
    said = _Initialized.model_validate(raw)
    if said.protocol not in HANDSHAKE_VERSIONS:
        raise RuntimeError(f"Unsupported protocol version from the server: {said.protocol}")
    return Introduction(
        protocol=said.protocol, offers=said.offers, info=_dumped(said.info), instructions=said.instructions
    )


def discovered(raw: Mapping[str, Any]) -> Introduction:
    """From the result of `server/discover`. Raises ValidationError, or RuntimeError where no revision is shared."""
    said = _Discovered.model_validate(raw)
    shared = [version for version in MODERN_VERSIONS if version in said.versions]
    if not shared:
        raise RuntimeError(f"the server has only {', '.join(said.versions)}")
    return Introduction(protocol=shared[-1], offers=said.offers, info=_named(raw), instructions=said.instructions)


def _named(raw: Mapping[str, Any]) -> _Object:
    """What a discovered server calls itself: for show, so that an invalid name is none."""
    meta = raw.get("_meta")
    try:
        return _dumped(_Info.model_validate(meta.get(SERVER_INFO_KEY))) if isinstance(meta, Mapping) else {}
    except ValidationError:
        return {}


def _dumped(info: _Info) -> _Object:
    return info.model_dump(mode="json", by_alias=True, exclude_none=True)
