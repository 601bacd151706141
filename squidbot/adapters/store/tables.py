"""Grants, alerts and first uses: small tables beside the trail."""

import json
from typing import Any

from sqlalchemy import Connection

from squidbot.adapters.store.chain import clean
from squidbot.adapters.store.database import Database, fetch, run
from squidbot.adapters.store.recovery import now
from squidbot.core.domain.alerts import Alert
from squidbot.core.domain.audit import GrantChange, Grants


def load_grants(database: Database) -> Grants:
    """All grants, as of one moment."""
    with database.connect() as connection:
        return _grants(connection)


def change_grant(connection: Connection, *, role: str, server: str, tool: str, enabled: bool) -> Grants:
    """Make or withdraw a grant; all grants afterwards."""
    run(connection, "UPDATE grants_version SET version = version + 1 WHERE id = 1")
    run(
        connection,
        "INSERT INTO agent_mcp_tools (role, mcp_server, tool_name, enabled) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (role, mcp_server, tool_name) DO UPDATE SET enabled = excluded.enabled",
        (clean(role), clean(server), clean(tool), enabled),
    )
    return _grants(connection)


def _grants(connection: Connection) -> Grants:
    # One statement sees one moment: the version and the grants belong together.
    rows = fetch(
        connection,
        "SELECT v.version, t.role, t.mcp_server, t.tool_name, t.enabled FROM grants_version v"
        " LEFT JOIN agent_mcp_tools t ON 1 = 1 ORDER BY t.role, t.mcp_server, t.tool_name",
    )
    changes = tuple(GrantChange(row[1], row[2], row[3], bool(row[4])) for row in rows if row[1] is not None)
    return Grants(changes, rows[0][0] if rows else 0)


def alert_row(alert: Alert) -> tuple[str | None, ...]:
    """The columns of an alert. Raises TypeError or ValueError for details that are no JSON."""
    details = json.dumps(dict(alert.details), default=str)
    texts = (alert.id, alert.timestamp, alert.rule, alert.role, alert.server, alert.tool, alert.message, details)
    return tuple(None if text is None else clean(text) for text in texts)


def add_alert(connection: Connection, row: tuple[str | None, ...]) -> None:
    """Keep an alert, once."""
    run(
        connection,
        "INSERT INTO alerts (id, timestamp, rule, role, server, tool, message, details)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        row,
    )


def load_alerts(database: Database, newest: int | None) -> list[Alert]:
    """Alerts, oldest first."""
    query = (
        "SELECT id, timestamp, rule, role, server, tool, message, details FROM alerts ORDER BY timestamp DESC, id DESC"
    )
    with database.connect() as connection:
        limit, parameters = ("", ()) if newest is None else (" LIMIT ?", (newest,))
        rows = fetch(connection, query + limit, parameters)
    return [_alert(*row) for row in reversed(rows)]


def _alert(*row: Any) -> Alert:
    name, timestamp, rule, role, server, tool, message, details = row
    return Alert(name, timestamp, rule, role, server, tool, message, json.loads(details))


def load_first_uses(database: Database) -> set[tuple[str, str, str]]:
    """Every role, server and tool that have met."""
    with database.connect() as connection:
        rows = fetch(connection, "SELECT role, server, tool FROM first_uses")
    return {(row[0], row[1], row[2]) for row in rows}


def add_first_use(connection: Connection, role: str, server: str, tool: str) -> bool:
    """Remember that a role used a tool; whether that is new."""
    added = run(
        connection,
        "INSERT INTO first_uses (role, server, tool, timestamp) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (clean(role), clean(server), clean(tool), now()),
    )
    return added == 1
