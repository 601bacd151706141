"""Walks every chain from its base to its head, and finds the first row that is not as it was written."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loguru import logger
from sqlalchemy import Connection

from squidbot.adapters.store.chain import (
    GENESIS,
    INTENT_COLUMNS,
    INTENT_SEQUENCE,
    INTENTS,
    RECORD_COLUMNS,
    RECORD_SEQUENCE,
    RECORDS,
    Row,
    intent_hash,
    record_hash,
    registry_hash,
)
from squidbot.adapters.store.database import Database, fetch, scalar, transaction
from squidbot.adapters.store.failures import is_damage
from squidbot.adapters.store.head import Head, HeadFile
from squidbot.adapters.store.ledger import hash_at
from squidbot.core.domain.audit import Verification

_PAGE = 2000
_KIND = RECORD_COLUMNS.index("kind")
_ARGUMENTS = RECORD_COLUMNS.index("arguments")


class Broken(Exception):
    """The first row that is not as it was written."""

    def __init__(self, reason: str, *, chain: str | None, sequence: int | None, name: str | None = None) -> None:
        super().__init__(reason)
        self.finding = {"chain": chain, "sequence": sequence, "id": name, "reason": reason}


@dataclass(frozen=True, slots=True)
class Chain:
    """What the database says of one chain."""

    name: str
    sequence: int
    hash: str
    base_sequence: int
    base_hash: str
    first_hash: str


class Verifier:
    """One look at the whole trail, at one moment."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.rows = 0
        self.chains = 0
        self._chains: dict[str, Chain] = {}

    def verify(self, outside: Head | None) -> None:
        """Raise Broken for the first thing that is wrong; `outside` is the head that was kept in a file."""
        query = "SELECT chain, sequence, hash, base_sequence, base_hash, first_hash FROM audit_chains ORDER BY chain"
        chains = {row[0]: Chain(*row) for row in fetch(self._connection, query)}
        self._check_registry(chains)
        self._check_strangers(chains)
        for chain in chains.values():
            self._walk(chain)
            self.chains += 1
        if outside is not None:
            self._check_outside(outside, chains, "audit.head")
        self._chains = chains

    def check_set_aside(self, heads: Mapping[Path, Head | None]) -> None:
        """Raise Broken for the first head that the trail did not go on from. After `verify`."""
        for path, head in heads.items():
            if head is None:
                raise Broken(f"changed: {path.name} cannot be read", chain=None, sequence=None)
            chain = self._chains.get(head.chain)
            if chain is None or chain.first_hash != head.first_hash:
                raise Broken(
                    f"gone: the trail that {path.name} speaks of was replaced by this one; "
                    "if that was on purpose, move that file away",
                    chain=None,
                    sequence=None,
                )
            self._check_outside(head, self._chains, path.name)

    def _walk(self, chain: Chain) -> None:
        """Follow the hashes through both tables at once."""
        records = self._rows(RECORDS, RECORD_COLUMNS, chain.name)
        intents = self._rows(INTENTS, INTENT_COLUMNS, chain.name)
        record, intent = next(records, None), next(intents, None)
        expected, previous = chain.base_sequence + 1, chain.base_hash
        cuts: list[tuple[int, str]] = []
        while record is not None or intent is not None:
            if record is not None and record[RECORD_SEQUENCE] == expected:
                if intent is not None and intent[INTENT_SEQUENCE] == expected:
                    raise Broken("inserted: two rows have this sequence", **_at(chain, expected, intent))
                row, digest = record, record_hash
                if row[_KIND] == "prune":
                    cuts.append(_cut(row))
                record = next(records, None)
            elif intent is not None and intent[INTENT_SEQUENCE] == expected:
                row, digest = intent, intent_hash
                intent = next(intents, None)
            else:
                raise _misplaced(chain, expected, record, intent)
            try:
                fits = digest(previous, row) == row[-1]
            except (TypeError, ValueError):
                fits = False
            if not fits:
                raise Broken(
                    "changed: the row does not fit its hash and the row before it", **_at(chain, expected, row)
                )
            previous = row[-1]
            expected += 1
            self.rows += 1
        self._check_end(chain, expected - 1, previous)
        self._check_base(chain, cuts)

    def _check_end(self, chain: Chain, last: int, digest: str) -> None:
        if last < chain.sequence:
            raise Broken(
                f"cut off: the trail ends here, and went on to {chain.sequence}",
                chain=chain.name,
                sequence=last + 1,
            )
        if last > chain.sequence or digest != chain.hash:
            raise Broken("the head of the chain does not fit its last row", chain=chain.name, sequence=last)

    def _check_base(self, chain: Chain, cuts: list[tuple[int, str]]) -> None:
        """What is missing at the beginning must have been pruned, and the pruning be recorded."""
        if chain.base_sequence == 0:
            first = self._hash_at(chain, 1) if chain.sequence else ""
            if chain.base_hash != GENESIS or first != chain.first_hash:
                raise Broken("changed: the chain does not begin as it was registered", chain=chain.name, sequence=1)
        elif not any(place >= chain.base_sequence and self._hash_at(chain, place) == digest for place, digest in cuts):
            raise Broken(
                "removed: rows before this one are gone, and no pruning is recorded that took them",
                chain=chain.name,
                sequence=chain.base_sequence + 1,
            )

    def _check_outside(self, outside: Head, chains: dict[str, Chain], file: str) -> None:
        chain = chains.get(outside.chain)
        if chain is None or chain.first_hash != outside.first_hash:
            raise Broken(
                f"gone: {file} is of another trail than this one", chain=outside.chain, sequence=outside.sequence
            )
        if outside.sequence > chain.sequence:
            raise Broken(
                f"cut off: the trail ends here, and {file} says that it went on to {outside.sequence}",
                chain=chain.name,
                sequence=chain.sequence + 1,
            )
        if outside.sequence >= chain.base_sequence and self._hash_at(chain, outside.sequence) != outside.hash:
            raise Broken(
                f"changed: the row is not the one that {file} knows", chain=chain.name, sequence=outside.sequence
            )

    def _check_registry(self, chains: dict[str, Chain]) -> None:
        previous = GENESIS
        registered: dict[str, str] = {}
        rows = fetch(self._connection, "SELECT sequence, chain, first_hash, hash FROM audit_registry ORDER BY sequence")
        for expected, (sequence, name, first, digest) in enumerate(rows, start=1):
            if sequence != expected or digest != registry_hash(
                previous, sequence=sequence, chain=name, first_hash=first
            ):
                raise Broken("changed: the registry of chains is broken here", chain=name, sequence=None)
            registered[name] = first
            previous = digest
        known = {name: chain.first_hash for name, chain in chains.items() if chain.first_hash}
        for name in sorted(known.keys() | registered.keys()):
            if known.get(name) != registered.get(name):
                what = "removed: the chain is gone" if name not in known else "inserted: the chain was never registered"
                raise Broken(what, chain=name, sequence=None)

    def _check_strangers(self, chains: dict[str, Chain]) -> None:
        """Rows of chains that do not exist; from chain to chain, not from row to row."""
        for table in (RECORDS, INTENTS):
            query = f"SELECT MIN(chain) FROM {table}"  # noqa: S608
            name = scalar(self._connection, query)
            while name is not None:
                if name not in chains:
                    raise Broken("inserted: the row's chain was never registered", chain=str(name), sequence=None)
                name = scalar(self._connection, f"{query} WHERE chain > ?", (name,))

    def _hash_at(self, chain: Chain, sequence: int) -> str | None:
        if sequence == chain.base_sequence:
            return chain.base_hash
        return hash_at(self._connection, chain.name, sequence)

    def _rows(self, table: str, columns: tuple[str, ...], chain: str) -> Iterator[Row]:
        place = columns.index("sequence")
        query = (
            f"SELECT {', '.join(columns)} FROM {table} WHERE chain = ? AND sequence > ?"  # noqa: S608
            f" ORDER BY sequence LIMIT {_PAGE}"
        )
        after: Any = -(2**62)
        while True:
            page = fetch(self._connection, query, (chain, after))
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1][place]


def verify(database: Database, head_file: HeadFile) -> Verification:
    """Whether the trail is whole."""
    finding: dict[str, Any] | None = None
    with database.connect() as connection:
        verifier = Verifier(connection)
        try:
            # Read first: it is never ahead of what is then seen in the database.
            outside = _outside(head_file)
            with transaction(connection, database.snapshot):
                verifier.verify(outside)
                verifier.check_set_aside(head_file.set_aside())
            if outside is None and verifier.rows:
                logger.warning("there is no {}: a tail that was cut off with its head cannot be missed", head_file.path)
        except Broken as broken:
            finding = broken.finding
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            reason = f"damaged: after {verifier.rows} rows the file cannot be read on"
            finding = Broken(reason, chain=None, sequence=None).finding
    return Verification(finding is None, verifier.rows, verifier.chains, finding)


def _outside(head_file: HeadFile) -> Head | None:
    try:
        return head_file.read()
    except ValueError:
        raise Broken("changed: audit.head cannot be read", chain=None, sequence=None) from None


def _misplaced(chain: Chain, expected: int, record: Row | None, intent: Row | None) -> Broken:
    places = [(record[RECORD_SEQUENCE], record)] if record is not None else []
    places += [(intent[INTENT_SEQUENCE], intent)] if intent is not None else []
    early = [row for place, row in places if not isinstance(place, int) or place < expected]
    if early:
        return Broken("inserted: the row has a place that was given already", **_at(chain, expected, early[0]))
    return Broken("removed: no row has this sequence", chain=chain.name, sequence=expected)


def _at(chain: Chain, sequence: int, row: Row) -> dict[str, Any]:
    return {"chain": chain.name, "sequence": sequence, "name": str(row[0])}


def _cut(row: Row) -> tuple[int, str]:
    """How far a pruning went, as its record has it."""
    try:
        arguments = json.loads(row[_ARGUMENTS])
        return int(arguments["sequence"]), str(arguments["hash"])
    except (KeyError, TypeError, ValueError):
        return -1, ""
