"""A server that answers each call with what it was given, after a moment of its own choice, in whatever order."""

import asyncio
import json
import random
import sys

ECHO = {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}


async def main() -> None:
    """Speak the handshake era over stdio, by hand."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    chance = random.Random(9)

    def say(number: object, result: object) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}) + "\n")
        sys.stdout.flush()

    while line := await reader.readline():
        message = json.loads(line)
        if "id" not in message:
            continue
        match message["method"]:
            case "initialize":
                info = {"name": "delaying", "version": "1"}
                say(message["id"], {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info})
            case "tools/list":
                say(message["id"], {"tools": [ECHO]})
            case "tools/call":
                text = {"type": "text", "text": message["params"]["arguments"]["text"]}
                loop.call_later(chance.random() / 50, say, message["id"], {"content": [text]})
            case _:
                say(message["id"], {})


if __name__ == "__main__":
    asyncio.run(main())
