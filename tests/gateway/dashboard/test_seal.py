"""What a browser carries: sealed values, and codes that are good once."""

import anyio
import pytest

from squidbot.core.domain.happenings import Happening
from squidbot.core.domain.members import Principal
from squidbot.core.services.hub import Hub
from squidbot.gateway.dashboard.seal import Seal
from squidbot.gateway.dashboard.sign_in import CODE_LIFETIME, SignIn
from squidbot.gateway.dashboard.words import ago, pretty, seconds
from tests.fakes.door import FakeClock
from tests.fixtures.running import until

pytestmark = pytest.mark.anyio

GRACE = Principal("m_1", "Grace", "t1", right="admin")


class Open:
    """Stands for `Admission`: whoever was let in still is."""

    async def still(self, principal: Principal) -> bool:
        return principal == GRACE


async def key() -> bytes:
    return b"k" * 32


async def other_key() -> bytes:
    return b"o" * 32


async def test_a_value_is_opened_only_for_its_purpose_and_with_its_key() -> None:
    """A code is no session, and another database's gateway is another's."""
    seal = Seal(key)
    text = await seal.close("session", {"who": "ü"})
    assert await seal.open("session", text) == {"who": "ü"}
    assert await seal.open("code", text) is None
    assert await Seal(other_key).open("session", text) is None
    for position in range(len(text)):
        changed = text[:position] + ("A" if text[position] != "A" else "B") + text[position + 1 :]
        assert await seal.open("session", changed) in (None, {"who": "ü"})
        if await seal.open("session", changed) is not None:
            # The last character of base64 has bits that mean nothing.
            assert position == len(text) - 1


def sign_in(clock: FakeClock, hub: Hub) -> SignIn:
    return SignIn(Seal(key), admission=Open(), clock=clock, hub=hub)  # type: ignore[arg-type]


async def test_a_code_is_good_once_and_for_five_minutes() -> None:
    """A link in a terminal's history opens nothing."""
    clock, hub = FakeClock(), Hub()
    service = sign_in(clock, hub)
    code = await service.code(GRACE)
    assert await service.redeem(code) == GRACE
    assert await service.redeem(code) is None
    late = await service.code(GRACE)
    clock.now += CODE_LIFETIME + 1
    assert await service.redeem(late) is None
    assert await service.redeem("nonsense") is None


async def test_a_code_that_one_worker_took_is_used_for_all() -> None:
    """With several workers a link must not be good once for each of them."""
    clock, hub, other_hub = FakeClock(), Hub(), Hub()
    hub.outward = lambda happening: other_hub.publish(happening, local=True)
    here, there = sign_in(clock, hub), sign_in(clock, other_hub)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(there.listen)
        await until(lambda: other_hub.listeners == 1, what="the other worker")
        code = await here.code(GRACE)
        other_hub.publish(Happening("tokens", data={"id": "t2"}))
        assert await here.redeem(code) == GRACE
        await until(lambda: there._used, what="the other worker to hear of it")
        assert await there.redeem(code) is None
        tasks.cancel_scope.cancel()


def test_numbers_read_like_numbers() -> None:
    """Nobody reads 0.0234 s at a glance."""
    assert [seconds(value) for value in (None, 0.0, 0.0001, 0.0234, 1.44, 600.0)] == [
        "\u2013",
        "0",
        "< 1 ms",
        "23 ms",
        "1.4 s",
        "10 min",
    ]
    assert [ago(1_000.0 - past, 1_000.0) for past in (0, 59, 61, 7_300, 200_000, -5)] == [
        "0 s",
        "59 s",
        "1 min",
        "2 h",
        "2 d",
        "0 s",
    ]
    assert pretty('{"a":1}') == '{\n  "a": 1\n}'
    assert pretty("[" * 100_000) == "[" * 100_000
    assert pretty(None) == ""
