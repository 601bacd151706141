"""An MCP server of the handshake era with as many tools as wanted; each says its text again.

python -I -S many_tools.py COUNT
"""

import json
import sys

_WORDS = ("ticket", "branch", "invoice", "customer", "report", "release", "pipeline", "payment", "shipment", "contract")
_DEEDS = ("create", "get", "update", "list", "search", "close", "assign", "archive", "export", "compare")


def tool(number: int) -> dict[str, object]:
    """A tool as servers have them: a few words, two arguments."""
    word, deed = _WORDS[number % 10], _DEEDS[number // 10 % 10]
    return {
        "name": f"{deed}_{word}_{number}",
        "description": f"{deed.capitalize()} a {word} of department {number}, and say what became of it.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": f"What to say of the {word}"},
                "limit": {"type": "integer", "description": "How many at the most", "default": 10},
            },
            "required": ["text"],
        },
    }


def main() -> None:
    tools = [tool(number) for number in range(int(sys.argv[1]))]
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        params = message.get("params") or {}
        answer: dict[str, object] = {"jsonrpc": "2.0", "id": message["id"]}
        match message["method"]:
            case "initialize":
                answer["result"] = {
                    "protocolVersion": params.get("protocolVersion", "2025-06-18"),
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "many", "version": "1.0"},
                }
            case "tools/list":
                answer["result"] = {"tools": tools}
            case "tools/call":
                answer["result"] = {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
            case "ping":
                answer["result"] = {}
            case _:
                answer["error"] = {"code": -32601, "message": "Method not found"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
