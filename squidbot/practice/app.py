"""The practice world as one ASGI application: the forge, the tracker twice (Cloud, Data Center), and a front page."""

import contextlib
from collections.abc import AsyncIterator

from anyio import to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from squidbot.practice.github import api as github
from squidbot.practice.jira import api as jira
from squidbot.practice.page import front_page
from squidbot.practice.world import World

_HOSTS = ["127.0.0.1", "localhost"]
"""A page elsewhere that gives its own name this machine's address is turned away."""


def build_app(world: World) -> Starlette:
    """The application; a world that is not open yet is opened with it, and closed after it."""

    @contextlib.asynccontextmanager
    async def opened(_app: Starlette) -> AsyncIterator[None]:
        with contextlib.nullcontext() if world.is_open else world:
            yield

    def page(site: str) -> str:
        with world.lock:
            return front_page(world, site)

    async def front(request: Request) -> Response:
        return HTMLResponse(await to_thread.run_sync(page, f"{request.url.scheme}://{request.url.netloc}"))

    async def issue(request: Request) -> Response:
        return RedirectResponse(f"/#issue-{request.path_params['number']}")

    async def ticket(request: Request) -> Response:
        return RedirectResponse(f"/#{request.path_params['key']}")

    forge = github.build(world)
    routes = [
        Route("/", front),
        Route("/{owner}/{repo}/issues/{number:int}", issue),
        Route("/{owner}/{repo}/pull/{number:int}", issue),
        Route("/jira/browse/{key}", ticket),
        Route("/jira-dc/browse/{key}", ticket),
        # Some clients take the address of an Enterprise server and add the path themselves.
        Mount("/github/api/v3", forge),
        Mount("/github", forge),
        Mount("/api/v3", forge),
        Mount("/jira-dc", jira.build(world, cloud=False)),
        Mount("/jira", jira.build(world, cloud=True)),
    ]
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=_HOSTS, www_redirect=False)
    return Starlette(routes=routes, lifespan=opened, middleware=[hosts])
