"""The shapes of the API's questions and answers, as JSON Schema; those of answers are the command line's `--json`."""

from typing import Any, TypeAlias

from squidbot.core.domain.audit import OUTCOMES, RECORD_KINDS

Schema: TypeAlias = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
ANYTHING: Schema = {}


def name(longest: int = 256) -> Schema:
    """A word that somebody gives."""
    return {"type": "string", "minLength": 1, "maxLength": longest}


def nullable(schema: Schema) -> Schema:
    """The same, or null."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return {**schema, "type": [*kinds, "null"]}


def choice(options: tuple[str, ...]) -> Schema:
    """One of these words."""
    return {"type": "string", "enum": list(options)}


def number(least: int, most: int, *, default: int) -> Schema:
    """A whole number within bounds."""
    return {"type": "integer", "minimum": least, "maximum": most, "default": default}


def each(schema: Schema) -> Schema:
    """A list of such."""
    return {"type": "array", "items": schema}


def whole(properties: dict[str, Schema], *, optional: tuple[str, ...] = ()) -> Schema:
    """An object with these keys and no other."""
    return {
        "type": "object",
        "properties": properties,
        "required": [key for key in properties if key not in optional],
        "additionalProperties": False,
    }


def by_name(schema: Schema) -> Schema:
    """An object with keys of somebody's choice."""
    return {"type": "object", "additionalProperties": schema}


def ref(kind: str) -> Schema:
    """A shape by its name in the document."""
    return {"$ref": f"#/components/schemas/{kind}"}


_STATES = ("disabled", "idle", "connecting", "ready", "degraded", "failed")
_SERVER = {
    "name": TEXT,
    "transport": TEXT,
    "state": choice(_STATES),
    "tools": nullable(COUNT),
    "protocol": nullable(TEXT),
    "error": nullable(TEXT),
}
_TOOL = {"name": TEXT, "server": TEXT, "tool": TEXT, "description": TEXT, "parameters": OBJECT}
_MAY = whole({"role": TEXT, "rule": nullable(TEXT), "when": TEXT})
_GRANT = {"role": TEXT, "server": TEXT, "tool": TEXT, "enabled": FLAG}
_ROLE = {
    "role": TEXT,
    "description": TEXT,
    "tools": by_name(each(TEXT)),
    "grants": each(whole({"server": TEXT, "tool": TEXT, "when": by_name(each(TEXT)), "source": TEXT})),
    "revision": TEXT,
}
_TOKEN = {
    "id": TEXT,
    "role": TEXT,
    "name": TEXT,
    "member": TEXT,
    "created": TEXT,
    "expires": nullable(TEXT),
    "revoked": FLAG,
}
_LATENCY = {"p50": nullable(NUMBER), "p90": nullable(NUMBER), "p95": nullable(NUMBER), "p99": nullable(NUMBER)}

SHAPES: dict[str, Schema] = {
    "Error": whole({"error": whole({"code": TEXT, "message": TEXT, "hint": nullable(TEXT)})}),
    "Status": whole(
        {
            "version": TEXT,
            "started": TEXT,
            "ready": FLAG,
            "servers": by_name(COUNT),
            "tools": COUNT,
            "roles": COUNT,
            "revision": TEXT,
            "under_way": COUNT,
            "listeners": COUNT,
        }
    ),
    "Settings": whole({"file": nullable(TEXT), "since": nullable(TEXT), "ok": FLAG, "problems": each(TEXT)}),
    "Server": whole(_SERVER),
    "ServerDetails": whole(
        {
            **_SERVER,
            "hint": nullable(TEXT),
            "since": NUMBER,
            "info": OBJECT,
            "counters": by_name({"type": "integer"}),
            "stderr": each(TEXT),
        }
    ),
    "Tool": whole(_TOOL),
    "ToolDetails": whole(
        {
            **_TOOL,
            "title": nullable(TEXT),
            "output_schema": nullable(OBJECT),
            "annotations": OBJECT,
            "tokens": COUNT,
            "read_only": FLAG,
            "roles": each(_MAY),
        },
        optional=("tokens", "read_only", "roles"),
    ),
    "ToolResult": whole(
        {
            "name": TEXT,
            "server": TEXT,
            "tool": TEXT,
            "is_error": FLAG,
            "content": each(OBJECT),
            "structured": ANYTHING,
            "duration_ms": NUMBER,
            "record": nullable(TEXT),
        }
    ),
    "Role": whole(_ROLE),
    "RoleDetails": whole(
        {**_ROLE, "callable": each(whole({"name": TEXT, "server": TEXT, "tool": TEXT})), "tokens": COUNT}
    ),
    "Decision": whole(
        {"allowed": FLAG, "role": TEXT, "server": TEXT, "tool": TEXT, "rule": nullable(TEXT), "reason": TEXT}
    ),
    "Grant": whole(_GRANT),
    "GrantChange": whole({**_GRANT, "revision": TEXT, "record": TEXT}),
    "Record": whole(
        {
            "id": TEXT,
            "timestamp": TEXT,
            "squad_member_id": nullable(TEXT),
            "role": TEXT,
            "server": TEXT,
            "tool": TEXT,
            "arguments": ANYTHING,
            "result": ANYTHING,
            "success": FLAG,
            "error_message": nullable(TEXT),
            "sequence": COUNT,
            "origin": TEXT,
            "outcome": choice(OUTCOMES),
            "duration": NUMBER,
            "revision": TEXT,
            "kind": choice(RECORD_KINDS),
        }
    ),
    "Records": whole({"records": each(ref("Record")), "next": nullable(TEXT)}),
    "Usage": whole(
        {
            "role": TEXT,
            "server": TEXT,
            "tool": TEXT,
            "calls": COUNT,
            "errors": COUNT,
            "refused": COUNT,
            "mean_seconds": NUMBER,
            "worst_seconds": NUMBER,
        }
    ),
    "Series": whole(
        {
            "seconds": COUNT,
            "buckets": each(whole({"begin": NUMBER, "calls": COUNT, "errors": COUNT, "refused": COUNT, **_LATENCY})),
        }
    ),
    "Verification": whole({"ok": FLAG, "records": COUNT, "chains": COUNT, "first_bad": nullable(OBJECT)}),
    "Alert": whole(
        {
            "id": TEXT,
            "timestamp": TEXT,
            "rule": TEXT,
            "message": TEXT,
            "details": OBJECT,
            **{key: nullable(TEXT) for key in ("role", "server", "tool")},
        }
    ),
    "Token": whole(_TOKEN),
    "NewToken": whole({"id": TEXT, "token": TEXT, "role": TEXT, "name": TEXT, "expires": nullable(TEXT)}),
}
