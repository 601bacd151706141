"""`squidbot alerts`: what was unusual."""

from dataclasses import asdict

import click

from squidbot.cli.grammar import Group
from squidbot.cli.invocation import Invocation
from squidbot.core.domain.alerts import Alert


@click.group(cls=Group, example="squidbot alerts list")
def alerts() -> None:
    """What was unusual."""


@alerts.command("list", example="squidbot alerts list -n 50")
@click.option(
    "-n", "--lines", type=click.IntRange(min=1), default=20, show_default=True, help="How many of the newest."
)
@click.pass_obj
def list_alerts(call: Invocation, lines: int) -> None:
    """List the newest alerts, oldest first."""

    async def ask() -> list[Alert]:
        async with call.store() as store:
            return await store.alerts(newest=lines)

    found = call.run(ask)
    if call.json:
        call.output.document([asdict(alert) for alert in found])
    elif found:
        rows = [
            (alert.timestamp[:19].replace("T", " "), alert.rule, alert.role or "", alert.message) for alert in found
        ]
        call.output.table(("time", "rule", "role", "what"), rows)
    else:
        call.output.note("No alerts.")
