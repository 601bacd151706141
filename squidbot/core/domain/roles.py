"""Who may use what: a whitelist per role and server, deny by default, and the rule that decided each question."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias

from squidbot.core.domain.audit import GrantChange
from squidbot.core.domain.conditions import Conditions, described, possible, unmet
from squidbot.core.domain.shipped_roles import SHIPPED

GrantSource: TypeAlias = Literal["shipped", "settings"]
"""Who gave it; what the database gives is a `GrantChange`."""

_WILD = frozenset("*?[")
_MOST_KNOWN = 10_000
"""Decisions that are remembered; names that callers make up must not fill the memory."""
_GRANTED: Mapping[GrantSource, str] = {
    "shipped": "granted by the role as it ships",
    "settings": "granted in the settings",
}


@dataclass(frozen=True, slots=True)
class Grant:
    """Tools of one server (a glob) that a role may use, where the conditions on their arguments are met."""

    server: str
    tool: str
    when: Conditions = ()
    source: GrantSource = "settings"

    def __str__(self) -> str:
        rule = f"{self.server}: {self.tool}"
        return f"{rule} when {described(self.when)}" if self.when else rule

    def covers(self, tool: str) -> bool:
        return self.tool == tool or fnmatchcase(tool, self.tool)


@dataclass(frozen=True, slots=True)
class Role:
    """What a role is for, and its grants."""

    name: str
    description: str = ""
    grants: tuple[Grant, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """Yes or no, by which rule, and why."""

    allowed: bool
    role: str
    server: str
    tool: str
    rule: str | None
    reason: str


def shipped_roles() -> dict[str, Role]:
    """The nine roles, without anything that settings add."""
    return {
        name: Role(
            name,
            description,
            tuple(Grant(server, tool, source="shipped") for server, tools in servers.items() for tool in tools),
        )
        for name, (description, servers) in SHIPPED.items()
    }


@dataclass(frozen=True)
class MCPToolMapper:
    """All roles and their grants at one moment; a change makes another mapper. Without arguments: the shipped roles.

    `changes` are grants of the database: for their role, server and tool they stand above `roles`.
    """

    roles: Mapping[str, Role] = field(default_factory=shipped_roles)
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What is known of each server beside its grants, as the mapping was given it."""
    changes: tuple[GrantChange, ...] = ()

    def decide(
        self,
        role: str,
        server: str,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        fixed: Mapping[str, Any] | None = None,
    ) -> Decision:
        """Whether `role` may call this tool with these arguments; without arguments, whether with any at all.

        `fixed` are arguments that nobody can change, for the second question.
        """
        known = self._known.get((role, server, tool))
        if known is not None:
            return known
        decision = self._decided(role, server, tool, arguments, fixed=fixed)
        if not any(grant.when for grant in self._grants.get((role, server), ())):
            # Decided without a look at the arguments: so it is for all of them.
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[role, server, tool] = decision
        return decision

    def _decided(
        self,
        role: str,
        server: str,
        tool: str,
        arguments: Mapping[str, Any] | None,
        *,
        fixed: Mapping[str, Any] | None,
    ) -> Decision:
        verdict = partial(Decision, role=role, server=server, tool=tool)
        if role not in self.roles:
            return verdict(allowed=False, rule=None, reason=f"there is no role {role!r}")
        change = self._change(role, server, tool)
        if change is not None:
            reason = "granted in the database" if change.enabled else "revoked in the database"
            return verdict(allowed=change.enabled, rule=f"{change.server}: {change.tool} (database)", reason=reason)
        grants = [grant for grant in self._grants.get((role, server), ()) if grant.covers(tool)]
        complaints = []
        for grant in grants:
            complaint = _complaint(grant, arguments, fixed or {})
            if complaint is None:
                return verdict(allowed=True, rule=f"{grant} ({grant.source})", reason=_GRANTED[grant.source])
            complaints.append(complaint)
        if grants:
            return verdict(allowed=False, rule=f"{grants[0]} ({grants[0].source})", reason="; ".join(complaints))
        if not self.has_server(role, server):
            return verdict(allowed=False, rule=None, reason=f"role {role!r} has nothing of server {server!r}")
        reason = f"no grant of role {role!r} names {tool!r} of server {server!r}"
        return verdict(allowed=False, rule=None, reason=reason)

    def alternatives(self, role: str, server: str, tool: str) -> tuple[Conditions, ...]:
        """The conditions of which one must be met for a tool that the role may use; empty if there are none to meet."""
        if self._change(role, server, tool) is not None:
            return ()
        covering = [grant.when for grant in self._grants.get((role, server), ()) if grant.covers(tool)]
        return () if () in covering else tuple(covering)

    def can_use_tool(self, role: str, server: str, tool: str) -> bool:
        """Whether the role may call this tool, with some arguments at least."""
        return self.decide(role, server, tool).allowed

    def has_server(self, role: str, server: str) -> bool:
        """Whether anything of this server exists for the role: its prompts, resources and instructions too."""
        return server in self._servers_of.get(role, ())

    def get_servers_for_role(self, role: str) -> list[str]:
        """The servers of which the role may use something."""
        return list(self._servers_of.get(role, ()))

    def get_tools_for_role(self, role: str, server: str) -> list[str]:
        """What the role is granted of a server, as written: names, or globs."""
        return list(self._patterns(role, server))

    def get_all_tools_for_role(self, role: str) -> dict[str, list[str]]:
        """What the role is granted of each server, as written."""
        return {server: self.get_tools_for_role(role, server) for server in self.get_servers_for_role(role)}

    def get_server_config(self, server: str) -> dict[str, Any]:
        """What the mapping says of a server; empty if it says nothing."""
        return dict(self.servers.get(server, {}))

    def with_changes(self, changes: Iterable[GrantChange]) -> "MCPToolMapper":
        """The same with these grants of the database instead of those it had."""
        return MCPToolMapper(self.roles, self.servers, tuple(changes))

    @cached_property
    def _known(self) -> dict[tuple[str, str, str], Decision]:
        """Decisions that do not depend on arguments."""
        return {}

    @cached_property
    def revision(self) -> str:
        """A fingerprint of all grants: equal exactly if everybody may do the same."""
        rows = [
            [name, *sorted([grant.server, grant.tool, json.dumps(grant.when)] for grant in role.grants)]
            for name, role in sorted(self.roles.items())
        ]
        changes = sorted([c.role, c.server, c.tool, c.enabled] for c in self.changes)
        return hashlib.sha256(json.dumps([rows, changes]).encode("utf-8", "surrogatepass")).hexdigest()[:12]

    @cached_property
    def _grants(self) -> dict[tuple[str, str], tuple[Grant, ...]]:
        found: dict[tuple[str, str], list[Grant]] = {}
        for role in self.roles.values():
            for grant in role.grants:
                found.setdefault((role.name, grant.server), []).append(grant)
        # What is granted without conditions decides before what is granted with some.
        return {key: tuple(sorted(grants, key=lambda grant: bool(grant.when))) for key, grants in found.items()}

    @cached_property
    def _changes(self) -> dict[tuple[str, str], tuple[GrantChange, ...]]:
        found: dict[tuple[str, str], list[GrantChange]] = {}
        for change in self.changes:
            found.setdefault((change.role, change.server), []).append(change)
        # A plain name stands above a glob, and of two globs the one that revokes.
        order = {key: sorted(changes, key=lambda c: (_is_glob(c.tool), c.enabled)) for key, changes in found.items()}
        return {key: tuple(changes) for key, changes in order.items()}

    @cached_property
    def _servers_of(self) -> dict[str, tuple[str, ...]]:
        pairs = dict.fromkeys([*self._grants, *self._changes])
        return {
            name: tuple(server for role, server in pairs if role == name and self._patterns(name, server))
            for name in self.roles
        }

    def _change(self, role: str, server: str, tool: str) -> GrantChange | None:
        return next(
            (c for c in self._changes.get((role, server), ()) if c.tool == tool or fnmatchcase(tool, c.tool)), None
        )

    def _patterns(self, role: str, server: str) -> Sequence[str]:
        if role not in self.roles:
            return ()
        changes = self._changes.get((role, server), ())
        granted = [grant.tool for grant in self._grants.get((role, server), ())]
        granted += [change.tool for change in changes if change.enabled]
        revoked = [change for change in changes if not change.enabled]
        named = {change.tool for change in changes if change.enabled and not _is_glob(change.tool)}
        return list(
            dict.fromkeys(
                tool for tool in granted if tool in named or not any(fnmatchcase(tool, gone.tool) for gone in revoked)
            )
        )


def _is_glob(text: str) -> bool:
    return not _WILD.isdisjoint(text)


def _complaint(grant: Grant, arguments: Mapping[str, Any] | None, fixed: Mapping[str, Any]) -> str | None:
    if arguments is not None:
        return unmet(grant.when, arguments)
    return None if possible(grant.when, fixed) else f"its fixed arguments do not meet: {described(grant.when)}"
