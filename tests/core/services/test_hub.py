"""What happens is told to everybody who listens, and to nobody who does not keep up."""

import anyio
import pytest

from squidbot.core.domain.happenings import Happening
from squidbot.core.services.hub import Hub

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("C-05")]


async def test_listeners_hear_what_they_asked_for() -> None:
    """A client waits for changes of tools, and must not wade through all calls."""
    hub = Hub()
    with hub.listen({"tools"}) as some, hub.listen() as everything:
        hub.publish(Happening("call"))
        hub.publish(Happening("tools", "git"))
        assert some.receive_nowait() == Happening("tools", "git")
        with pytest.raises(anyio.WouldBlock):
            some.receive_nowait()
        assert [everything.receive_nowait().topic for _ in range(2)] == ["call", "tools"]
    assert hub.listeners == 0


async def test_who_does_not_listen_misses_the_oldest_and_delays_nobody() -> None:
    """One sleeping browser must not fill the memory or stop a call."""
    hub = Hub()
    with hub.listen() as slow:
        for number in range(5_000):
            hub.publish(Happening("progress", data={"n": number}))
        kept = [slow.receive_nowait().data["n"] for _ in range(slow.statistics().current_buffer_used)]
    assert kept == list(range(4_000, 5_000))


async def test_what_came_from_another_gateway_is_not_sent_back_to_it() -> None:
    """Two gateways would otherwise tell each other the same news for ever."""
    hub, carried = Hub(), list[Happening]()
    hub.outward = carried.append
    hub.publish(Happening("grants"))
    hub.publish(Happening("tools", "git"), local=True)
    assert carried == [Happening("grants")]


async def test_a_listener_that_leaves_while_news_is_told_breaks_nothing() -> None:
    """Clients end at any moment."""
    hub = Hub()
    with hub.listen() as stream:
        stream.close()
        hub.publish(Happening("state", "git"))
    hub.publish(Happening("state", "git"))
