"""A client's session of the handshake era: all that must be known of it is in the id that the client shows."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from squidbot.core.domain.members import Principal
from squidbot.gateway.mcp.seal import Seal
from squidbot.gateway.mcp.wire import encoded

_PURPOSE = "mcp-session"
_MOST_CAPABILITIES = 1_024
"""Bytes of a client's capabilities that fit into its session's id; of more, only what each is called."""
_KNOWN = ("roots", "sampling", "elicitation")
_LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class Session:
    """Who opened it, on which part of the door, in which revision, and what that client can do."""

    id: str
    """Random: names the session among ourselves, and is no secret there."""
    member: str
    role: str
    token: str
    server: str | None
    version: str
    capabilities: Mapping[str, Any]
    client: str
    gateway: str
    expires: float

    def belongs_to(self, principal: Principal, server: str | None) -> bool:
        """Whether this principal may use it, on this part of the door."""
        mine = (principal.member, principal.role, principal.token, server)
        return mine == (self.member, self.role, self.token, self.server)

    def sealed(self, seal: Seal) -> str:
        """What the client shows with each request."""
        content = {
            "n": self.id,
            "m": self.member,
            "r": self.role,
            "t": self.token,
            "s": self.server,
            "v": self.version,
            "c": self.capabilities,
            "i": self.client,
            "g": self.gateway,
            "x": self.expires,
        }
        return seal.close(_PURPOSE, content)


def new_session(
    principal: Principal,
    server: str | None,
    *,
    version: str,
    params: Mapping[str, Any],
    gateway: str,
    expires: float,
) -> Session:
    """The session that an `initialize` with these params begins."""
    info = params.get("clientInfo")
    named = info if isinstance(info, Mapping) else {}
    words = (str(named.get(key, ""))[:_LONGEST_NAME] for key in ("name", "version"))
    return Session(
        id=secrets.token_urlsafe(12),
        member=principal.member,
        role=principal.role or "",
        token=principal.token,
        server=server,
        version=version,
        capabilities=_bounded(params.get("capabilities")),
        client=" ".join(words).strip(),
        gateway=gateway,
        expires=expires,
    )


def unsealed(text: str, seal: Seal, *, now: float) -> Session | None:
    """The session of an id, unless it is none of ours or too old."""
    content = seal.open(_PURPOSE, text)
    if content is None or content["x"] <= now:
        return None
    return Session(
        id=content["n"],
        member=content["m"],
        role=content["r"],
        token=content["t"],
        server=content["s"],
        version=content["v"],
        capabilities=content["c"],
        client=content["i"],
        gateway=content["g"],
        expires=content["x"],
    )


def _bounded(capabilities: Any) -> dict[str, Any]:
    if not isinstance(capabilities, dict):
        return {}
    if len(encoded(capabilities)) <= _MOST_CAPABILITIES:
        return capabilities
    return {name: {} for name in _KNOWN if capabilities.get(name) is not None}
