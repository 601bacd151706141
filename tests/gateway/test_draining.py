"""A gateway that ends: calls under way are answered, streams are ended, nothing new begins."""

import anyio
import pytest
from starlette.types import Message, Receive, Scope, Send

from squidbot.gateway.draining import Draining

pytestmark = pytest.mark.anyio


class Client:
    """One request, and what it was answered."""

    def __init__(
        self, app: Draining, path: str, *, method: str = "POST", headers: tuple[tuple[bytes, bytes], ...] = ()
    ):
        self.said: list[Message] = []
        self._app = app
        self._scope: Scope = {"type": "http", "method": method, "path": path, "headers": list(headers)}

    async def ask(self) -> None:
        async def receive() -> Message:
            await anyio.sleep_forever()
            raise AssertionError

        async def send(message: Message) -> None:
            self.said.append(message)

        await self._app(self._scope, receive, send)

    @property
    def status(self) -> int:
        status: int = self.said[0]["status"]
        return status

    @property
    def ended(self) -> bool:
        return bool(self.said) and self.said[-1].get("more_body", None) is not True and len(self.said) > 1


class App:
    """Answers a call when told to, and a stream never."""

    def __init__(self) -> None:
        self.go = anyio.Event()
        self.inside = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/stream":
            headers = [(b"Content-Type", b"text/event-stream")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b": hello\n\n", "more_body": True})
            self.inside.set()
            await anyio.sleep_forever()
        self.inside.set()
        await self.go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})


async def test_a_call_under_way_is_answered_and_a_new_one_is_not_begun() -> None:
    """Whoever waits for an answer gets it; whoever comes later is told to come again."""
    inner = App()
    app = Draining(inner)
    old, new, health = Client(app, "/mcp"), Client(app, "/mcp"), Client(app, "/healthz", method="GET")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(old.ask)
        await inner.inside.wait()
        tasks.start_soon(app.finish, 10)
        await anyio.wait_all_tasks_blocked()
        await new.ask()
        assert new.status == 503
        assert b"shutting down" in new.said[1]["body"]
        assert not old.said
        inner.go.set()
        await health.ask()
    assert old.status == health.status == 200
    assert app.calls == 0


@pytest.mark.parametrize(
    ("method", "headers"), [("GET", ()), ("POST", ((b"mcp-method", b"subscriptions/listen"),))], ids=["get", "listen"]
)
async def test_a_stream_without_end_is_ended(method: str, headers: tuple[tuple[bytes, bytes], ...]) -> None:
    """Waiting for it would be waiting for ever; it ends as a stream does, not as a broken line."""
    inner = App()
    app = Draining(inner)
    client = Client(app, "/stream", method=method, headers=headers)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.ask)
        await inner.inside.wait()
        assert await app.finish(60) == 0
    assert client.ended


async def test_a_call_that_takes_too_long_is_cut_off_with_an_answer() -> None:
    """The gateway must end some time; the client must not hang."""
    inner = App()
    app = Draining(inner)
    client = Client(app, "/mcp")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.ask)
        await inner.inside.wait()
        assert await app.finish(0.05) == 1
    assert client.status == 503
