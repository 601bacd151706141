"""Tokens in memory, and an issuer that vouches for whomever it is told to."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import anyio.lowlevel

from squidbot.core.domain.audit import ToolExecution
from squidbot.core.domain.members import Identified, TokenRecord
from tests.fakes.door import FakeAuditLog


@dataclass
class FakeTokens:
    """Satisfies `TokenStore`; counts how often it is asked for a token."""

    log: FakeAuditLog
    kept: dict[str, TokenRecord] = field(default_factory=dict)
    asked: int = 0

    async def add_token(self, token: TokenRecord, *, record: ToolExecution) -> None:
        await self.log.close(record)
        self.kept[token.id] = token

    async def find_token(self, name: str) -> TokenRecord | None:
        self.asked += 1
        await anyio.lowlevel.checkpoint()
        return self.kept.get(name)

    async def tokens(self) -> Sequence[TokenRecord]:
        return list(self.kept.values())

    async def revoke_token(self, name: str, *, record: ToolExecution) -> bool:
        token = self.kept.get(name)
        if token is None or token.revoked:
            return False
        await self.log.close(record)
        self.kept[name] = replace(token, revoked=True)
        return True

    async def key(self, name: str) -> bytes:
        return name.encode().ljust(32, b"\0")


@dataclass
class FakeIdentity:
    """Satisfies `Identity`."""

    known: dict[str, Identified] = field(default_factory=dict)

    async def identify(self, token: str) -> Identified | None:
        return self.known.get(token)
