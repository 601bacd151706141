"""Takes the pictures of the dashboard: real calls in the practice world, on a clock on which an hour passes in seconds.

python -m docs.images.screens [FOLDER]     every page, light, dark and on a phone
python -m docs.images.screens --keep       the same, and those that docs/ shows are kept there
"""

import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
from playwright.async_api import Browser, Page

from squidbot.cli.practice_world import practice_settings, practice_world
from squidbot.cli.scenes import SCENES
from squidbot.config.schema import Settings
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.errors import SquidbotError
from squidbot.core.services.door import AgentMCPService
from tests.browser.chromium import chromium
from tests.fixtures.window import SETUP, Window, settings_of, window

_CALLS = 260
_HOUR = 3_500.0
_KEPT = {("overview", "light"), ("overview", "phone"), ("roles", "light"), ("calls", "dark"), ("tool", "light")}
_PEOPLE = ("ada", "alan", "edsger", "barbara", "ci-runner")


class TurnedClock:
    """Satisfies `Clock`: the date can be turned back."""

    monotonic = staticmethod(time.monotonic)

    def __init__(self) -> None:
        self.back = _HOUR

    def time(self) -> float:
        return time.time() - self.back

    def timestamp(self) -> str:
        return f"{datetime.fromtimestamp(self.time(), UTC).isoformat(timespec='microseconds')[:-6]}Z"


async def main() -> None:
    """Fill a gateway with an hour of work, and photograph all of it."""
    given = [word for word in sys.argv[1:] if word != "--keep"]
    folder = Path(given[0]) if given else Path(tempfile.mkdtemp(prefix="screens-"))
    folder.mkdir(parents=True, exist_ok=True)
    random.seed(7)
    clock = TurnedClock()
    with tempfile.TemporaryDirectory() as home, practice_world(Path(home, "world")) as directions:
        async with window(_settings(directions), clock=clock, state=Path(home, "state")) as gateway:
            await _work(gateway, clock, directions)
            async with chromium() as browser:
                await _photograph(browser, gateway, folder)
    print(folder)


def _settings(directions: Mapping[str, Any]) -> Settings:
    practice = practice_settings(Settings(), directions)
    servers: dict[str, Any] = {
        name: entry.model_dump(exclude_unset=True, exclude={"name"}) for name, entry in practice.mcp.servers.items()
    }
    servers["deploys"] = {"command": "deploy-mcp", "args": ["--region", "eu"], "max_retries": 1}
    servers["metrics"] = {"url": "https://metrics.example.invalid/mcp", "enabled": False}
    writers = {role: {"tools": {"filesystem": ["*"]}} for role in ("backend_developer", "ai_engineer")}
    careful = {"tools": {"filesystem": ["read_*", {"tool": "write_file", "when": {"path": ["web/*"]}}]}}
    return settings_of(servers, roles={**writers, "frontend_developer": careful})


async def _work(gateway: Window, clock: TurnedClock, directions: Mapping[str, Any]) -> None:
    """The story, among many smaller calls, spread over an hour."""
    members = {}
    for name, role in zip(
        _PEOPLE, ("backend_developer", "tech_lead", "qa_tester", "project_manager", "devops_engineer"), strict=True
    ):
        members[role] = (
            await gateway.admission.create(SETUP, role, name=name, expires=clock.time() + 90 * 86_400)
        ).record
    old = await gateway.admission.create(SETUP, "designer", name="contractor")
    await gateway.admission.revoke(SETUP, old.record.id)
    repository, project = directions["github_repository"], directions["jira_project"]
    facts: dict[str, Any] = {"repository": repository, "project": project}
    scenes = list(SCENES)
    small = _small_calls(repository, project)
    for number in range(_CALLS):
        share = number / _CALLS
        clock.back = _HOUR * (1 - share) ** 1.05 + random.random() * 4
        role, server, tool, arguments = random.choice(small)
        await _call(gateway.door, role, members, server, tool, arguments)
        if number % 17 == 9 and scenes:
            scene = scenes.pop(0)
            found = await _call(gateway.door, scene.role, members, *scene.tool, scene.arguments(facts))
            facts |= scene.learn(found or {})
            await _call(gateway.door, "designer", members, *scene.tool, scene.arguments(facts))
    clock.back = 0.0
    admin = await gateway.admission.admit(gateway.admin)
    assert admin is not None
    await gateway.desk.change_grant(
        admin, role="solution_architect", server="git", tool="git_log", enabled=True, origin="dashboard"
    )
    await gateway.desk.change_grant(
        admin, role="ai_engineer", server="git", tool="git_push", enabled=False, origin="dashboard"
    )


def _small_calls(repository: str, project: str) -> list[tuple[str, str, str, dict[str, Any]]]:
    here = {"repository": repository}
    return [
        ("backend_developer", "git", "git_status", {}),
        ("backend_developer", "git", "git_status", {}),
        ("frontend_developer", "git", "git_log", {"limit": 5}),
        ("tech_lead", "git", "git_diff", {}),
        ("backend_developer", "github", "search_code", {**here, "query": "order"}),
        ("tech_lead", "github", "get_repository", here),
        ("qa_tester", "github", "list_issues", here),
        ("qa_tester", "github", "list_issues", here),
        ("qa_tester", "github", "get_issue", {**here, "number": 1}),
        ("qa_tester", "github", "get_issue", {**here, "number": 9_999}),
        ("project_manager", "jira", "search_tickets", {"project": project}),
        ("project_manager", "jira", "get_sprint", {"project": project}),
        ("solution_architect", "jira", "get_ticket", {"ticket": f"{project}-1"}),
        ("devops_engineer", "github", "search_code", {**here, "query": "deploy"}),
        ("devops_engineer", "git", "git_branch", {}),
        ("ai_engineer", "filesystem", "list_directory", {"path": "."}),
        ("designer", "github", "merge_pull_request", {**here, "number": 1}),
    ]


async def _call(
    door: AgentMCPService, role: str, members: Mapping[str, Any], server: str, tool: str, arguments: Mapping[str, Any]
) -> dict[str, Any] | None:
    member = members[role].member if role in members else None
    with suppress(SquidbotError):
        result = await door.execute_tool(Caller(role, member=member, origin="mcp"), server, tool, arguments)
        return result.structured if isinstance(result.structured, dict) else None
    return None


async def _photograph(browser: Browser, gateway: Window, folder: Path) -> None:
    for name, width, height, colours in (
        ("light", 1280, 800, "light"),
        ("dark", 1280, 800, "dark"),
        ("phone", 390, 844, "light"),
    ):
        async with _page(browser, width=width, height=height, colours=colours) as page:
            await page.goto(f"{gateway.url}/sign-in")
            await page.screenshot(path=folder / f"sign-in-{name}.png")
            await page.fill("#token", gateway.admin)
            await page.click("button.main")
            await page.wait_for_selector("h1:has-text('Overview')")
            await _pages(page, gateway, folder, name)


async def _pages(page: Page, gateway: Window, folder: Path, name: str) -> None:
    async def take(what: str, *, full: bool = True) -> None:
        await page.screenshot(path=folder / f"{what}-{name}.png", full_page=full)
        if (what, name) in _KEPT and "--keep" in sys.argv:
            await page.evaluate("scrollTo(0, 0)")
            await page.screenshot(path=Path(__file__).with_name(f"dashboard-{what}-{name}.png"))

    for path, what in (
        ("/", "overview"),
        ("/servers", "servers"),
        ("/tools", "tools"),
        ("/roles", "roles"),
        ("/calls", "calls"),
        ("/alerts", "alerts"),
        ("/tokens", "tokens"),
    ):
        await page.goto(gateway.url + path)
        await take(what)
    await page.goto(gateway.url + "/tool?server=git&tool=git_log")
    await page.select_option("#as", "backend_developer")
    await page.click("#try summary")
    await page.fill("[name='arg.limit']", "3")
    await page.click("text=Call it")
    await page.wait_for_selector("#result")
    await take("tool")
    await page.goto(gateway.url + "/calls?outcome=tool_error")
    await page.click("tbody tr td a")
    await page.wait_for_selector("#facts-head")
    await take("call")
    await page.goto(gateway.url + "/roles?server=filesystem")
    await page.click(".cell.conditional >> nth=-1")
    await page.wait_for_selector("dialog[open] [data-explanation]")
    await take("explain", full=False)
    await page.goto(gateway.url + "/calls")
    await page.click("text=Verify the record")
    await page.wait_for_selector(".message")
    await take("verify", full=False)
    await page.goto(gateway.url + "/tokens")
    await page.fill("#name", "margaret")
    await page.click("text=Make the token")
    await page.wait_for_selector(".secret")
    await take("token-made", full=False)


@asynccontextmanager
async def _page(browser: Browser, *, width: int, height: int, colours: Any) -> AsyncIterator[Page]:
    context = await browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=colours, locale="en-GB", timezone_id="Europe/Berlin"
    )
    try:
        yield await context.new_page()
    finally:
        await context.close()


if __name__ == "__main__":
    anyio.run(main)
