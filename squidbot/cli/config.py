"""`squidbot config`: whether the settings are right, what they are, and their schema."""

from pathlib import Path

import click

from squidbot.cli.grammar import Group
from squidbot.cli.invocation import Invocation


@click.group(cls=Group, example="squidbot config check")
def config() -> None:
    """Check the settings, show them, print their schema."""


@config.command("check", example="squidbot config check squidbot.json")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.pass_obj
def check(call: Invocation, file: Path | None) -> None:
    """Read the settings and report everything that is wrong with them. Starts nothing."""
    call.config = file or call.config
    settings = call.settings
    source = str(settings.source) if settings.source else None
    servers = settings.tools.mcp_servers
    if call.json:
        document = {"ok": True, "file": source, "servers": list(servers), "notes": list(settings.notes)}
        call.output.document(document)
        return
    place = source or "The embedded default"
    call.output.write(call.output.clean(f"{place} is fine: {len(servers)} server{'s'[: len(servers) != 1]}."))


@config.command("schema", example="squidbot config schema > squidbot.schema.json")
@click.pass_obj
def schema(call: Invocation) -> None:
    """Print the JSON Schema of the settings, by which editors complete and check."""
    from squidbot.config.jsonschema import settings_schema

    call.output.document(settings_schema())


@config.command("show", example="squidbot config show")
@click.pass_obj
def show(call: Invocation) -> None:
    """Show the settings in force. Secrets are not shown."""
    settings = call.settings
    if call.json:
        call.output.document(settings.shown())
        return
    call.output.note(f"{settings.source or 'The embedded default: there is no settings file.'}")
    call.output.json_text(settings.shown())
