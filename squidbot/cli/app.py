"""The root of all commands: names and one line each, and the one place where errors become exit codes."""

import io
import itertools
import os
import sys
from pathlib import Path

import click

from squidbot._version import __version__
from squidbot.cli.errors import explained
from squidbot.cli.exits import DONE, USAGE
from squidbot.cli.grammar import Group
from squidbot.cli.invocation import Invocation

_COMMANDS = {
    "init": ("squidbot.cli.init:init", "Write a first settings file, with comments."),
    "config": ("squidbot.cli.config:config", "Check the settings, show them, print their schema."),
    "servers": ("squidbot.cli.servers:servers", "List, add, remove, test and import MCP servers."),
    "tools": ("squidbot.cli.tools:tools", "List, show and call the tools of all servers."),
    "prompts": ("squidbot.cli.prompts:prompts", "List and render prompts."),
    "resources": ("squidbot.cli.resources:resources", "List and read resources."),
    "agent": ("squidbot.cli.agent:agent", "Let an agent of a role get something done, with the tools of that role."),
    "models": ("squidbot.cli.models:models", "Which language models there are for the agent, and whether one answers."),
    "roles": ("squidbot.cli.roles:roles", "Who may use what, why, and what a change would do."),
    "audit": ("squidbot.cli.audit:audit", "The record of every call: follow, search, verify, export."),
    "alerts": ("squidbot.cli.alerts:alerts", "What was unusual."),
    "gateway": ("squidbot.cli.gateway:gateway", "Serve the tools to any MCP client, with a dashboard."),
    "serve": ("squidbot.cli.serve:serve", "The same door over stdio, for clients that only start commands."),
    "status": ("squidbot.cli.status:status", "Ask the running gateway how it is."),
    "tokens": ("squidbot.cli.tokens:tokens", "Make, list and take back tokens for the gateway."),
    "connect": ("squidbot.cli.connect:connect", "Put the gateway into an MCP client's configuration."),
    "practice": ("squidbot.cli.practice:practice", "A local forge and tracker to try everything with, and a story."),
    "doctor": ("squidbot.cli.doctor:doctor", "Find out what is wrong, and what to do about it."),
}


@click.group(
    cls=Group,
    modules=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    example="squidbot tools call mcp_filesystem_list_directory path=.",
    epilog='Completion: eval "$(_SQUIDBOT_COMPLETE=bash_source squidbot)", or zsh_source, or fish_source.',
)
@click.version_option(__version__, message="squidbot %(version)s")
def root() -> None:
    """One guarded door between a team of AI agents and every MCP server."""


def main(arguments: list[str]) -> int:
    """Run the command that `arguments` name; the answer is the exit code."""
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character that the terminal's encoding does not have is written out, it never ends the program.
            stream.reconfigure(errors="backslashreplace")
    # What a parser's error needs to know is known only after parsing: so this much is looked up beforehand.
    invocation = Invocation(json="--json" in itertools.takewhile("--".__ne__, arguments))
    try:
        exit_code = root.main(args=arguments, prog_name="squidbot", obj=invocation, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return USAGE
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last one who can put it into words
        return invocation.output.fail(explained(error), traceback=error if invocation.verbosity > 1 else None)
    finally:
        invocation.close()
    return exit_code if isinstance(exit_code, int) else DONE


def _open_what_is_closed() -> None:
    """Have all three streams: a supervisor or a shell (`<&-`) may have closed some, and a database would get their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - stays open
