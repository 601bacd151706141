"""A server whose tools are named on its command line; each call adds a line to a file."""

import json
import sys
from pathlib import Path


def main() -> None:
    """Speak the handshake era over stdio, by hand: it starts at once."""
    notes, names = Path(sys.argv[1]), sys.argv[2:]
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    result: dict[str, object]
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        match message["method"]:
            case "initialize":
                info = {"name": "counting", "version": "1"}
                result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                result = {"tools": tools}
            case "tools/call":
                with notes.open("a") as file:
                    file.write(json.dumps(message["params"]["name"]) + "\n")
                result = {"content": [{"type": "text", "text": "done"}]}
            case "ping":
                result = {}
            case _:
                error = {"code": -32601, "message": "no such method"}
                print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
                continue
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
