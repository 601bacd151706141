"""The dashboard in a real browser: every page, live, by keyboard, dark, narrow, and without a script."""

import re

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect

from squidbot.core.domain.callers import Caller
from squidbot.core.domain.errors import ToolNotPermitted
from squidbot.core.domain.happenings import Happening
from tests.fixtures.window import SETUP, Window

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-04"), pytest.mark.deadline(120)]

WAYS = ("Overview", "Servers", "Tools", "Roles", "Calls", "Alerts", "Tokens")
PATHS = (
    "/",
    "/servers",
    "/tools",
    "/tool?server=world&tool=add",
    "/roles",
    "/explain?role=designer&server=plain&tool=echo",
    "/calls",
    "/alerts",
    "/tokens",
)
WIDTH = "document.documentElement.scrollWidth"


async def sign_in(page: Page, gateway: Window, token: str) -> None:
    await page.goto(f"{gateway.url}/sign-in")
    await page.get_by_label("Token").fill(token)
    await page.get_by_role("button", name="Sign in").click()


async def test_every_page_is_reached_by_its_link(page: Page, gateway: Window) -> None:
    """The navigation leads everywhere, and says where one is."""
    await gateway.call("backend_developer", "plain", "echo", {"text": "hi"})
    for way in WAYS:
        link = page.get_by_role("navigation", name="Pages").get_by_role("link", name=way)
        await link.click()
        await expect(page.get_by_role("heading", name=way, level=1)).to_be_visible()
        await expect(link).to_have_attribute("aria-current", "page")


async def test_a_call_appears_while_one_watches_and_not_while_paused(page: Page, gateway: Window) -> None:
    """A live list can be read only if it can be held."""
    await page.goto(f"{gateway.url}/calls")
    await expect(page.locator("[data-live-state]")).to_have_text("live")
    rows = page.locator("[data-call-rows] tr")
    first = await gateway.call("backend_developer", "plain", "echo", {"text": "<img src=x onerror=alert(1)>"})
    row = page.locator(f"[data-record='{first}']")
    await expect(row).to_contain_text("plain/echo")
    await expect(row).to_contain_text("<img src=x onerror=alert(1)>")
    await expect(rows.first).to_have_attribute("data-record", first)
    await page.get_by_role("button", name="Pause").click()
    second = await gateway.call("backend_developer", "plain", "echo", {"text": "later"})
    await expect(page.get_by_role("button", name="Go on (1 new)")).to_be_visible()
    await expect(page.locator(f"[data-record='{second}']")).to_have_count(0)
    await page.get_by_role("button", name="Go on").click()
    await expect(rows.first).to_have_attribute("data-record", second)
    await row.get_by_role("link").first.click()
    await expect(page.get_by_role("heading", name="The record")).to_be_visible()


@pytest.mark.requirement("G-08")
async def test_progress_is_seen_while_a_call_is_under_way(page: Page, gateway: Window) -> None:
    """A call that takes minutes should not look like one that hangs."""
    await page.goto(f"{gateway.url}/calls")
    await expect(page.locator("[data-live-state]")).to_have_text("live")
    data = {
        "record": "r1",
        "role": "x",
        "server": "world",
        "tool": "steps",
        "progress": 2,
        "total": 4,
        "message": "half",
    }
    gateway.hub.publish(Happening("progress", "world", data))
    row = page.locator("[data-record='r1']")
    await expect(row).to_contain_text("under way")
    await expect(row).to_contain_text("half")
    assert await row.locator("progress").evaluate("bar => bar.value / bar.max") == 0.5


async def test_pages_follow_what_happens(page: Page, gateway: Window) -> None:
    """The overview counts on, a server that went away is seen to be away, without a hand on the keyboard."""
    await expect(page.locator("[data-live-state]")).to_have_text("live")
    calls = page.locator(".tile", has_text="Calls").locator(".value")
    await expect(calls).to_have_text("0")
    await gateway.call("backend_developer", "plain", "echo", {"text": "hi"})
    await expect(calls).to_have_text("1")
    await page.goto(f"{gateway.url}/servers")
    await expect(page.locator("[data-live-state]")).to_have_text("live")
    plain = page.locator("#server-plain")
    await expect(plain).to_contain_text("ready")
    await gateway.door.source.disconnect("plain")
    await expect(plain.locator(".badge")).to_have_text("idle")


async def test_a_server_is_started_anew(page: Page, gateway: Window) -> None:
    """One button, one word about what came of it."""
    await page.goto(f"{gateway.url}/servers")
    await page.get_by_role("button", name="Restart plain").click()
    await expect(page.get_by_role("status")).to_contain_text("Server 'plain' was started anew; it is ready now.")


@pytest.mark.requirement("E-04")
async def test_a_grant_is_changed_in_the_grid(page: Page, gateway: Window) -> None:
    """From a click to a call that passes, and back."""
    tester = Caller("qa_tester", origin="mcp")
    await page.goto(f"{gateway.url}/roles?server=plain")
    cell = page.locator("a[title^='qa_tester, echo:']")
    await expect(cell).to_have_text("refused")
    await cell.click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("none: what is not granted is refused")
    await dialog.get_by_role("button", name="Grant").click()
    await expect(cell).to_have_text("allowed, changed while running")
    await expect(page.get_by_role("status")).to_contain_text("is granted to 'qa_tester', from now on.")
    assert not (await gateway.door.execute_tool(tester, "plain", "echo", {"text": "x"})).is_error
    await cell.click()
    await dialog.get_by_role("button", name="Revoke").click()
    await expect(cell).to_have_text("refused, changed while running")
    with pytest.raises(ToolNotPermitted):
        await gateway.door.execute_tool(tester, "plain", "echo", {"text": "x"})
    conditional = page.locator("a[title^='designer, echo:']")
    await conditional.click()
    await expect(dialog).to_contain_text("when text matches hello*")
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await gateway.door.change_grant(SETUP, role="designer", server="plain", tool="pid", enabled=True)
    await expect(page.locator("a[title^='designer, pid:']")).to_have_text("allowed, changed while running")


async def test_a_tool_is_tried_in_a_role(page: Page, gateway: Window) -> None:
    """The form follows the tool's parameters, and the answer is on the page."""
    await page.goto(f"{gateway.url}/tools")
    await page.get_by_label("Find").fill("adds two")
    await page.keyboard.press("Enter")
    await page.get_by_role("link", name="add", exact=True).click()
    await page.get_by_label("Role").select_option("backend_developer")
    await page.locator("[name='arg.a']").fill("40")
    await page.locator("[name='arg.b']").fill("2.5")
    await page.get_by_role("button", name="Call it").click()
    result = page.locator("#result")
    await expect(result).to_contain_text("42.5")
    await expect(result.locator(".badge")).to_have_text("ok")
    await result.get_by_role("link", name="its record").click()
    await expect(page.locator(".facts")).to_contain_text("Grace Hopper")
    await expect(page.locator(".facts")).to_contain_text("backend_developer")
    await page.goto(f"{gateway.url}/tool?server=plain&tool=echo")
    await page.get_by_label("Role").select_option(label="qa_tester (may not)")
    await page.locator("[name='arg.text']").fill("x")
    await page.get_by_role("button", name="Call it").click()
    await expect(page.locator("#result")).to_contain_text("may not use 'echo'")


async def test_calls_are_filtered_and_shown_older(page: Page, gateway: Window) -> None:
    """From a hundred records to the one that is looked for."""
    for number in range(55):
        await gateway.call("backend_developer", "plain", "echo", {"text": str(number)})
    await gateway.call("backend_developer", "plain", "pid", {})
    await page.goto(f"{gateway.url}/calls")
    await page.get_by_label("Kind").select_option("call")
    await page.get_by_role("link", name="Older").click()
    await expect(page.locator("[data-record]")).to_have_count(6)
    await page.get_by_role("link", name="Newest").click()
    await page.get_by_label("Tool").fill("pi*")
    await page.get_by_role("button", name="Show").click()
    await expect(page.locator("[data-record]")).to_have_count(1)
    await page.get_by_label("Outcome").select_option("timeout")
    await expect(page.get_by_text("No record fits.")).to_be_visible()
    await page.get_by_role("button", name="Verify the record").click()
    await expect(page.get_by_role("status")).to_contain_text("The record is whole")


async def test_a_token_is_made_shown_once_and_revoked(page: Page, gateway: Window) -> None:
    """The one moment at which a token is seen is hard to miss."""
    await page.goto(f"{gateway.url}/tokens")
    await page.get_by_label("Name of the member").fill("margaret")
    await page.get_by_label("Opens").select_option("qa_tester")
    await page.get_by_role("button", name="Make the token").click()
    token = await page.locator("#made-token").inner_text()
    who = await gateway.admission.admit(token)
    assert who is not None
    assert who.role == "qa_tester"
    await page.get_by_role("link", name="Done").click()
    await expect(page.locator("#made-token")).to_have_count(0)
    page.once("dialog", lambda dialog: dialog.accept())
    await page.get_by_role("button", name="Revoke the token of margaret").click()
    await expect(page.get_by_role("status")).to_contain_text("is revoked, from now on.")
    assert await gateway.admission.admit(token) is None


async def test_a_wrong_token_and_a_roles_token_do_not_open_the_door(context: BrowserContext, gateway: Window) -> None:
    """Whoever is turned away reads why, and what to use instead."""
    made = await gateway.admission.create(SETUP, "qa_tester", name="agent")
    page = await context.new_page()
    await sign_in(page, gateway, "nonsense")
    await expect(page.get_by_role("alert")).to_contain_text("This token is not good here.")
    await sign_in(page, gateway, made.token)
    await expect(page.get_by_role("alert")).to_contain_text("it opens /mcp for an agent, not the dashboard")


async def test_the_link_signs_in_by_itself_and_once(context: BrowserContext, browser: Browser, gateway: Window) -> None:
    """From the terminal to the overview in one click."""
    link = await gateway.dashboard.sign_in.link(gateway.url, gateway.admin)
    assert link is not None
    page = await context.new_page()
    await page.goto(link)
    await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    other = await (await browser.new_context()).new_page()
    await other.goto(link)
    await expect(other.get_by_role("alert")).to_contain_text("This link was used")


async def test_a_revoked_token_signs_an_open_page_out(context: BrowserContext, gateway: Window) -> None:
    """A page that is left open is a session too."""
    made = await gateway.admission.create(SETUP, "auditor", name="guest")
    page = await context.new_page()
    await sign_in(page, gateway, made.token)
    await expect(page.locator("[data-live-state]")).to_have_text("live")
    await gateway.admission.revoke(SETUP, made.record.id)
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


async def test_an_auditor_has_no_buttons_that_change(context: BrowserContext, gateway: Window) -> None:
    """What somebody may not do is not offered."""
    page = await context.new_page()
    await sign_in(page, gateway, gateway.auditor)
    await page.get_by_role("heading", name="Overview").wait_for()
    harmless = {"As the system", "Light", "Dark", "Sign out", "Verify the record", "Pause", "Show", "Close"}
    for path in PATHS:
        await page.goto(gateway.url + path)
        names = await page.get_by_role("button").all_inner_texts()
        labels = [await button.get_attribute("aria-label") for button in await page.get_by_role("button").all()]
        assert {label or name.strip() for label, name in zip(labels, names, strict=True)} <= harmless, path


async def test_dark_follows_the_system_and_can_be_chosen(page: Page, gateway: Window) -> None:
    """At night nobody wants a white wall."""

    async def brightness() -> int:
        colour = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in re.findall(r"\d+", colour)[:3])

    assert await brightness() > 600
    await page.emulate_media(color_scheme="dark")
    assert await brightness() < 150
    await page.get_by_role("button", name="Light").click()
    await expect(page.get_by_role("button", name="Light")).to_have_attribute("aria-pressed", "true")
    assert await brightness() > 600
    await page.emulate_media(color_scheme="light")
    async with page.expect_response("**/theme"):
        await page.get_by_role("button", name="Dark").click()
    assert await brightness() < 150
    await page.goto(f"{gateway.url}/tools")
    assert await brightness() < 150


async def test_no_page_is_wider_than_a_phone(page: Page, gateway: Window) -> None:
    """Wide things scroll in a box of their own; the page itself never sideways."""
    long = "a-very-long-word-without-a-break-" * 20
    record = await gateway.call("backend_developer", "plain", "echo", {"text": long})
    for path in (*PATHS, f"/call?id={record}", f"/calls?tool={long}"):
        await page.goto(gateway.url + path)
        for width in (360, 390, 768):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await page.evaluate(WIDTH) <= width, (path, width)
    await page.set_viewport_size({"width": 360, "height": 800})
    await page.get_by_role("button", name="Sign out").click()
    await page.get_by_role("heading", name="Sign in").wait_for()
    assert await page.evaluate(WIDTH) <= 360


async def test_everything_is_reached_by_keyboard(page: Page, gateway: Window) -> None:
    """Skip the navigation, move through the page, open a cell and close it, and always see where one is."""
    await page.goto(f"{gateway.url}/roles?server=plain")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("main")).to_be_focused()
    cell = page.locator("a[title^='project_manager, echo:']")
    for _ in range(40):
        await page.keyboard.press("Tab")
        outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", await page.evaluate("document.activeElement.outerHTML")
        if await cell.evaluate("cell => cell === document.activeElement"):
            break
    await expect(cell).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(cell).to_be_focused()


async def test_pages_have_what_readers_of_screens_need(page: Page, gateway: Window) -> None:
    """One heading, tables with captions and scopes, fields with labels, pictures with words."""
    await gateway.call("backend_developer", "plain", "echo", {"text": "hi"})
    missing = """() => [
      ...[...document.querySelectorAll('table')].filter(t => !t.caption || !t.caption.textContent.trim()).map(t => 'caption'),
      ...[...document.querySelectorAll('th:not([scope])')].map(t => 'scope of ' + t.textContent),
      ...[...document.querySelectorAll('input:not([type=hidden]), select, textarea')].filter(f => !f.labels.length).map(f => 'label of ' + f.name),
      ...[...document.querySelectorAll('button, a')].filter(b => !(b.getAttribute('aria-label') || b.textContent).trim()).map(b => 'name of ' + b.outerHTML),
      ...[...document.querySelectorAll('svg[role=img]')].filter(s => !s.querySelector('title') || !s.querySelector('desc')).map(s => 'words of a chart'),
      ...(document.querySelectorAll('h1').length === 1 ? [] : ['one h1']),
      ...[...document.querySelectorAll('[id]')].map(e => e.id).filter((id, at, ids) => ids.indexOf(id) !== at).map(id => 'twice ' + id),
    ]"""
    for path in PATHS:
        await page.goto(gateway.url + path)
        assert await page.evaluate(missing) == [], path


async def test_times_are_the_readers_own_with_the_exact_one_beside(page: Page, gateway: Window) -> None:
    """An incident is told in local time and proved in UTC."""
    record = await gateway.call("backend_developer", "plain", "echo", {"text": "hi"})
    kept = await gateway.store.get(record)
    assert kept is not None
    await page.goto(f"{gateway.url}/call?id={record}")
    time = page.locator(".facts time").first
    hour = (int(kept.timestamp[11:13]) + 9) % 24
    await expect(time).to_contain_text(f"{hour:02d}{kept.timestamp[13:19]}")
    await expect(time).to_have_attribute("title", f"{kept.timestamp[:10]} {kept.timestamp[11:26]} UTC")


async def test_everything_but_live_works_without_a_script(browser: Browser, gateway: Window) -> None:
    """A strict browser, or a broken script, does not lock anybody out."""
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await sign_in(page, gateway, gateway.admin)
    await page.get_by_role("heading", name="Overview").wait_for()
    await page.goto(f"{gateway.url}/roles?server=plain")
    await page.locator("a[title^='qa_tester, echo:']").click()
    await page.get_by_role("button", name="Grant").click()
    await expect(page.locator("a[title^='qa_tester, echo:']")).to_contain_text("allowed")
    await page.goto(f"{gateway.url}/tool?server=plain&tool=echo")
    await page.get_by_label("Role").select_option("qa_tester")
    await page.locator("[name='arg.text']").fill("without")
    await page.get_by_role("button", name="Call it").click()
    await expect(page.locator("#result")).to_contain_text("without")
    await page.get_by_role("button", name="Dark").click()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    link = await gateway.dashboard.sign_in.link(gateway.url, gateway.admin)
    assert link is not None
    await page.goto(link)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    await context.close()
