"""The dashboard behind the gateway's own walls: both let through what is right, and neither undoes the other."""

import httpx2
import pytest
from starlette.responses import PlainTextResponse

from squidbot.adapters.schemas.checker import JSONSchemaCheck
from squidbot.gateway.app import GatewayParts, create_app
from squidbot.gateway.auth import Present
from squidbot.gateway.dashboard.app import HEADERS
from tests.fixtures.window import Window, served
from tests.gateway.dashboard.reading import csrf_of, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-04")]


async def test_people_sign_in_look_and_change_through_the_whole_gateway(gateway: Window) -> None:
    """Two walls that each set headers and look at origins could shut out everybody."""
    app = create_app(
        GatewayParts(
            desk=gateway.desk,
            admission=gateway.admission,
            recorder=gateway.door.recorder,
            present=Present(gateway.admission),
            schemas=JSONSchemaCheck(),
            mcp=PlainTextResponse("mcp"),
            dashboard=gateway.dashboard,
            exposition=lambda: (b"", "text/plain"),
            ready=lambda: True,
            session=gateway.dashboard.who,
        )
    )
    async with served(app, gateway.dashboard) as url:
        same = {"Origin": url, "Sec-Fetch-Site": "same-origin"}
        async with httpx2.AsyncClient(base_url=url, headers=same) as browser:
            assert (await browser.get("/api/v1/status")).status_code == 401
            answer = await browser.post("/sign-in", data={"token": gateway.admin})
            assert answer.status_code == 303
            page = await browser.get("/roles")
            assert {name: page.headers[name] for name in HEADERS} == HEADERS
            form = {"role": "qa_tester", "server": "plain", "tool": "echo", "change": "grant"}
            answer = await browser.post("/grants", data={"csrf": csrf_of(page.text), **form})
            assert answer.status_code == 303
            assert "is granted to 'qa_tester'" in text_of((await browser.get("/roles")).text)
            assert (await browser.get("/api/v1/status")).status_code == 200
            assert (await browser.get("/mcp")).status_code == 401
            evil = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
            answer = await browser.post("/grants", data={"csrf": csrf_of(page.text), **form}, headers=evil)
            assert answer.status_code == 403
            assert (await browser.get("/", headers={"Host": "evil.example"})).status_code == 421
