"""`squidbot resources`: what resources the servers offer, and reading one."""

from collections.abc import Sequence

import click

from squidbot.cli.errors import CommandError
from squidbot.cli.grammar import Group, ServerName, role_option
from squidbot.cli.invocation import Invocation
from squidbot.cli.lookup import unknown
from squidbot.cli.results import Answers
from squidbot.core.domain.content import Content
from squidbot.core.domain.errors import MCPRequestRefused
from squidbot.core.domain.prompts import ResourceDefinition
from squidbot.core.domain.shapes import content_json, resource_json

_UNKNOWN = (-32002, -32602)
"""How servers say that they have no such resource, of old and now: the address is all that they were given."""


@click.group(cls=Group, example="squidbot resources list")
def resources() -> None:
    """List and read resources."""


@resources.command("list", example="squidbot resources list --server everything")
@click.option("--server", type=ServerName(), metavar="NAME", help="Only the resources of this server.")
@role_option
@click.pass_obj
def list_resources(call: Invocation, server: str | None, role: str | None) -> None:
    """List the resources of all servers; {…} in an address stands for a family of them."""
    servers = None if server is None else [call.known_server(server)]

    async def ask() -> list[ResourceDefinition]:
        async with call.door(servers, only_looks=call.caller(role).is_operator) as door:
            return door.resources(await call.known_role(door, role), server)

    found = call.run(ask)
    if call.json:
        call.output.document([resource_json(resource) for resource in found])
    elif found:
        rows = [(item.uri, item.server, item.mime_type or "", item.description or item.name) for item in found]
        call.output.table(("uri", "server", "type", "description"), rows)
    else:
        call.output.note("No server offers a resource.")


@resources.command("read", example="squidbot resources read demo://resource/static/document/features.md")
@click.argument("uri")
@click.option("--server", type=ServerName(), metavar="NAME", help="The server that has it, where that is not clear.")
@role_option
@click.pass_obj
def read_resource(call: Invocation, uri: str, server: str | None, role: str | None) -> None:
    """Read a resource."""
    servers = None if server is None else [call.known_server(server)]

    async def ask() -> tuple[str, tuple[Content, ...]]:
        async with call.door(servers) as door:
            caller = await call.known_role(door, role)
            owner = server or _owner(uri, door.source.get_resources())
            with call.output.waiting(f"Asking {owner!r}…"):
                try:
                    return owner, (await door.read_resource(caller, owner, uri)).content
                except MCPRequestRefused as error:
                    if (error.error or {}).get("code") in _UNKNOWN:
                        raise CommandError(str(error), code="unknown_resource", hint=error.hint) from None
                    raise

    owner, content = call.run(ask)
    if call.json:
        call.output.document({"server": owner, "uri": uri, "content": [content_json(block) for block in content]})
    else:
        Answers(call.output, folder=call.container.state() / "results", name=owner).show(content)


def _owner(uri: str, known: Sequence[ResourceDefinition]) -> str:
    """The one server whose resource, else whose family of resources, has this address."""
    exact = {item.server for item in known if item.uri == uri and not item.is_template}
    family = {item.server for item in known if item.is_template and uri.startswith(item.uri.partition("{")[0])}
    owners = sorted(exact or family)
    if len(owners) == 1:
        return owners[0]
    if owners:
        raise CommandError(
            f"{len(owners)} servers have a resource {uri!r}",
            code="unknown_resource",
            hint=f"Say which with --server: {', '.join(owners)}.",
        )
    raise unknown(uri, [item.uri for item in known], kind="resource")
