"""A server of the standard library alone that answers as a script says, so that a test holds its server's words.

python -I -S scripted.py SCRIPT [HEARD]

SCRIPT is a JSON object: for each method a list of steps that answer one request, or a list of such lists, one for each
request in turn, of which the last stands for all that follow. Steps:

    {"result": {...}}       answer with it
    {"error": {...}}        answer with that error
    {"send": {...}}         send this message as it is
    {"raw": "..."}          write this text; $id is the request's id
    {"stderr": "..."}       write this text to stderr
    {"exit": 3}             end at once
    {"close": true}         close standard output and live on

Under "start" are the steps at the start. HEARD is a file that gets every line that was read.
"""

import json
import os
import sys
from typing import Any

INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "scripted", "version": "1.0"},
}
USUAL = {
    "initialize": [{"result": INITIALIZED}],
    "ping": [{"result": {}}],
    "tools/list": [{"result": {"tools": [{"name": "act", "inputSchema": {"type": "object"}}]}}],
    "tools/call": [{"result": {"content": [{"type": "text", "text": "done"}]}}],
}
UNKNOWN = [{"error": {"code": -32601, "message": "Method not found"}}]


def write(text: str) -> None:
    os.write(1, text.encode("utf-8", "surrogateescape"))


def send(message: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def perform(step: dict[str, Any], request_id: Any) -> None:
    match step:
        case {"result": result}:
            send({"id": request_id, "result": result})
        case {"error": error}:
            send({"id": request_id, "error": error})
        case {"send": message}:
            send(message)
        case {"raw": text}:
            write(text.replace("$id", json.dumps(request_id)))
        case {"stderr": text}:
            os.write(2, text.encode())
        case {"exit": code}:
            os._exit(code)
        case {"close": _}:
            os.close(1)


def steps_for(turns: list[Any], count: int) -> Any:
    if turns and isinstance(turns[0], list):
        return turns[min(count, len(turns) - 1)]
    return turns


def main() -> None:
    script = {**USUAL, **json.loads(sys.argv[1])}
    heard = os.open(sys.argv[2] if len(sys.argv) > 2 else os.devnull, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    counts: dict[Any, int] = {}
    for step in script.get("start", []):
        perform(step, None)
    for line in sys.stdin.buffer:
        os.write(heard, line)
        message = json.loads(line)
        method = message.get("method")
        turns = script.get(method, UNKNOWN if "method" in message and "id" in message else [])
        for step in steps_for(turns, counts.get(method, 0)):
            perform(step, message.get("id"))
        counts[method] = counts.get(method, 0) + 1


if __name__ == "__main__":
    main()
