"""One bad answer over HTTP is one call's trouble."""

import gzip
import json
import logging
import time
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import pytest

from squidbot.adapters.mcp import http_guard
from squidbot.adapters.mcp.channel import Bounds
from squidbot.adapters.mcp.http_outcome import HTTPFailure, failure_of
from squidbot.adapters.mcp.transport import Opening
from tests.adapters.mcp.http_peer import LIMIT, Act, Visit, config_for, event, failure, peer, wire
from tests.fixtures.running import until

pytestmark = pytest.mark.anyio

GOOD: dict[str, Any] = {"fine": True}


def only_calls(act: Act) -> Act:
    """Do `act` to a `tools/call`; anything else works."""

    async def chosen(visit: Visit) -> None:
        if visit.asked.method == "POST" and visit.asked.message.get("method") == "tools/call":
            await act(visit)
        elif visit.asked.method == "POST" and "id" in visit.asked.message:
            await visit.result(GOOD, Mcp_Session_Id="s1")
        else:
            await visit.reply(202)

    return chosen


async def reset(visit: Visit) -> None:
    visit.reset()


async def silence(visit: Visit) -> None:
    await visit.until_hung_up()


async def raw(data: bytes, visit: Visit) -> None:
    await visit.raw(data)


async def says(body: bytes, visit: Visit, *, kind: str = "application/json", status: int = 200, **more: str) -> None:
    await visit.reply(status, body, Content_Type=kind, **more)


async def answers(make: Callable[[Any], bytes], visit: Visit, **more: str) -> None:
    await visit.reply(200, make(visit.asked.message["id"]), Content_Type="application/json", **more)


async def streams(visit: Visit, *, parts: Callable[[Any], list[bytes]]) -> None:
    await visit.stream(*parts(visit.asked.message["id"]))


def message(request_id: Any, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, **more}


def dumped(request_id: Any, **more: Any) -> bytes:
    return json.dumps(message(request_id, **more)).encode()


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Any:
    """Nothing that a server does may put a warning or a traceback into the log of the SDK."""
    with caplog.at_level(logging.WARNING):
        yield
    assert [record.getMessage() for record in caplog.records] == []


@pytest.mark.requirement("B-14")
async def test_what_a_server_is_told_and_does_not_take_delays_no_call() -> None:
    """The SDK sends one after the other, and our calls would be behind it."""
    told: list[str] = []

    async def takes_no_news(visit: Visit) -> None:
        if visit.asked.method == "POST" and "id" not in visit.asked.message:
            told.append(visit.asked.message["method"])
            await visit.until_hung_up()
        elif visit.asked.method == "POST":
            await visit.result(GOOD)
        else:
            await visit.reply(405)

    async with peer(takes_no_news) as there, wire(config_for(there.url())) as dispatcher:
        for method in ("notifications/initialized", "notifications/roots/list_changed", "notifications/initialized"):
            began = time.monotonic()
            await dispatcher.notify(method, None)
            assert await dispatcher.send_raw_request("ping", {}, {"timeout": 5}) == GOOD
            assert time.monotonic() - began < 2
        assert len(told) == 3


@pytest.mark.requirement("B-14")
async def test_answers_that_a_server_does_not_take_delay_no_call_and_do_not_pile_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may ask for ever and hear nothing."""
    monkeypatch.setattr(http_guard, "_MOST_BESIDE", 3)
    unheard = 0

    async def asks(visit: Visit) -> None:
        nonlocal unheard
        if visit.asked.method != "POST":
            await visit.reply(405)
        elif visit.asked.message.get("method") == "tools/call":
            request_id = visit.asked.message["id"]
            questions = [event(message(n, method="roots/list")) for n in range(10)]
            await visit.stream(*questions, event(message(request_id, result=GOOD)))
        elif "method" in visit.asked.message:
            await visit.result(GOOD)
        else:
            unheard += 1
            await visit.until_hung_up()

    async with peer(asks) as there, wire(config_for(there.url())) as dispatcher:
        began = time.monotonic()
        assert await dispatcher.send_raw_request("tools/call", {"name": "x"}, {"timeout": 5}) == GOOD
        await until(lambda: unheard == 3, what="the answers")
        assert await dispatcher.send_raw_request("ping", {}, {"timeout": 5}) == GOOD
        assert time.monotonic() - began < 3
        assert unheard == 3


@pytest.mark.requirement("B-14")
async def test_the_word_of_our_being_ready_is_taken_before_the_first_question() -> None:
    """Some servers refuse whatever comes before it."""
    order: list[str] = []

    async def slow_to_take(visit: Visit) -> None:
        if visit.asked.method != "POST":
            await visit.reply(405)
        elif "id" in visit.asked.message:
            order.append("asked")
            await visit.result(GOOD)
        else:
            await anyio.sleep(0.1)
            order.append("taken")
            await visit.reply(202)

    async with peer(slow_to_take) as there, wire(config_for(there.url())) as dispatcher:
        await dispatcher.notify("notifications/initialized", None)
        assert await dispatcher.send_raw_request("ping", {}, {"timeout": 5}) == GOOD
        assert order == ["taken", "asked"]


@pytest.mark.requirement("B-04")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 408, 413, 429, 500, 502, 503])
async def test_a_status_is_named_and_the_connection_lives_on(status: int) -> None:
    """The SDK loses status and Retry-After; a person needs both to know what to do."""
    refuse = partial(says, b"<h1>no</h1>", kind="text/html", status=status, Retry_After="7")
    async with peer(only_calls(refuse)) as there, wire(config_for(there.url())) as dispatcher:
        error = await failure(dispatcher)
        told = failure_of(error.error.data)
        assert told is not None
        assert (told.status, told.retry_after, told.session_lost) == (status, 7.0, False)
        assert str(status) in error.error.message
        assert await dispatcher.send_raw_request("ping", {}) == GOOD


async def test_a_date_in_retry_after_becomes_seconds() -> None:
    """The header has two forms."""
    refuse = partial(says, b"", status=503, Retry_After="Fri, 01 Jan 2100 00:00:00 GMT")
    async with peer(only_calls(refuse)) as there, wire(config_for(there.url())) as dispatcher:
        told = failure_of((await failure(dispatcher)).error.data)
        assert told is not None
        assert told.retry_after is not None
        assert told.retry_after > 1e6


async def test_a_404_within_a_session_says_that_the_session_is_lost() -> None:
    """Only then may the call be sent once more: the server said that it did not run it."""
    async with peer(only_calls(partial(says, b"", status=404))) as there, wire(config_for(there.url())) as dispatcher:
        await dispatcher.send_raw_request("initialize", {})
        told = failure_of((await failure(dispatcher)).error.data)
        assert told == HTTPFailure(404, session_lost=True, cause="HTTP 404 Not Found")


async def test_a_servers_own_error_keeps_its_code_words_and_data() -> None:
    """The protocol's own negotiation reads them, also at a status over 400."""
    own = {"code": -32022, "message": "not this version", "data": {"supported": ["2025-11-25"], "requested": "x"}}

    async def refuse(visit: Visit) -> None:
        await says(dumped(None, error=own), visit, status=400)

    async with peer(only_calls(refuse)) as there, wire(config_for(there.url())) as dispatcher:
        error = (await failure(dispatcher)).error
        assert (error.code, error.message, error.data["supported"]) == (-32022, "not this version", ["2025-11-25"])
        told = failure_of(error.data)
        assert told is not None
        assert told.status == 400


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (reset, "connection"),
        (
            partial(raw, b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"),
            "broke off",
        ),
        (partial(raw, b"\x00\x01garbage\r\n\r\n"), "does not speak HTTP"),
        (partial(raw, b""), "connection"),
    ],
    ids=["reset", "truncated", "garbage", "hung up"],
)
async def test_a_lost_connection_is_the_error_of_that_call_alone(act: Act, words: str) -> None:
    """In the SDK one reset ends every call to that server, and the task that owns it."""
    async with peer(only_calls(act)) as there, wire(config_for(there.url())) as dispatcher:
        error = await failure(dispatcher)
        assert words in error.error.message
        told = failure_of(error.error.data)
        assert told is not None
        assert told.status is None
        assert await dispatcher.send_raw_request("ping", {}) == GOOD


async def test_a_refused_connection_is_named() -> None:
    """Nobody listens: the commonest fault of all."""
    async with peer(silence) as there:
        pass
    async with wire(config_for(there.url())) as dispatcher:
        error = await failure(dispatcher)
        assert error.error.message == f"connection refused by 127.0.0.1:{there.port}"


NESTED = b'{"a":' * 500 + b"1" + b"}" * 500


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (partial(says, b"<html>sign in to this wifi</html>", kind="text/html"), "text/html"),
        (partial(says, b""), "empty"),
        (partial(says, b"", status=202), "accepted without an answer"),
        (partial(says, b"nonsense"), "no JSON-RPC"),
        (partial(says, b'{"jsonrpc": "2.0", "id":'), "JSON"),
        (partial(says, b"[]"), "batch"),
        (partial(says, b'{"jsonrpc": "2.0", "id": 1, "result": {}}'), "another request"),
        (partial(answers, lambda i: b'{"jsonrpc":"2.0","id":%d,"result":{},"result":{}}' % i), "twice"),
        (partial(answers, lambda i: b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (i, NESTED)), "deep"),
        (partial(answers, lambda i: dumped(i, result={}, error={"code": 1, "message": "x"})), "a result and an error"),
        (partial(answers, lambda i: dumped(i, result=[])), "no JSON-RPC"),
        (partial(answers, lambda i: dumped(i, method="ping")), "a request where an answer was due"),
        (partial(answers, lambda i: dumped(i, result={"x": "x" * LIMIT})), "larger than 0.05 MB"),
        (partial(says, gzip.compress(b"0" * 50_000_000), Content_Encoding="gzip"), "larger than 0.05 MB"),
        (partial(says, b"xx", Content_Encoding="br"), "nobody asked for"),
        (partial(says, b"xx", Content_Encoding="gzip"), "cannot be unpacked"),
        (partial(says, gzip.compress(b"{}")[:-9], Content_Encoding="gzip"), "broke off"),
    ],
    ids=lambda value: value.replace(" ", "_") if isinstance(value, str) else "",
)
async def test_an_answer_that_is_none_is_refused_at_once_with_the_reason(act: Act, words: str) -> None:
    """Half of these would hang the call, one would fill the memory."""
    async with peer(only_calls(act)) as there, wire(config_for(there.url())) as dispatcher:
        assert words in (await failure(dispatcher, timeout=1)).error.message
        assert await dispatcher.send_raw_request("ping", {}) == GOOD


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda data: zlib.compress(data, wbits=-15)),
        ("identity", bytes),
    ],
)
async def test_a_compressed_answer_is_unpacked(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    """We ask for it, and both readings of deflate are about."""
    text = "a" * (LIMIT - 100)
    act = partial(answers, lambda i: pack(dumped(i, result={"text": text})), Content_Encoding=encoding)
    async with peer(only_calls(act)) as there, wire(config_for(there.url())) as dispatcher:
        assert await dispatcher.send_raw_request("tools/call", {}) == {"text": text}
        assert there.asked[-1].headers["accept-encoding"] == "gzip, deflate"


async def test_what_json_cannot_carry_is_made_valid() -> None:
    """NaN, bad UTF-8 and an id that came back as text are no reason to lose an answer."""
    act = partial(answers, lambda i: b'\xef\xbb\xbf{"jsonrpc":"2.0","id":"%d","result":{"a":NaN,"b":"\xff"}}' % i)
    async with peer(only_calls(act)) as there, wire(config_for(there.url())) as dispatcher:
        assert await dispatcher.send_raw_request("tools/call", {}) == {"a": None, "b": "�"}


# Streams


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (lambda i: [], "without an answer"),
        (lambda i: [b": keepalive\n\n"], "without an answer"),
        (lambda i: [b'data: {"jsonrpc": "2.0", "id"'], "without an answer"),
        (lambda i: [b"data: nonsense\n\n"], "no JSON-RPC"),
        (lambda i: [event(message(i, result={"x": "x" * LIMIT}))], "too large"),
        (lambda i: [event(message(i, result=[]))], "no JSON-RPC"),
    ],
    ids=["empty", "keepalive only", "half", "nonsense", "too large", "no object"],
)
async def test_a_stream_without_a_good_answer_fails_its_call(parts: Callable[[Any], list[bytes]], words: str) -> None:
    """A call whose stream ended must not wait for its deadline."""
    act = partial(streams, parts=parts)
    async with peer(only_calls(act)) as there, wire(config_for(there.url())) as dispatcher:
        assert words in (await failure(dispatcher, timeout=1)).error.message
        assert await dispatcher.send_raw_request("ping", {}) == GOOD


async def test_a_stream_that_breaks_off_says_so() -> None:
    """The cause is the connection's and not the server's."""

    async def cut(visit: Visit) -> None:
        await visit.stream(b"5\r\n: hi\n\r\n", Transfer_Encoding="chunked")
        visit.reset()

    async with peer(only_calls(cut)) as there, wire(config_for(there.url())) as dispatcher:
        told = failure_of((await failure(dispatcher)).error.data)
        assert told is not None
        assert told.status is None


async def test_other_events_and_a_large_answer_pass_in_a_stream() -> None:
    """Servers send pings and progress before the answer; 2 MB of it are fine if the bound allows."""

    def parts(request_id: Any) -> list[bytes]:
        progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
        ping = b"event: ping\ndata: x\n\n"
        return [
            b"\xef\xbb\xbfdata:\n\n",
            ping,
            event(progress),
            event(message(request_id, result={"x": "x" * 2_000_000})),
        ]

    opening = Opening(Bounds(bytes=3_000_000))
    async with (
        peer(only_calls(partial(streams, parts=parts))) as there,
        wire(config_for(there.url()), opening=opening) as dispatcher,
    ):
        result = await dispatcher.send_raw_request("tools/call", {})
        assert len(result["x"]) == 2_000_000


BARE: dict[str, Any] = {"jsonrpc": "2.0"}


@pytest.mark.parametrize(
    "bad",
    [
        {**BARE, "method": "notifications/message", "params": [1]},
        {**BARE, "method": 7},
        {**BARE, "method": "ping", "id": None},
        {**BARE, "method": "ping", "id": {}},
        {"method": "notifications/message"},
        BARE,
    ],
    ids=["params", "method", "no id", "bad id", "no version", "nothing"],
)
async def test_what_is_wrong_beside_an_answer_is_left_out(bad: dict[str, Any]) -> None:
    """The good answer follows: over the other transports the call gets it too."""
    act = partial(streams, parts=lambda i: [event(bad, id="7"), event(message(i, result=GOOD))])
    async with peer(only_calls(act)) as there, wire(config_for(there.url())) as dispatcher:
        assert await dispatcher.send_raw_request("tools/call", {}, {"timeout": 5}) == GOOD


async def test_an_unreadable_answer_that_speaks_of_methods_is_still_the_calls_error() -> None:
    """Else its caller would wait for the deadline."""
    act = partial(streams, parts=lambda i: [b'data: {"jsonrpc": "2.0", "id": %d, "result": {"method": \n\n' % i])
    async with peer(only_calls(act)) as there, wire(config_for(there.url())) as dispatcher:
        assert "no valid JSON" in (await failure(dispatcher)).error.message


@pytest.mark.parametrize("method", ["ping", "roots/list"])
async def test_a_flood_of_requests_is_answered_in_part_and_holds_up_no_call(method: str) -> None:
    """The SDK answers by one POST after the other, and our next call would wait behind them all."""
    flood = [event({**BARE, "id": number, "method": method}) for number in range(500)]

    async def act(visit: Visit) -> None:
        await visit.stream(*flood, event(message(visit.asked.message["id"], result=GOOD)))

    async with peer(only_calls(act)) as there, wire(config_for(there.url())) as dispatcher:
        assert await dispatcher.send_raw_request("tools/call", {}, {"timeout": 5}) == GOOD
        assert await dispatcher.send_raw_request("ping", {}, {"timeout": 5}) == GOOD
        answers_sent = [asked for asked in there.asked if "method" not in asked.message]
        assert 0 < len(answers_sent) < 100


async def test_a_stream_with_ids_is_taken_up_again_without_sending_the_call_twice() -> None:
    """That is the protocol's own way to survive a dropped connection."""
    ids: list[Any] = []

    async def act(visit: Visit) -> None:
        if visit.asked.method == "POST":
            ids.append(visit.asked.message["id"])
            await visit.stream(b"id: 7\nretry: 1\ndata:\n\n")
        elif visit.asked.headers.get("last-event-id") == "7":
            await visit.stream(event(message(ids[0], result=GOOD)))

    async with peer(act) as there, wire(config_for(there.url())) as dispatcher:
        assert await dispatcher.send_raw_request("tools/call", {}, {"timeout": 5}) == GOOD
        assert there.methods() == ["POST", "GET"]


async def test_a_stream_that_is_taken_up_again_for_ever_ends() -> None:
    """The SDK itself would ask on, long after the caller is gone."""

    async def act(visit: Visit) -> None:
        await visit.stream(b"id: 7\nretry: 0\ndata:\n\n" if visit.asked.method == "POST" else b": nothing\n\n")

    async with peer(act) as there, wire(config_for(there.url())) as dispatcher:
        assert "exhausted" in (await failure(dispatcher, timeout=20)).error.message
        assert len(there.asked) < 80


# What has no answer


async def test_a_notification_that_nobody_takes_holds_up_nothing() -> None:
    """The SDK sends one message at a time; a server that sits on a notification would stop them all."""

    async def act(visit: Visit) -> None:
        if "id" in visit.asked.message:
            await visit.result(GOOD)
        else:
            await visit.until_hung_up()

    async with peer(act) as there, wire(config_for(there.url(), timeout=0.3)) as dispatcher:
        await dispatcher.notify("notifications/roots/list_changed", {})
        assert await dispatcher.send_raw_request("ping", {}, {"timeout": 3}) == GOOD


@pytest.mark.parametrize("act", [reset, partial(says, b"", status=500)], ids=["reset", "500"])
async def test_a_notification_that_fails_ends_nothing(act: Act) -> None:
    """Nobody waits for it, so nobody is told."""

    async def chosen(visit: Visit) -> None:
        await (visit.result(GOOD) if "id" in visit.asked.message else act(visit))

    async with peer(chosen) as there, wire(config_for(there.url())) as dispatcher:
        await dispatcher.notify("notifications/roots/list_changed", {})
        assert await dispatcher.send_raw_request("ping", {}, {"timeout": 3}) == GOOD


@pytest.mark.parametrize("begin", [b"", b": hello\n\n"], ids=["before headers", "within the stream"])
async def test_hanging_up_follows_a_cancelled_call(begin: bytes) -> None:
    """A server that never answers must not collect our connections until a read timeout of minutes."""
    hung_up = anyio.Event()

    async def act(visit: Visit) -> None:
        if begin:
            await visit.stream(begin)
        await visit.until_hung_up()
        hung_up.set()

    async with peer(only_calls(act)) as there, wire(config_for(there.url())) as dispatcher:
        assert "no answer" in (await failure(dispatcher, timeout=0.3)).error.message
        with anyio.fail_after(5):
            await hung_up.wait()
        assert await dispatcher.send_raw_request("ping", {}) == GOOD


@pytest.mark.parametrize("act", [silence, reset, partial(says, b"", status=500)], ids=["silence", "reset", "500"])
async def test_closing_is_bounded_whatever_the_server_does(act: Act) -> None:
    """A server that ignores the farewell must not hold up ours."""

    async def chosen(visit: Visit) -> None:
        await (act(visit) if visit.asked.method == "DELETE" else visit.result(GOOD, Mcp_Session_Id="s1"))

    async with peer(chosen) as there:
        async with wire(config_for(there.url())) as dispatcher:
            await dispatcher.send_raw_request("initialize", {})
            began = time.monotonic()
        assert time.monotonic() - began < 4
        assert there.methods()[-1] == "DELETE"


# Where requests go


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_no_redirect_leads_to_another_origin(status: int) -> None:
    """The token in our headers was meant for one server."""
    async with peer(only_calls(partial(says, b"{}"))) as trap:
        for target in (trap.url(), f"http://localhost:{trap.port}/", "file:///etc/passwd", "http://[", "//"):
            move = partial(says, b"", status=status, Location=target)
            async with peer(only_calls(move)) as there, wire(config_for(there.url())) as dispatcher:
                assert "redirect" in (await failure(dispatcher)).error.message
        assert trap.asked == []


async def test_a_redirect_within_the_origin_is_followed_and_a_circle_is_not() -> None:
    """A trailing slash is the commonest redirect of all."""

    async def act(visit: Visit) -> None:
        await (visit.result(GOOD) if visit.asked.path == "/mcp/" else visit.reply(307, Location="/mcp/"))

    async with peer(act) as there, wire(config_for(there.url())) as dispatcher:
        assert await dispatcher.send_raw_request("ping", {}) == GOOD
    async with (
        peer(partial(says, b"", status=308, Location="/mcp")) as there,
        wire(config_for(there.url())) as dispatcher,
    ):
        assert "circles" in (await failure(dispatcher)).error.message
        assert len(there.asked) == 5


@pytest.mark.parametrize(
    "data", [None, [], {}, {"squidbot": 1}, {"squidbot": {"status": "x"}}, {"squidbot": {"status": 1}}]
)
def test_data_of_others_is_no_failure_of_http(data: Any) -> None:
    """A server may put anything into the data of its errors."""
    assert failure_of(data) is None


@pytest.mark.requirement("B-15")
@pytest.mark.parametrize("named", ["s\xe9ance", "a\tb", "s" * 5_000])
async def test_a_session_id_that_no_header_can_carry_is_the_error_of_that_call(named: str) -> None:
    """Kept, it would make every later request fail inside of the SDK, and take its neighbours along."""

    async def act(visit: Visit) -> None:
        await visit.result(GOOD, Mcp_Session_Id=named)

    async with peer(only_calls(act)) as there, wire(config_for(there.url())) as dispatcher:
        assert "no header can carry" in (await failure(dispatcher, "tools/call")).error.message
        assert await dispatcher.send_raw_request("ping", {}, {"timeout": 5.0}) == GOOD


@pytest.mark.requirement("B-15")
async def test_cookies_are_sent_back_while_they_are_few_and_small() -> None:
    """A load balancer finds a session by one; a server that sets a hundred must not swell every request."""

    async def act(visit: Visit) -> None:
        more = "\r\nSet-Cookie: ".join(f"c{number}={'x' * 1_000}; Path=/" for number in range(100))
        await visit.result(GOOD, Set_Cookie=f"sticky=node-7; Path=/\r\nSet-Cookie: {more}")

    async with peer(act) as there, wire(config_for(there.url())) as dispatcher:
        for _ in range(3):
            await dispatcher.send_raw_request("ping", {}, {"timeout": 5.0})
        cookies = there.asked[-1].headers["cookie"]
    assert "sticky=node-7" in cookies
    assert len(cookies) < 5_000
