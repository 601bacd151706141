"""What happens in one gateway is heard in the others, over a real Redis that may come and go."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from squidbot.adapters.relay import redis as adapter
from squidbot.adapters.relay.redis import CHANNEL, RedisRelay
from squidbot.core.domain.happenings import Happening, Topic
from tests.fixtures.redis_server import RedisServer, redis_server
from tests.fixtures.running import until

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E-10")]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path) as running:
        yield running


class Gateway:
    """One end, what somebody listens to there, and what it heard."""

    def __init__(self, server: RedisServer, *listens: Topic) -> None:
        self.heard: list[Happening] = []
        self.listens = set(listens)
        self.relay = RedisRelay(server.url, heard=self.heard.append, listens=self.listens.__contains__)


async def test_the_others_hear_and_nobody_hears_themselves(server: RedisServer) -> None:
    """An echo would go round for ever."""
    one, two, three = Gateway(server), Gateway(server), Gateway(server, "call")
    async with one.relay, two.relay, three.relay:
        for gateway in (one, two, three):
            await gateway.relay.listening.wait()
        three.relay.ask()
        await until(lambda: two.relay.carries("call"), what="the request of the third")
        happenings = [Happening("tools", "git"), Happening("grants"), Happening("tokens", None, {"id": "t"})]
        for happening in happenings:
            one.relay.send(happening)
        two.relay.send(last := Happening("call", "git", {"tool": "git_log"}))
        await until(lambda: len(three.heard) == 4, what="all four")
        await until(lambda: len(one.heard) == 1, what="the other's")
        await until(lambda: len(two.heard) == 3, what="the first's three")
    assert sorted(three.heard, key=repr) == sorted([*happenings, last], key=repr)
    assert one.heard == [last]
    assert two.heard == happenings


async def test_what_concerns_one_gateway_alone_stays_there(server: RedisServer) -> None:
    """How its servers are is no news for those who have their own."""
    one, two = Gateway(server), Gateway(server)
    async with one.relay, two.relay:
        await two.relay.listening.wait()
        for topic in ("state", "settings", "progress"):
            one.relay.send(Happening(topic))
        one.relay.send(Happening("alert"))
        await until(lambda: two.heard, what="the alert")
        assert two.heard == [Happening("alert")]


async def test_calls_are_carried_only_while_somebody_listens_elsewhere(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is one at every moment, and nearly always nobody who looks."""
    monkeypatch.setattr(adapter, "_ASKING", 0.2)
    one, two = Gateway(server), Gateway(server)
    async with one.relay, two.relay:
        await two.relay.listening.wait()
        one.relay.send(Happening("call", "git", {"number": 1}))
        two.listens.add("call")
        await until(lambda: one.relay.carries("call"), what="the request")
        for number in range(2, 500):
            one.relay.send(Happening("call", "git", {"number": number}))
        await until(lambda: len(two.heard) == 498, what="all that came after it")
        assert [happening.data["number"] for happening in two.heard] == list(range(2, 500))
        two.listens.clear()
        await until(lambda: not one.relay.carries("call"), what="the request to lapse")
    assert one.relay.dropped == 0


async def test_nonsense_on_the_channel_is_not_believed(server: RedisServer) -> None:
    """Redis may be shared with programs that know nothing of us."""
    gateway = Gateway(server)
    async with gateway.relay:
        await gateway.relay.listening.wait()
        with server.client() as client:
            for text in (
                b"\xff",
                "{",
                "[]",
                '["x", "tools"]',
                '["x", "rm", null, {}]',
                '["x", "tools", 3, {}]',
                "7",
                '["x", "want", null, 7]',
                "\n\n",
            ):
                client.publish(CHANNEL, text)
            client.publish(CHANNEL, '["x", "tools", "git", {}]')
        await until(lambda: gateway.heard, what="what makes sense")
        assert gateway.heard == [Happening("tools", "git")]


async def test_a_redis_that_is_gone_is_not_waited_for_and_heard_again_when_it_is_back(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway goes on alone; what it could not say is counted."""
    monkeypatch.setattr(adapter, "_LONGEST_REST", 0.3)
    one, two = Gateway(server), Gateway(server)
    async with one.relay, two.relay:
        await two.relay.listening.wait()
        server.stop()
        for _ in range(adapter._BEHIND + 100):
            one.relay.send(Happening("grants"))
        assert one.relay.dropped > 0
        await until(lambda: one.relay.dropped == adapter._BEHIND + 100, what="all to be counted")
        server.start()

        def heard() -> bool:
            one.relay.send(Happening("tools", "late"))
            return Happening("tools", "late") in two.heard

        await until(heard, what="the two to hear each other again")


async def test_what_cannot_be_written_as_json_is_counted(server: RedisServer) -> None:
    """Publishing never raises into a call."""
    gateway = Gateway(server)
    async with gateway.relay:
        gateway.relay.send(Happening("alert", None, {"x": object()}))
        gateway.relay.send(Happening("alert", None, {"x": "y" * 2_000_000}))
        assert gateway.relay.dropped == 2
    gateway.relay.send(Happening("grants"))
    assert gateway.relay.dropped == 3
