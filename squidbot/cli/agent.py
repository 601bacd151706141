"""`squidbot agent`: an agent of a role at work, for one request or in a conversation."""

from pathlib import Path

import click

from squidbot.cli.errors import CommandError
from squidbot.cli.grammar import Command, role_option
from squidbot.cli.invocation import Invocation


@click.command(
    cls=Command, example='squidbot agent -m "Which tickets of this sprint have no pull request?" --role project_manager'
)
@click.option(
    "-m", "--message", metavar="TEXT", help="What is to be done; '-' reads it from stdin. Without it: a conversation."
)
@role_option
@click.option(
    "--agent", "file", type=click.Path(path_type=Path), metavar="FILE", help="An agent.yaml: who the agent is."
)
@click.option("--model", metavar="MODEL", help="This model instead of the settings': NAME, or PROVIDER:NAME.")
@click.option("--max-steps", type=click.IntRange(min=1), metavar="N", help="End after so many turns of the model.")
@click.option("--session", metavar="NAME", help="Keep the conversation under this name, and go on with it.")
@click.option("--resume", is_flag=True, help="Go on with the session, else with the last one.")
@click.option("--json-stream", is_flag=True, help="One JSON event a line, as they happen.")
@click.pass_obj
def agent(
    call: Invocation,
    *,
    message: str | None,
    role: str | None,
    file: Path | None,
    model: str | None,
    max_steps: int | None,
    session: str | None,
    resume: bool,
    json_stream: bool,
) -> int:
    """An agent of a role, with the tools of that role, gets something done.

    The answer is on stdout; every call it makes is one line on stderr, and a record in the audit trail.
    """
    from squidbot.cli.agent_run import Wishes, run_agent

    if call.json and json_stream:
        raise CommandError("--json and --json-stream exclude each other", code="usage")
    return run_agent(
        call,
        Wishes(
            message=message,
            role=role,
            file=file,
            model=model,
            max_steps=max_steps,
            session=session,
            resume=resume,
            form="stream" if json_stream else "json" if call.json else "people",
        ),
    )
