"""An MCP server of the standard library alone, whose tools show what a toolkit could lose on the way.

`meet` answers nobody before two have called it, so that calls one after another would wait in vain.
"""

import json
import sys
from typing import Any

PICTURE = "iVBORw0KGgo="
RICH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 3, "description": "What it is about"},
        "kind": {"enum": ["bug", "task"], "default": "task"},
        "estimate": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
        "steps": {"type": "array", "items": {"$ref": "#/$defs/step"}, "maxItems": 9},
    },
    "required": ["title"],
    "additionalProperties": False,
    "$defs": {"step": {"type": "object", "properties": {"done": {"type": "boolean"}}, "required": ["done"]}},
}


def _strings(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": list(names)}


SCHEMAS: dict[str, dict[str, Any]] = {
    "meet": _strings("name"),
    "write": RICH,
    "introduce": _strings("self", "config", "agent", "run_manager"),
    "draw": {"type": "object"},
    "count": _strings("word"),
    "fail": _strings(),
    "push": _strings("branch"),
    "secret": _strings(),
}


def answer(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    match name:
        case "draw":
            image = {"type": "image", "data": PICTURE, "mimeType": "image/png"}
            return {"content": [{"type": "text", "text": "a dot"}, image]}
        case "count":
            letters = {"letters": len(arguments["word"])}
            return {"content": [{"type": "text", "text": json.dumps(letters)}], "structuredContent": letters}
        case "fail":
            return {"content": [{"type": "text", "text": "the saw is blunt\u200b"}], "isError": True}
        case _:
            return {"content": [{"type": "text", "text": f"{name} {json.dumps(arguments, sort_keys=True)}"}]}


def say(identity: object, result: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": identity, "result": result}) + "\n")
    sys.stdout.flush()


def main() -> None:
    waiting: list[tuple[object, str]] = []
    for line in sys.stdin:
        message = json.loads(line)
        identity, params = message.get("id"), message.get("params") or {}
        match message.get("method"), params.get("name"):
            case "initialize", _:
                info = {"name": "workshop", "version": "1"}
                version = params["protocolVersion"]
                say(identity, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
            case "tools/list", _:
                tools = [{"name": n, "description": f"Can {n}", "inputSchema": s} for n, s in SCHEMAS.items()]
                say(identity, {"tools": tools})
            case "tools/call", "meet":
                waiting.append((identity, params["arguments"]["name"]))
                if len(waiting) == 2:
                    for one, other in (waiting, waiting[::-1]):
                        say(one[0], {"content": [{"type": "text", "text": f"{one[1]} met {other[1]}"}]})
                    waiting.clear()
            case "tools/call", str(name):
                say(identity, answer(name, params.get("arguments") or {}))
            case _ if identity is not None:
                error = {"code": -32601, "message": "Method not found"}
                sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": identity, "error": error}) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
