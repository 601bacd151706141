"""`squidbot tokens`: who may come in over HTTP; each token is one member in one role, shown once."""

from typing import TYPE_CHECKING

import click

from squidbot.cli.errors import CommandError
from squidbot.cli.grammar import Group, RoleName
from squidbot.cli.invocation import Invocation
from squidbot.core.domain.callers import OPERATOR
from squidbot.core.domain.members import NewToken, TokenRecord
from squidbot.core.domain.shapes import new_token_json, token_json
from squidbot.core.domain.sign_in import span

if TYPE_CHECKING:
    from squidbot.core.services.admission import Admission


@click.group(cls=Group, example="squidbot tokens create --role backend_developer --name Ada --expires 30d")
def tokens() -> None:
    """Make, list and take back the tokens that clients and people sign in with."""


@tokens.command("create", example="squidbot tokens create --role backend_developer --name Ada --expires 30d")
@click.option(
    "--role", type=RoleName(), required=True, metavar="ROLE", help="A role, or the right 'admin' or 'auditor'."
)
@click.option("--name", required=True, help="Who will use it: a member of the team, or a machine.")
@click.option("--expires", metavar="TIME", help="How long it is good: 12h, 30d, 1y; else until it is revoked.")
@click.pass_obj
def create(call: Invocation, role: str, name: str, expires: str | None) -> None:
    """Make a token. It is shown now and never again; a running gateway knows it at once."""
    call.says_what_is_wrong()
    seconds = None if expires is None else span(expires)
    if expires is not None and seconds is None:
        hint = "Give 90m, 12h, 30d, 2w or 1y."
        raise CommandError(f"{expires!r} is no length of time", code="usage", hint=hint)

    async def ask() -> NewToken:
        until = None if seconds is None else call.container.clock().time() + seconds
        async with call.store():
            return await _admission(call).create(call.caller(OPERATOR), role, name=name, expires=until)

    made = call.run(ask)
    if call.json:
        call.output.document(new_token_json(made))
        return
    # As it is: cleaning would take out what it is there for.
    call.output.write(made.token)
    record = made.record
    call.output.note(f"{name} is {role!r} with it, {_until(record)}. It is not shown again; its id is {record.id}.")
    if record.role is not None:
        call.output.note(f"Next: squidbot connect claude-code --role {role}, or any MCP client at the gateway's /mcp,")
        call.output.note("      with the header 'Authorization: Bearer TOKEN'.")
    else:
        call.output.note("Next: sign in with it at the gateway's dashboard, or use it with the HTTP API.")


@tokens.command("list", example="squidbot tokens list")
@click.pass_obj
def list_tokens(call: Invocation) -> None:
    """List the tokens: whose, for what, until when; never the tokens themselves."""
    call.says_what_is_wrong()

    async def ask() -> list[TokenRecord]:
        async with call.store():
            return await _admission(call).list()

    found = call.run(ask)
    if call.json:
        call.output.document([token_json(token) for token in found])
    elif found:
        rows = [
            (token.id, token.name, token.standing, token.created[:19].replace("T", " "), _until(token))
            for token in found
        ]
        call.output.table(("id", "name", "role", "made", "good"), rows)
    else:
        call.output.note("No tokens. 'squidbot tokens create --role ROLE --name NAME' makes one.")


@tokens.command("revoke", example="squidbot tokens revoke 0193a1b2c3d4")
@click.argument("token_id", metavar="ID")
@click.pass_obj
def revoke(call: Invocation, token_id: str) -> None:
    """Take a token back: a running gateway lets nobody in with it any more."""
    call.says_what_is_wrong()

    async def ask() -> TokenRecord:
        async with call.store():
            return await _admission(call).revoke(call.caller(OPERATOR), token_id)

    gone = call.run(ask)
    if call.json:
        call.output.document(token_json(gone))
    else:
        call.output.write(call.output.clean(f"The token {gone.id} of {gone.name} ({gone.standing}) is revoked."))


def _admission(call: Invocation) -> "Admission":
    return call.container.admission()


def _until(token: TokenRecord) -> str:
    if token.revoked:
        return "revoked"
    expires = token_json(token)["expires"]
    return "until it is revoked" if expires is None else f"until {expires[:16].replace('T', ' ')} UTC"
