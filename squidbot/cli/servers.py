"""`squidbot servers`: which servers there are, adding and removing them, and trying them."""

import asyncio
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from squidbot.cli.errors import CommandError
from squidbot.cli.exits import DONE, UNAVAILABLE
from squidbot.cli.grammar import Group, ServerName
from squidbot.cli.invocation import Invocation, unavailable
from squidbot.cli.lookup import unknown
from squidbot.core.domain.servers import ServerStatus
from squidbot.core.domain.shapes import status_json

_TRANSPORTS = ("stdio", "sse", "websocket", "http")


@click.group(cls=Group, example="squidbot servers list")
def servers() -> None:
    """List, add, remove, test and import MCP servers."""


@servers.command("list", example="squidbot servers list --json")
@click.pass_obj
def list_servers(call: Invocation) -> None:
    """List the servers of the settings, with what is known from the last time. Starts nothing."""
    client = call.container.client()
    client.recall()
    _show(call, client.statuses())


@servers.command("get", example="squidbot servers get filesystem")
@click.argument("name", type=ServerName())
@click.pass_obj
def get_server(call: Invocation, name: str) -> None:
    """Show how a server is defined. Secrets are not shown."""
    definition = call.container.mcp_config().servers[call.known_server(name)]
    document = {"name": name, "transport": definition.transport, **definition.shown()}
    if call.json:
        call.output.document(document)
    else:
        call.output.json_text(document)


@servers.command(
    "add",
    example="squidbot servers add time -- uvx mcp-server-time\n"
    "squidbot servers add docs --url https://example.com/mcp --header 'Authorization=Bearer ${DOCS_TOKEN}'",
)
@click.argument("name")
@click.option("--transport", type=click.Choice(_TRANSPORTS), help="Told by the command or the url if left out.")
@click.option("--url", metavar="URL", help="Where a remote server is.")
@click.option("--header", "headers", multiple=True, metavar="K=V", help="A header for a remote server.")
@click.option("--env", "env", multiple=True, metavar="K=V", help="A variable for a local server.")
@click.argument("command", nargs=-1, metavar="[-- COMMAND ARGS...]")
@click.pass_obj
def add_server(
    call: Invocation,
    name: str,
    *,
    transport: str | None,
    url: str | None,
    headers: tuple[str, ...],
    env: tuple[str, ...],
    command: tuple[str, ...],
) -> None:
    """Add a server to the settings file, by its command or its url."""
    if bool(command) == (url is not None):
        raise click.UsageError("A server has either a command, after --, or a --url.", click.get_current_context())
    entry: dict[str, Any] = {
        "transport": transport,
        "command": command[0] if command else None,
        "args": list(command[1:]),
        "url": url,
        "headers": _pairs(headers, "--header"),
        "env": _pairs(env, "--env"),
    }
    from squidbot.config.edit import add_server as write

    path = _settings_file(call)
    given = {key: value for key, value in entry.items() if value}
    call.record_change(name, "add", given)
    write(path, name, given)
    _say_written(call, {"name": name, "file": str(path)}, f"Added {name!r} to {path}.")
    _say_missing(call, path, [name])


@servers.command("remove", example="squidbot servers remove time")
@click.argument("name", type=ServerName())
@click.pass_obj
def remove_server(call: Invocation, name: str) -> None:
    """Remove a server from the settings file."""
    from squidbot.config.edit import remove_server as write

    path = _settings_file(call)
    names = _names_in(path)
    if name not in names:
        raise unknown(name, names, kind="server")
    call.record_change(name, "remove", {"file": str(path)})
    write(path, name)
    _say_written(call, {"name": name, "file": str(path)}, f"Removed {name!r} from {path}.")


@servers.command("test", example="squidbot servers test filesystem")
@click.argument("name", required=False, type=ServerName())
@click.pass_obj
def try_servers(call: Invocation, name: str | None) -> int:
    """Start a server, or all, and see whether it answers."""
    call.says_what_is_wrong()
    names = None if name is None else [call.known_server(name)]

    async def ask() -> list[ServerStatus]:
        async with call.container.client() as client:
            with call.output.waiting(f"Starting {repr(name) if name else 'all servers'}…"):
                await client.connect_all(names)
            return [status for status in client.statuses() if names is None or status.name in names]

    found = call.run(ask)
    _show(call, found)
    # One that is switched off is as it should be, unless it was asked for by name.
    fine = {"ready"} if name else {"ready", "disabled"}
    bad = [status for status in found if status.state not in fine]
    return UNAVAILABLE if bad else DONE


@servers.command("import", example="squidbot servers import ~/.cursor/mcp.json --dry-run")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Say what would be added, and write nothing.")
@click.pass_obj
def import_servers(call: Invocation, file: Path, *, dry_run: bool) -> None:
    """Take over the servers of another tool's file: Claude, Cursor, VS Code, agent.yaml."""
    from squidbot.config.edit import add_server as write
    from squidbot.config.imports import import_document
    from squidbot.config.load import read_document

    found = import_document(read_document(file.expanduser()))
    path = _settings_file(call)
    present = _names_in(path)
    added = [name for name in found.servers if name not in present]
    if not dry_run:
        for name in added:
            call.record_change(name, "import", {"file": str(file)})
            write(path, name, found.servers[name])
    skipped = [name for name in found.servers if name in present]
    if call.json:
        document = {"file": str(path), "added": added, "skipped": skipped, "notes": list(found.notes)}
        call.output.document({**document, "dry_run": dry_run})
        return
    for note in [*found.notes, *(f"{name!r} is there already, and was left as it is" for name in skipped)]:
        call.output.note(f"note: {note}")
    verb = "Would add" if dry_run else "Added"
    names = ", ".join(repr(name) for name in added) or "nothing"
    call.output.write(call.output.clean(f"{verb} {names} to {path}."))
    if added and not dry_run:
        _say_missing(call, path, added)


@servers.command("login", example="squidbot servers login docs")
@click.argument("name", type=ServerName())
@click.pass_obj
def login(call: Invocation, name: str) -> None:
    """Sign in to a remote server in the browser; the tokens are kept in the state folder."""
    call.known_server(name)

    async def sign_in(url: str) -> None:
        call.output.note(f"Open this address to sign in:\n{url}")
        if url.startswith(("https://", "http://")):  # the address is a server's word: nothing else is opened
            # In a thread: some browsers are waited for, and ours is the page that they are to see.
            await asyncio.to_thread(webbrowser.open, url)

    call.container.sign_in.override(sign_in)

    async def ask() -> ServerStatus:
        async with call.container.client() as client:
            await client.connect(name)
            return client.status(name)

    status = call.run(ask)
    if status.state != "ready":
        raise unavailable(status)
    _say_written(call, {"name": name, "signed_in": True}, f"Signed in to {name!r}.")


@servers.command("logout", example="squidbot servers logout docs")
@click.argument("name", type=ServerName())
@click.pass_obj
def logout(call: Invocation, name: str) -> None:
    """Forget the tokens that are kept for a server."""
    forgotten = call.container.forget_sign_in(server=call.known_server(name))
    words = f"Signed out of {name!r}." if forgotten else f"There were no tokens for {name!r}."
    _say_written(call, {"name": name, "signed_in": False, "forgotten": forgotten}, words)


def _show(call: Invocation, statuses: Sequence[ServerStatus]) -> None:
    if call.json:
        call.output.document([status_json(status, call.output.clean) for status in statuses])
    elif statuses:
        call.output.table(("name", "transport", "state", "tools", "protocol"), [_row(status) for status in statuses])
        for status in statuses:
            if status.error:
                hint = f"\n  {status.hint}" if status.hint else ""
                call.output.note(f"{status.name}: {status.error}{hint}")
    else:
        call.output.note("There are no servers. 'squidbot servers add' adds one, 'squidbot init' writes a first file.")


def _row(status: ServerStatus) -> tuple[str, ...]:
    tools = "" if status.tools is None else str(status.tools)
    return (status.name, status.transport, status.state, tools, status.protocol or "")


def _settings_file(call: Invocation) -> Path:
    """The file to write to: the one in force, else a new one here."""
    from squidbot.config.load import find_settings

    if call.config is not None and not call.config.exists():
        return call.config
    return find_settings(call.config) or Path("squidbot.json")


def _names_in(path: Path) -> list[str]:
    """The servers that the file itself defines; built-in ones that nobody named are in no file."""
    from squidbot.config.load import read_settings

    if not path.exists():
        return []
    return [name for name, server in read_settings(path).tools.mcp_servers.items() if not server.is_optional]


def _say_missing(call: Invocation, path: Path, names: Sequence[str]) -> None:
    """What has to be set before the new servers, and with them the whole file, can be used."""
    from squidbot.config.load import read_settings

    servers = read_settings(path).tools.mcp_servers
    for server in (servers[name] for name in names):
        # One by its fields, as they were just typed; of several each by its name too.
        at = "" if len(names) == 1 else server.name
        for problem in server.resolve(at=at)[1] if server.enabled else ():
            call.output.note(f"Before squidbot can use it: {problem}")


def _pairs(pairs: Sequence[str], option: str) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair or pair.startswith("="):
            raise CommandError(f"{option} {pair!r} is not written as KEY=VALUE", code="usage")
    return dict(pair.split("=", 1) for pair in pairs)


def _say_written(call: Invocation, document: dict[str, Any], words: str) -> None:
    if call.json:
        call.output.document(document)
    else:
        call.output.write(call.output.clean(words))
