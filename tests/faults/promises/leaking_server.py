"""A server that says every secret it was given, everywhere it can: in answers, errors, descriptions, logs and last words."""

import base64
import json
import os
import sys
import time
from urllib.parse import quote


def halves(text: str) -> tuple[str, str]:
    """A text in two."""
    return text[: len(text) // 2], text[len(text) // 2 :]


def say(data: object) -> None:
    """Send a line of a log."""
    note = {"level": "error", "logger": "leak", "data": data}
    print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": note}))


def main() -> None:
    """Speak the handshake era over stdio, by hand."""
    secrets = [value for name, value in sorted(os.environ.items()) if name.startswith("CANARY_")]
    forms = [*secrets, *(quote(value, safe="") for value in secrets)]
    forms += [base64.b64encode(value.encode()).decode() for value in secrets]
    forms += [base64.b64encode(f"user:{value}".encode()).decode() for value in secrets]
    print("\n".join(forms), file=sys.stderr, flush=True)
    for half, rest in map(halves, secrets):
        # Not yet a line when the first part arrives.
        print(half, end="", file=sys.stderr, flush=True)
        time.sleep(0.002)
        print(rest, file=sys.stderr, flush=True)
    schema = {"type": "object", "properties": {"note": {"type": "string", "default": secrets[0]}}}
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        match message["method"]:
            case "initialize":
                info = {"name": "leaking", "title": f"of {forms[1]}", "version": forms[2]}
                capabilities: dict[str, object] = {"tools": {}, "logging": {}}
                answer["result"] = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": capabilities,
                    "serverInfo": info,
                    "instructions": " ".join(forms),
                }
            case "tools/list":
                told = {"description": " ".join(forms), "inputSchema": schema}
                answer["result"] = {"tools": [{"name": name, **told} for name in ("tell", "fail", "die")]}
            case "tools/call" if message["params"]["name"] == "tell":
                for part in forms:
                    say({"said": part})
                    first, second = halves(part)
                    say({"first": first, "second": second})
                content = [{"type": "text", "text": part} for part in forms]
                content += [{"type": "text", "text": half} for secret in secrets for half in halves(secret)]
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
