"""Streamable HTTP as the settings have it."""

import asyncio
from pathlib import Path

import anyio
import pytest

from squidbot.adapters.mcp import network
from squidbot.adapters.mcp.channel import Bounds
from squidbot.adapters.mcp.http_outcome import failure_of
from squidbot.adapters.mcp.transport import Opening
from squidbot.adapters.mcp.transports.http import open_http
from squidbot.core.domain.errors import MCPConnectionError
from tests.adapters.mcp.certificates import Authority
from tests.adapters.mcp.http_peer import Visit, config_for, failure, peer, wire

pytestmark = pytest.mark.anyio


async def works(visit: Visit) -> None:
    if visit.asked.method == "POST" and "id" in visit.asked.message:
        await visit.result({"fine": True}, Mcp_Session_Id="s1")
    else:
        await visit.reply(202)


@pytest.mark.requirement("B-04")
async def test_url_headers_and_userinfo_reach_the_server() -> None:
    """They are all there is to tell a server who asks."""
    async with peer(works) as there:
        url = there.url("/deep/path?q=1").replace("127.0.0.1", "me:secret@127.0.0.1")
        async with wire(config_for(url, headers={"X-Team": "squid"})) as dispatcher:
            await dispatcher.send_raw_request("initialize", {})
        asked = there.asked[0]
        assert asked.path == "/deep/path?q=1"
        assert asked.headers["x-team"] == "squid"
        assert asked.headers["authorization"].startswith("Basic ")


@pytest.mark.requirement("B-04")
@pytest.mark.parametrize("terminate", [True, False])
async def test_a_session_is_ended_if_the_settings_say_so(terminate: bool) -> None:
    """Some servers keep a session for others to take up."""
    async with peer(works) as there:
        async with wire(config_for(there.url(), terminate_on_close=terminate)) as dispatcher:
            await dispatcher.send_raw_request("initialize", {})
        assert ("DELETE" in there.methods()) == terminate


@pytest.mark.requirement("B-09")
async def test_64_calls_are_on_their_way_at_once() -> None:
    """A server that answers none of them before it has them all shows it."""
    waiting: list[Visit] = []
    everybody = anyio.Event()

    async def act(visit: Visit) -> None:
        waiting.append(visit)
        if len(waiting) == 64:
            everybody.set()
        await everybody.wait()
        await visit.result({})

    async with (
        peer(act) as there,
        wire(config_for(there.url())) as dispatcher,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(64):
            tasks.start_soon(dispatcher.send_raw_request, "tools/call", None)
    assert len(waiting) == 64


@pytest.mark.requirement("B-04")
async def test_silence_past_sse_read_timeout_fails_the_call() -> None:
    """It is the one setting for how long a server may say nothing."""

    async def hang(visit: Visit) -> None:
        await visit.until_hung_up()

    async with peer(hang) as there, wire(config_for(there.url(), sse_read_timeout=0.3)) as dispatcher:
        assert "no answer from" in (await failure(dispatcher)).error.message


@pytest.mark.parametrize("headers", [{"X": "schön"}, {"X": "\N{SNOWMAN}"}])
async def test_a_header_that_cannot_be_sent_is_an_error_of_the_settings(headers: dict[str, str]) -> None:
    """A secret that was pasted with a stray character must not show up as a traceback, nor be shown."""
    config = config_for("http://127.0.0.1:1/").model_copy(update={"headers": headers})
    with pytest.raises(MCPConnectionError, match="cannot carry") as caught:
        async with open_http(config, Opening(Bounds())):
            pass
    assert caught.value.permanent
    assert headers["X"] not in str(caught.value)


async def test_a_url_that_is_none_is_an_error_of_the_settings() -> None:
    """Whoever skips the settings' own check still gets a clear word."""
    config = config_for("http://127.0.0.1:1/").model_copy(update={"url": "http://[::"})
    with pytest.raises(MCPConnectionError, match="no valid url"):
        async with open_http(config, Opening(Bounds())):
            pass


async def test_a_trusted_certificate_is_accepted_and_an_unknown_or_expired_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TLS is never weakened, and never given up for plain text."""
    authority = Authority(tmp_path)
    good, expired = authority.server(), authority.server(expired=True)
    async with peer(works, tls=good) as there, wire(config_for(there.url())) as dispatcher:
        assert "is not trusted" in (await failure(dispatcher)).error.message
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    network.tls.cache_clear()
    try:
        async with peer(works, tls=good) as there, wire(config_for(there.url())) as dispatcher:
            assert await dispatcher.send_raw_request("ping", {}) == {"fine": True}
        async with peer(works, tls=expired) as there, wire(config_for(there.url())) as dispatcher:
            assert "expired" in (await failure(dispatcher)).error.message
    finally:
        network.tls.cache_clear()


async def test_tls_to_a_plain_port_is_named_and_plain_text_is_not_tried() -> None:
    """A fallback would send the token in the open."""
    heard: list[bytes] = []

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(4096))
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with wire(config_for(f"https://127.0.0.1:{port}/", headers={"X-Token": "secret"})) as dispatcher:
            error = await failure(dispatcher)
    assert "no TLS with" in error.error.message
    assert failure_of(error.error.data) is not None
    assert len(heard) == 1
    assert b"secret" not in heard[0]
