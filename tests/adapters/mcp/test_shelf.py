"""An answer that was read once is not read again, and none stays behind."""

from typing import Any

import pytest

from squidbot.adapters.mcp.shelf import Shelf
from tests.adapters.mcp.http_peer import LIMIT, Visit, config_for, event, failure, peer, wire

REQUEST = 7


def answer(**outcome: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": REQUEST, **outcome}


def test_the_sdk_sees_an_empty_answer_in_the_place_of_one_that_waits() -> None:
    """Reading 9 MB twice is what held up the loop."""
    shelf = Shelf()
    with shelf.place(REQUEST) as place:
        assert shelf.put(REQUEST, answer(result={"large": "x"})) == answer(result={})
        assert place == [answer(result={"large": "x"})]
        shown = shelf.put(REQUEST, answer(error={"code": -32000, "message": "large", "data": "x"}))
        assert shown == answer(error={"code": -32000, "message": ""})


@pytest.mark.parametrize("request_id", [None, REQUEST + 1, str(REQUEST)])
def test_an_answer_that_nobody_waits_for_is_left_as_it_is(request_id: int | str | None) -> None:
    """What is kept for nobody would be kept for ever."""
    shelf = Shelf()
    with shelf.place(REQUEST) as place:
        assert shelf.put(request_id, answer(result={"a": 1})) == answer(result={"a": 1})
        assert place == []
    assert shelf.put(REQUEST, answer(result={"late": True})) == answer(result={"late": True})


def test_a_message_that_is_no_answer_passes_the_shelf() -> None:
    """A server's own request may well have an id that we have used."""
    shelf = Shelf()
    asks = answer(method="ping")
    with shelf.place(REQUEST) as place:
        assert shelf.put(REQUEST, asks) is asks
        assert place == []


@pytest.mark.anyio
@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "body"])
async def test_results_and_errors_come_whole_past_the_sdk(*, streamed: bool) -> None:
    """What a server says must reach its caller unchanged, by whichever way."""
    outcomes: list[dict[str, Any]] = [
        {
            "result": {
                "content": [{"type": "text", "text": "x" * 1000}],
                "structuredContent": {"n": [1, None, "\u2028"]},
            }
        },
        {"error": {"code": -32001, "message": "no such ticket", "data": {"ticket": 7}}},
    ]
    waiting = list(outcomes)

    async def act(visit: Visit) -> None:
        message = {"jsonrpc": "2.0", "id": visit.asked.message["id"], **waiting.pop(0)}
        if streamed:
            await visit.stream(event(message))
        elif "result" in message:
            await visit.result(message["result"])
        else:
            await visit.reply(200, event(message)[len("data: ") :], Content_Type="application/json")

    async with peer(act) as there, wire(config_for(there.url())) as dispatcher:
        assert await dispatcher.send_raw_request("tools/call", {}) == outcomes[0]["result"]
        error = (await failure(dispatcher)).error
    assert error.wire() == outcomes[1]["error"]


@pytest.mark.anyio
@pytest.mark.requirement("B-15")
async def test_an_event_that_is_too_large_fails_its_call_before_it_ends() -> None:
    """A server that goes on for 100 MB need not be heard out to be refused."""

    async def act(visit: Visit) -> None:
        await visit.stream(b"data: " + b"x" * (2 * LIMIT))
        await visit.until_hung_up()

    async with peer(act) as there, wire(config_for(there.url())) as dispatcher:
        assert f"too large (limit {LIMIT} bytes)" in (await failure(dispatcher)).error.message
