"""The one trivial server behind everything that is measured: it echoes, and takes as little time as a Python program can.

python -I -S echo.py

Whatever has come is answered with one write, so that it is the gateways that are measured and not this.
"""

import json
import os

_TOOL = {
    "name": "echo",
    "description": "Says the text again",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def result_of(method: str, params: dict[str, object]) -> dict[str, object]:
    """What a request comes to."""
    if method == "tools/call":
        arguments = params["arguments"]
        assert isinstance(arguments, dict)
        return {"content": [{"type": "text", "text": arguments["text"]}]}
    if method == "tools/list":
        return {"tools": [_TOOL]}
    if method == "initialize":
        version = params["protocolVersion"]
        return {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "echo", "version": "1"},
        }
    return {}


def main() -> None:
    rest = b""
    while chunk := os.read(0, 262_144):
        *lines, rest = (rest + chunk).split(b"\n")
        answers = []
        for line in lines:
            message = json.loads(line)
            if "id" not in message or "method" not in message:
                continue
            if message["method"] == "server/discover":
                outcome: dict[str, object] = {"error": {"code": -32601, "message": "Method not found"}}
            else:
                outcome = {"result": result_of(message["method"], message.get("params") or {})}
            answers.append(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}) + "\n")
        said = "".join(answers).encode()
        while said:
            said = said[os.write(1, said) :]


if __name__ == "__main__":
    main()
