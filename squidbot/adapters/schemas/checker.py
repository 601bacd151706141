"""Holds values against the JSON Schemas of strangers, who can neither stop us with them nor slow us down.

Plain schemas are checked here and at once. All others are checked in a process that is killed when it takes too long;
a schema that does so three times constrains nothing any more, so that its tool loses the check and not its service.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
import anyio.to_thread

from squidbot.adapters.schemas.fitting import Fits, quick_fit
from squidbot.adapters.schemas.plain import MOST_WORK, is_light, width
from squidbot.adapters.schemas.process import TooLarge, TooSlow, WorkerLost, packed
from squidbot.adapters.schemas.validation import all_problems, compile_schema
from squidbot.adapters.schemas.workers import NoWorker, Workers
from squidbot.core.domain.errors import Problem
from squidbot.core.domain.recent import Recent
from squidbot.core.domain.text import visible

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

BUDGET = 0.25
"""Seconds for one check, from when a worker is ready to make it."""

_PATIENCE = 10.0
"""Seconds after which a check is given up, however many others were before it."""
_STRIKES = 3
_KEPT = 512
_SHOWN = 80
_LARGEST_SCHEMA = 4 * 1024 * 1024
_LARGEST_VALUE = 32 * 1024 * 1024

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Standing:
    """What schemas of one content have done so far, whichever objects they are."""

    alone: anyio.Lock = field(default_factory=anyio.Lock)
    """Held during a check: a schema that freezes workers freezes one at a time, and others have the rest."""
    strikes: int = 0


@dataclass(slots=True)
class _Plan:
    """How one schema is checked."""

    schema: Mapping[str, Any]
    """Kept, so that no other can come to have its id."""
    width: int | None
    fits: Fits | None = None
    """Says yes where that is quickly told."""
    validator: "Validator | None" = None
    digest: bytes | None = None


class JSONSchemaCheck:
    """The check of arguments and of structured results. Whoever makes one closes it."""

    def __init__(self) -> None:
        self._plans: Recent[int, _Plan] = Recent(_KEPT)
        self._standings: Recent[bytes, _Standing] = Recent(_KEPT)
        self._workers = Workers()
        self._said: set[str] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the processes that check. A check after that starts one anew."""
        with anyio.CancelScope(shield=True):
            await self._workers.aclose()

    async def problems(self, schema: Mapping[str, Any], value: Any) -> Sequence[Problem]:
        """All that does not fit, each with its path; of very many the first hundred. Raises nothing but cancellation."""
        plan = self._plans.get(id(schema)) or self._plans.put(id(schema), _plan_of(schema))
        value = dict(value) if isinstance(value, Mapping) and not isinstance(value, dict) else value
        if plan.fits is not None and plan.fits(value):
            return ()
        if plan.width is not None and is_light(value, MOST_WORK // plan.width):
            return await self._check_here(plan, value)
        with anyio.move_on_after(_PATIENCE):
            return await self._check_apart(plan, value)
        self._say_once(f"it was not its turn within {_PATIENCE:g} s")
        return ()

    async def _check_here(self, plan: _Plan, value: Any) -> Sequence[Problem]:
        if plan.validator is None:
            compiled = partial(compile_schema, plan.schema, well_formed=True)
            try:
                # In a thread, since the first one waits for the library to be imported.
                plan.validator = await anyio.to_thread.run_sync(compiled)
            except RuntimeError:  # there is no thread to be had
                plan.validator = compiled()
        return all_problems(plan.validator, value) if plan.validator is not None else ()

    async def _check_apart(self, plan: _Plan, value: Any) -> Sequence[Problem]:
        try:
            plan.digest = plan.digest or hashlib.sha256(packed(dict(plan.schema), _LARGEST_SCHEMA)).digest()
        except TooLarge as error:
            self._say_once(f"the schema {error}")
            return ()
        standing = self._standings.get(plan.digest) or self._standings.put(plan.digest, _Standing())
        async with standing.alone:
            if standing.strikes >= _STRIKES:
                return ()
            try:
                try:
                    return await self._ask(plan.digest, plan.schema, value)
                except WorkerLost:
                    # Somebody else may have killed it. If it was the schema, it will do so again.
                    return await self._ask(plan.digest, plan.schema, value)
            except (TooSlow, WorkerLost):
                self._strike(standing, plan.schema)
            except NoWorker as error:
                self._say_once(f"the process that would do it {error}")
        return ()

    async def _ask(self, digest: bytes, schema: Mapping[str, Any], value: Any) -> Sequence[Problem]:
        async with self._workers.lend() as worker:
            try:
                # Only now: many may have been waiting, each with a large value.
                content = packed(value, _LARGEST_VALUE)
            except TooLarge as error:
                self._say_once(f"the value {error}")
                return ()
            return await worker.check(digest, schema, content, budget=BUDGET)

    def _strike(self, standing: _Standing, schema: Mapping[str, Any]) -> None:
        standing.strikes += 1
        _log.log(
            logging.WARNING if standing.strikes == _STRIKES else logging.DEBUG,
            "a check against %s took more than %g ms, or more memory than there is, for the %s time%s",
            _name(schema),
            BUDGET * 1000,
            ("first", "second", "third")[standing.strikes - 1],
            "; it constrains nothing from now on" if standing.strikes == _STRIKES else "",
        )

    def _say_once(self, reason: str) -> None:
        """Say that a value goes unchecked: the call is not lost by that, and the next is likely to do the same."""
        level = logging.DEBUG if reason in self._said else logging.WARNING
        self._said.add(reason)
        _log.log(level, "a value was not held against its schema: %s", reason)


def _plan_of(schema: Mapping[str, Any]) -> _Plan:
    wide = width(schema)
    return _Plan(schema, wide, None if wide is None else quick_fit(schema))


def _name(schema: Mapping[str, Any]) -> str:
    """What a person may recognise a schema by: nobody told us whose it is."""
    properties = schema.get("properties")
    if isinstance(title := schema.get("title"), str):
        known = f"the schema titled {title[:_SHOWN]!r}"
    elif isinstance(properties, dict):
        known = f"the schema with the properties {', '.join(map(str, properties))[:_SHOWN]!r}"
    else:
        known = f"a schema with {', '.join(map(str, schema))[:_SHOWN]!r}"
    return visible(known, newlines=False)
