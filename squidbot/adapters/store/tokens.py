"""Members, their tokens, and the keys that gateways share: small tables beside the trail."""

import secrets
from typing import Any

from sqlalchemy import Connection

from squidbot.adapters.store.chain import clean
from squidbot.adapters.store.database import Database, fetch, run, scalar
from squidbot.core.domain.members import TokenRecord

_SELECT = (
    "SELECT t.id, t.member_id, m.name, t.digest, t.role, t.gateway_right, t.created, t.expires, t.revoked"
    " FROM tokens t JOIN squad_members m ON m.id = t.member_id"
)
_KEY_BYTES = 32


def add_token(connection: Connection, token: TokenRecord) -> None:
    """Keep a token, and its member if they are new."""
    run(
        connection,
        "INSERT INTO squad_members (id, name) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (clean(token.member), clean(token.name)),
    )
    run(
        connection,
        "INSERT INTO tokens (id, member_id, digest, role, gateway_right, created, expires, revoked)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            token.id,
            clean(token.member),
            token.digest,
            None if token.role is None else clean(token.role),
            token.right,
            token.created,
            token.expires,
            token.revoked,
        ),
    )


def find_token(database: Database, name: str) -> TokenRecord | None:
    """The token with this id."""
    with database.connect() as connection:
        rows = fetch(connection, f"{_SELECT} WHERE t.id = ?", (clean(name),))
    return _token(*rows[0]) if rows else None


def load_tokens(database: Database) -> list[TokenRecord]:
    """All tokens, the newest last."""
    with database.connect() as connection:
        rows = fetch(connection, f"{_SELECT} ORDER BY t.created, t.id")
    return [_token(*row) for row in rows]


def revoke_token(connection: Connection, name: str) -> bool:
    """Whether there was such a token, and it was not revoked before."""
    return (
        run(connection, "UPDATE tokens SET revoked = ? WHERE id = ? AND revoked = ?", (True, clean(name), False)) == 1
    )


def find_key(database: Database, name: str) -> bytes | None:
    """The key with this name."""
    with database.connect() as connection:
        found = scalar(connection, "SELECT value FROM gateway_keys WHERE name = ?", (clean(name),))
    return None if found is None else bytes.fromhex(found)


def make_key(connection: Connection, name: str) -> bytes:
    """A new key, or the one that somebody else made a moment before."""
    run(
        connection,
        "INSERT INTO gateway_keys (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (clean(name), secrets.token_hex(_KEY_BYTES)),
    )
    return bytes.fromhex(scalar(connection, "SELECT value FROM gateway_keys WHERE name = ?", (clean(name),)))


def _token(*row: Any) -> TokenRecord:
    name, member, member_name, digest, role, right, created, expires, revoked = row
    return TokenRecord(name, member, member_name, digest, role, right, created, expires, bool(revoked))
