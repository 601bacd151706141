"""A server that says every secret it was given, everywhere it can: in answers, errors, descriptions, logs and last words."""

import base64
import json
import os
import sys
from urllib.parse import quote


def main() -> None:
    """Speak the handshake era over stdio, by hand."""
    secrets = [value for name, value in sorted(os.environ.items()) if name.startswith("CANARY_")]
    forms = [*secrets, *(quote(value, safe="") for value in secrets)]
    forms += [base64.b64encode(value.encode()).decode() for value in secrets]
    forms += [base64.b64encode(f"user:{value}".encode()).decode() for value in secrets]
    print("\n".join(forms), file=sys.stderr, flush=True)
    schema = {"type": "object"}
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        match message["method"]:
            case "initialize":
                info = {"name": "leaking", "version": "1"}
                capabilities: dict[str, object] = {"tools": {}, "logging": {}}
                answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
            case "tools/list":
                answer["result"] = {
                    "tools": [{"name": name, "inputSchema": schema} for name in ("tell", "fail", "die")]
                }
            case "tools/call" if message["params"]["name"] == "tell":
                for part in forms:
                    note = {
                        "level": "error",
                        "logger": "leak",
                        "data": {"first": part[: len(part) // 2] + part[len(part) // 2 :]},
                    }
                    print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": note}))
                content = [{"type": "text", "text": part} for part in forms]
                answer["result"] = {
                    "content": content,
                    "structuredContent": {"said": forms, "password": "hunter2-hunter2"},
                }
            case "tools/call" if message["params"]["name"] == "fail":
                answer["error"] = {"code": -32000, "message": " ".join(forms)}
            case "tools/call":
                print("\n".join(forms), file=sys.stderr, flush=True)
                sys.exit(3)
            case _:
                answer["error"] = {"code": -32601, "message": "no such method"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
