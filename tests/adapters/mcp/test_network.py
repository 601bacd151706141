"""What people read when a host cannot be reached, and where requests may go."""

import errno
import ssl

import httpx2
import pytest

from squidbot.adapters.mcp.http_plain import PlainHTTP
from squidbot.adapters.mcp.network import Refused, describe, origin_of, retry_after, status_text, unreachable, where


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://me:secret@example.com/path?token=1", "example.com:80"),
        ("https://example.com:8443/", "example.com:8443"),
        ("wss://[::1]/", "[::1]:443"),
    ],
)
def test_a_place_is_shown_without_what_may_be_secret(url: str, shown: str) -> None:
    """Userinfo, path and query often hold a token."""
    assert where(url) == shown


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7.0), (" 0 ", 0.0), ("", None), ("soon", None), ("-1", None), ("Fri, 01 Jan 1999 00:00:00 GMT", 0.0)],
)
def test_retry_after_is_read_in_both_forms_and_never_raises(value: str, seconds: float | None) -> None:
    """A server may write anything there."""
    assert retry_after({"retry-after": value}) == seconds


def test_a_status_of_a_servers_own_invention_is_its_number() -> None:
    """Proxies have plenty of them."""
    assert (status_text(404), status_text(599)) == ("HTTP 404 Not Found", "HTTP 599")


def _caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (httpx2.PoolTimeout("x"), "too many requests to here at once"),
        (httpx2.WriteTimeout("x"), "here stopped reading"),
        (httpx2.ConnectTimeout("x"), "no connection to here in time"),
        (ExceptionGroup("all", [ConnectionRefusedError(), OSError()]), "connection refused by here"),
        (BrokenPipeError(), "connection reset by here"),
        (Refused("not there"), "not there"),
        (
            OSError(errno.EMFILE, "Too many open files"),
            "no connection to here: this process has no more open files to give (see `ulimit -n`)",
        ),
        (
            _caused(httpx2.ConnectError("x"), OSError(errno.ENOMEM, "x")),
            "no connection to here: this machine has no more memory to give",
        ),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "no way to here: Network is unreachable"),
        (RuntimeError("internal detail"), "RuntimeError with here"),
    ],
)
def test_errors_of_libraries_become_plain_words(error: Exception, words: str) -> None:
    """Nobody should have to know what httpcore is."""
    assert describe(error, "here") == words


def test_hints_fit_the_cause() -> None:
    """A certificate is mended differently than a url."""
    untrusted = unreachable(ssl.SSLCertVerificationError(), server="s", place="here")
    broken = unreachable(ssl.SSLError(), server="s", place="here")
    gone = unreachable(ConnectionRefusedError(), server="s", place="here")
    full = unreachable(OSError(errno.EMFILE, "Too many open files"), server="s", place="here")
    assert "not at fault" in str(full.hint)
    assert [("SSL_CERT_FILE" in str(e.hint), "TLS" in str(e.hint)) for e in (untrusted, broken, gone)] == [
        (True, False),
        (False, True),
        (False, False),
    ]


@pytest.mark.anyio
async def test_a_public_host_that_no_settings_name_is_asked_at_its_checked_address() -> None:
    """A name that is looked up twice could mean two things."""
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200)

    plain = PlainHTTP(httpx2.MockTransport(answer), named=frozenset({origin_of("http://named.example")}))
    async with httpx2.AsyncClient(transport=plain, trust_env=False) as client:
        await client.get("https://93.184.216.34/token")
        await client.get("http://named.example/")
        await client.get("https://named.example/")
        with pytest.raises(Refused, match="has no TLS"):
            await client.get("http://93.184.216.34/token")
    assert [str(request.url) for request in seen] == [
        "https://93.184.216.34/token",
        "http://named.example/",
        "https://named.example/",
    ]
    assert seen[0].extensions["sni_hostname"] == "93.184.216.34"
    assert seen[0].headers["host"] == "93.184.216.34"
