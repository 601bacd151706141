"""Who gets in, how long they stay, and what a browser must not be talked into."""

import httpx2
import pytest

from squidbot.core.domain.audit import RecordFilter
from squidbot.gateway.dashboard.sessions import COOKIE
from tests.fixtures.window import SETUP, Window
from tests.gateway.dashboard.reading import csrf_of, elements, text_of

pytestmark = pytest.mark.anyio

PAGES = ("/", "/servers", "/tools", "/tool", "/roles", "/explain", "/calls", "/call", "/alerts", "/tokens")
CHANGES = (
    "/servers/plain/restart",
    "/tool?server=plain&tool=echo",
    "/grants",
    "/calls/verify",
    "/tokens",
    "/tokens/abc/revoke",
    "/theme",
    "/sign-out",
)


@pytest.mark.requirement("G-04")
async def test_no_page_shows_anything_to_a_stranger(gateway: Window) -> None:
    """A token is required even on loopback: any page of any browser can reach it."""
    async with gateway.browser() as browser:
        for path in PAGES:
            answer = await browser.get(path)
            assert answer.status_code == 303, path
            assert answer.headers["location"].startswith("/sign-in")
            assert not answer.content
        assert (await browser.get("/events")).status_code == 401


async def test_no_stranger_changes_anything(gateway: Window) -> None:
    """A form without a session leads to the sign-in page."""
    async with gateway.browser() as browser:
        for path in CHANGES:
            answer = await browser.post(path, data={"csrf": "x"})
            assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in"), path


async def test_a_token_with_a_right_signs_in_and_the_cookie_is_kept_to_itself(gateway: Window) -> None:
    """No script can read the cookie, no other site can send it."""
    async with gateway.browser() as browser:
        answer = await browser.post("/sign-in", data={"token": f"  {gateway.admin}\n", "next": "/tools?q=echo"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/tools?q=echo")
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith(f"{COOKIE}=")
        for attribute in ("HttpOnly", "SameSite=strict", "Path=/"):
            assert attribute in cookie
        assert "Secure" not in cookie
        assert gateway.admin not in cookie
        page = await browser.get("/")
        assert page.status_code == 200
        assert "Grace Hopper" in text_of(page.text)
    kept = [record async for record in gateway.store.records(RecordFilter(kind="sign_in"))]
    assert [(record.role, record.outcome, record.origin) for record in kept] == [("admin", "ok", "dashboard")]


async def test_a_wrong_token_is_refused_and_recorded(gateway: Window) -> None:
    """Whoever guesses is told nothing, and seen."""
    wrong = gateway.admin[:-1] + ("0" if gateway.admin[-1] != "0" else "1")
    async with gateway.browser() as browser:
        answer = await browser.post("/sign-in", data={"token": wrong})
        assert answer.status_code == 403
        assert "This token is not good here." in text_of(answer.text)
        assert wrong not in answer.text
        assert COOKIE not in answer.headers.get("set-cookie", "")
    kept = [record async for record in gateway.store.records(RecordFilter(kind="sign_in"))]
    assert [record.outcome for record in kept] == ["refused"]


async def test_the_token_of_a_role_is_turned_away_with_the_reason(gateway: Window) -> None:
    """An agent's token that leaks must not open the window onto everybody's calls."""
    made = await gateway.admission.create(SETUP, "backend_developer", name="agent")
    async with gateway.browser() as browser:
        answer = await browser.post("/sign-in", data={"token": made.token})
        assert answer.status_code == 403
        assert "it opens /mcp for an agent, not the dashboard" in text_of(answer.text)


async def test_a_revoked_token_ends_its_sessions_at_once(gateway: Window) -> None:
    """A session is worth no more than its token."""
    made = await gateway.admission.create(SETUP, "auditor", name="guest")
    async with gateway.signed_in(made.token) as browser:
        assert (await browser.get("/")).status_code == 200
        await gateway.admission.revoke(SETUP, made.record.id)
        answer = await browser.get("/calls")
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/sign-in?next=")


async def test_signing_out_forgets_the_session(gateway: Window) -> None:
    """The next person at this browser starts from the door."""
    async with gateway.signed_in() as browser:
        page = await browser.get("/")
        answer = await browser.post("/sign-out", data={"csrf": csrf_of(page.text)})
        assert answer.headers["location"] == "/sign-in"
        assert (await browser.get("/")).status_code == 303


async def test_a_cookie_of_ones_own_making_is_none(gateway: Window) -> None:
    """What a browser carries is checked, whatever it is, and every character of it is sealed."""
    async with gateway.browser() as browser:
        for made_up in ("", "x", "a.b", "e30.e30", "ü.ü", "." * 5_000):
            answer = await browser.get("/", headers={b"Cookie": f"{COOKIE}={made_up}".encode()})
            assert answer.status_code == 303, made_up
    async with gateway.signed_in() as browser:
        cookie = browser.cookies[COOKIE]
        body, _, mark = cookie.partition(".")
        for forged in (f"{body[:-2]}AA.{mark}", f"{body}.{mark[:-2]}AA", f"{body}.", f".{mark}"):
            async with gateway.browser() as other:
                answer = await other.get("/", headers={"Cookie": f"{COOKIE}={forged}"})
                assert answer.status_code == 303


async def test_a_link_signs_in_once_and_looking_at_it_changes_nothing(gateway: Window) -> None:
    """Programs that look at links before people do must not use them up."""
    link = await gateway.dashboard.sign_in.link(gateway.url, gateway.admin)
    assert link is not None
    async with gateway.browser() as browser:
        for _ in range(2):
            page = await browser.get(link)
            assert page.status_code == 200
            assert "set-cookie" not in page.headers
        code = elements(page.text, "input", name="code")[0].attributes["value"]
        assert (await browser.post("/sign-in", data={"code": code})).headers["location"] == "/"
        assert (await browser.get("/")).status_code == 200
    async with gateway.browser() as second:
        answer = await second.post("/sign-in", data={"code": code})
        assert answer.status_code == 403
        assert "was used, or is older than five minutes" in text_of(answer.text)


async def test_a_link_is_made_over_http_only_for_a_token_with_a_right(gateway: Window) -> None:
    """Whoever has the token could sign in anyway; nobody else can."""
    role = await gateway.admission.create(SETUP, "backend_developer", name="agent")
    async with httpx2.AsyncClient(base_url=gateway.url) as program:
        made = await program.post("/sign-in/link", headers={"Authorization": f"Bearer {gateway.auditor}"})
        assert made.json()["link"].startswith(f"{gateway.url}/sign-in?code=")
        for header in ({}, {"Authorization": "Bearer nonsense"}, {"Authorization": f"Bearer {role.token}"}):
            assert (await program.post("/sign-in/link", headers=header)).status_code == 401
    kept = [record async for record in gateway.store.records(RecordFilter(kind="sign_in"))]
    assert [record.outcome for record in kept] == ["refused"] * 3


async def test_whoever_opens_a_page_without_being_signed_in_is_sent_to_sign_in_and_not_recorded(
    gateway: Window,
) -> None:
    """That is how everybody begins: nothing was refused."""
    async with gateway.browser() as browser:
        for path in ("/", "/calls", "/sign-in"):
            answer = await browser.get(path, follow_redirects=True)
            assert (answer.status_code, answer.url.path) == (200, "/sign-in")
    assert [record async for record in gateway.store.records(RecordFilter(kind="sign_in"))] == []


async def test_a_link_of_a_revoked_token_is_worth_nothing(gateway: Window) -> None:
    """Between making a link and using it, somebody may have thought better of it."""
    made = await gateway.admission.create(SETUP, "admin", name="gone")
    link = await gateway.dashboard.sign_in.link(gateway.url, made.token)
    assert link is not None
    await gateway.admission.revoke(SETUP, made.record.id)
    async with gateway.browser() as browser:
        answer = await browser.post("/sign-in", data={"code": link.partition("code=")[2]})
        assert answer.status_code == 403


async def test_signing_in_leads_nowhere_else(gateway: Window) -> None:
    """A link to the sign-in page must not be a link to somebody else's."""
    async with gateway.browser() as browser:
        for target in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:x", "", "/\n/x"):
            answer = await browser.post("/sign-in", data={"token": gateway.admin, "next": target})
            assert answer.headers["location"] == "/", target


FOREIGN = [
    {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://evil.example"},
    {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {},
]


async def test_a_form_of_another_site_is_refused_even_with_the_cookie_and_the_word(gateway: Window) -> None:
    """The browser says where a form came from; that is one of three walls against other sites."""
    async with gateway.signed_in() as browser:
        page = await browser.get("/")
        cookie = f"{COOKIE}={browser.cookies[COOKIE]}"
        data = {"csrf": csrf_of(page.text), "token": gateway.admin}
    for headers in FOREIGN:
        async with httpx2.AsyncClient(base_url=gateway.url, headers={**headers, "Cookie": cookie}) as other:
            for path in (*CHANGES, "/sign-in"):
                answer = await other.post(path, data=data)
                assert answer.status_code == 403, (headers, path)
                assert "was not sent from a page of this dashboard" in text_of(answer.text)


async def test_a_form_without_the_sessions_word_is_refused(gateway: Window) -> None:
    """The word is the session's own: another session's does not fit."""
    async with gateway.signed_in() as browser, gateway.signed_in() as other:
        foreign = csrf_of((await other.get("/")).text)
        for path in CHANGES:
            for word in ("", "x", foreign):
                answer = await browser.post(path, data={"csrf": word})
                assert answer.status_code == 403, path
                assert "is not from your session" in text_of(answer.text)


async def test_nothing_changes_by_looking(gateway: Window) -> None:
    """No state-changing GET: a picture's address or a link could be one."""
    async with gateway.signed_in() as browser:
        before = len([record async for record in gateway.store.records(RecordFilter())])
        for path in CHANGES:
            answer = await browser.get(path)
            assert answer.status_code == (200 if path in ("/tokens", "/tool?server=plain&tool=echo") else 405)
        assert len([record async for record in gateway.store.records(RecordFilter())]) == before


async def test_every_answer_keeps_the_page_to_itself(gateway: Window) -> None:
    """Nothing inline, nothing from elsewhere, no frame, nothing kept."""
    async with gateway.signed_in() as browser:
        for path in (*PAGES, "/sign-in", "/nowhere", "/events-none"):
            answer = await browser.get(path)
            policy = answer.headers["content-security-policy"]
            assert policy == (
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
                "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
            )
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["x-content-type-options"] == "nosniff"
            if answer.content:
                assert not elements(answer.text, "style")
                assert all(element.attributes.get("src") for element in elements(answer.text, "script"))
                assert not [e for e in elements(answer.text) if "style" in e.attributes]
                assert not [name for e in elements(answer.text) for name in e.attributes if name.startswith("on")]


async def test_files_are_kept_for_ever_under_their_own_content(gateway: Window) -> None:
    """A new version has a new address, so that no browser shows old colours on a new page."""
    async with gateway.signed_in() as browser:
        page = (await browser.get("/")).text
        paths = [element.attributes["href"] for element in elements(page, "link")]
        paths += [element.attributes["src"] for element in elements(page, "script")]
        assert len(paths) == 3
        for path in paths:
            answer = await browser.get(path)
            assert answer.status_code == 200
            assert "immutable" in answer.headers["cache-control"]
            assert (await browser.get(path.replace("/static/", "/static/0"))).status_code == 404
        assert (await browser.get("/static/0/..%2fapp.py")).status_code == 404
