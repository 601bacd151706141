"""`squidbot connect`: the gateway in the configuration of an MCP client, with a token of its own."""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from squidbot.cli.binding import address_at
from squidbot.cli.grammar import Command, RoleName
from squidbot.cli.invocation import Invocation
from squidbot.core.domain.errors import ConfigError

if TYPE_CHECKING:
    from squidbot.config.clients import ClientName

_CLIENTS = ("claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini")


@click.command(
    cls=Command,
    example="squidbot connect claude-code --role backend_developer --write\nsquidbot connect cursor --role designer",
)
@click.argument("client", type=click.Choice(_CLIENTS))
@click.option("--role", type=RoleName(), required=True, metavar="ROLE", help="In which role the client works.")
@click.option("--write", is_flag=True, help="Put it into the client's own file, which keeps all else.")
@click.pass_obj
def connect(call: Invocation, client: "ClientName", *, role: str, write: bool) -> None:
    """Print or write what an MCP client needs to use the gateway, with a freshly made token."""
    from squidbot.config import clients

    call.says_what_is_wrong()
    path = clients.file_of(client)
    made: dict[str, str] = {}
    if clients.needs_token(client):
        made = call.run(lambda: call.new_token(role, name=client))
    else:
        call.run(lambda: _checked(call, role))
    entry = clients.entry_of(client, _way(call, role, made.get("token")))
    if write:
        try:
            clients.write(client, path, entry)
        except ConfigError:
            if made:  # nobody will ever have it
                call.run(lambda: call.revoke_tokens([made["id"]]))
            raise
    if call.json:
        document: dict[str, Any] = {"client": client, "role": role, "file": str(path), "written": write}
        # Written, the token is in the file and nowhere else.
        call.output.document({**document, "token_id": made.get("id"), "entry": None if write else entry})
    elif write:
        call.output.write(f"Wrote squidbot into {path}, as role {role!r}.")
    else:
        call.output.write(clients.snippet(client, entry))
        call.output.note(f"This belongs in {path}; --write puts it there.")
    if made:
        call.output.note(
            f"It holds the token {made['id']}: whoever reads it is {role!r}. "
            f"Keep it out of version control; 'squidbot tokens revoke {made['id']}' ends it."
        )


async def _checked(call: Invocation, role: str) -> None:
    async with call.store():
        await call.check_role(role)


def _way(call: Invocation, role: str, token: str | None) -> "Any":
    from squidbot.config.clients import Way
    from squidbot.config.running import running_gateway

    gateway = call.settings.gateway
    running = running_gateway(call.container.state())
    url = running.url if running is not None else address_at(gateway.host, gateway.port)
    command = [_program(), *(["--config", str(Path(call.config).absolute())] if call.config else [])]
    home = os.environ.get("SQUIDBOT_HOME")
    env = {"SQUIDBOT_HOME": str(Path(home).absolute())} if home else {}
    return Way(url=f"{url}/mcp", token=token, command=[*command, "serve", "--role", role], env=env)


def _program() -> str:
    """How another program starts squidbot, wherever it stands."""
    beside = Path(sys.executable).with_name("squidbot")
    return str(beside) if beside.exists() else shutil.which("squidbot") or "squidbot"
