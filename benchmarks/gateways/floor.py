"""What the machine allows: a bare ASGI application over a pipe to the server, without any check at all.

python -m benchmarks.gateways.floor PORT COMMAND [ARG ...]
"""

import asyncio
import itertools
import json
import sys
from typing import Any

import uvicorn


class Pipe:
    """Many questions at once over one pair of pipes."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._ids = itertools.count(1)

    async def start(self, command: list[str]) -> None:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=2**24)
        self._reader = asyncio.create_task(self._read())
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "floor", "version": "1"}}
        await self.ask("initialize", hello)

    async def stop(self) -> None:
        self._process.kill()
        await self._process.wait()
        await self._reader

    async def ask(self, method: str, params: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        number = next(self._ids)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        self._process.stdin.write(line.encode() + b"\n")
        return await future

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            answer = json.loads(line)
            self._waiting.pop(answer["id"]).set_result(answer)


def application(pipe: Pipe, command: list[str]) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await pipe.start(command)
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        request = json.loads(body)
        if "id" in request:
            answer = await pipe.ask(request["method"], request.get("params"))
            payload = json.dumps({**answer, "id": request["id"]}).encode()
        else:
            payload = b""
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(payload)).encode())]
        await send({"type": "http.response.start", "status": 200 if payload else 202, "headers": headers})
        await send({"type": "http.response.body", "body": payload})

    return app


if __name__ == "__main__":
    uvicorn.run(
        application(Pipe(), sys.argv[2:]),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        log_level="warning",
        access_log=False,
        loop="uvloop",
        http="httptools",
    )
