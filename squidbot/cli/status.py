"""`squidbot status`: how the running gateway is, in its own words."""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import click

from squidbot.cli.errors import CommandError
from squidbot.cli.exits import UNAVAILABLE
from squidbot.cli.grammar import Command
from squidbot.cli.invocation import Invocation

_PATIENCE = 10.0


@click.command(cls=Command, example="squidbot status --json")
@click.pass_obj
def status(call: Invocation) -> None:
    """Ask the running gateway how it and its servers are."""
    from squidbot.config.running import running_gateway
    from squidbot.config.state import state_folder

    state = state_folder()
    running = running_gateway(state)
    if running is None:
        raise CommandError(
            f"no gateway runs on the state folder {str(state)!r}",
            code="unavailable",
            exit_code=UNAVAILABLE,
            hint="'squidbot gateway' starts one.",
        )
    token = _admin_token(state / "admin-token")
    overview = ask(running.url, "/api/v1/status", token)
    servers = ask(running.url, "/api/v1/servers", token)
    settings = ask(running.url, "/api/v1/settings", token)
    if call.json:
        about = {"url": running.url, "pid": running.pid, **overview}
        call.output.document({**about, "settings": settings, "servers": servers})
        return
    call.output.heading("squidbot gateway", beside=f"{running.url} (process {running.pid})")
    rows = [[str(server.get(key) if server.get(key) is not None else "-") for key in _COLUMNS] for server in servers]
    if rows:
        call.output.table(_COLUMNS, rows)
    if not settings.get("ok", True):
        call.output.note("The settings file was changed and cannot be used; the old settings stay:")
        for problem in settings.get("problems") or ():
            call.output.note(f"  {problem}")
    for server in servers:
        if server.get("error"):
            call.output.note(f"{server['name']}: {server['error']}")


_COLUMNS = ("name", "transport", "state", "tools", "protocol")


def ask(url: str, path: str, token: str) -> Any:
    """What the gateway answers. Raises CommandError."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_PATIENCE)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}", "Accept": "application/json"})
        response = connection.getresponse()
        document = json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise CommandError(
            f"the gateway at {url} does not answer: {error}", code="unavailable", exit_code=UNAVAILABLE
        ) from None
    finally:
        connection.close()
    if response.status != http.client.OK:
        words = (document.get("error") or {}).get("message", "") if isinstance(document, dict) else ""
        raise CommandError(f"the gateway at {url} answered {response.status}: {words}", code="refused")
    return document


def _admin_token(path: Any) -> str:
    try:
        return str(path.read_text("utf-8")).strip()
    except OSError as error:
        raise CommandError(f"the admin token cannot be read: {error.strerror}: {path}", code="token") from None
