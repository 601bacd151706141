"""How commands are declared: common options everywhere, an example in each help, modules loaded when a command runs."""

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from squidbot.cli.invocation import Invocation
from squidbot.core.domain.errors import SquidbotError


def _remember(name: str) -> Any:
    """An option's callback that writes its value, where one was given, into the invocation."""

    def write(context: click.Context, _parameter: click.Parameter, value: Any) -> None:
        if value:
            setattr(context.ensure_object(Invocation), name, value)

    return write


def _common_options() -> list[click.Parameter]:
    return [
        click.Option(
            ["-c", "--config"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            expose_value=False,
            callback=_remember("config"),
            help="The settings file.",
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            callback=_remember("json"),
            help="Answer with one JSON document.",
        ),
        click.Option(
            ["-v", "--verbose"],
            count=True,
            expose_value=False,
            callback=_remember("verbosity"),
            help="More of the log; twice for all of it.",
        ),
    ]


class ServerName(click.ParamType[str]):
    """The name of a server; shells complete it from the settings."""

    name = "server"

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        from squidbot.config.builtin import DEFAULT_MCP_SERVERS
        from squidbot.config.load import find_settings, read_settings

        try:
            file = find_settings(ctx.ensure_object(Invocation).config)
            names = read_settings(file).tools.mcp_servers if file else DEFAULT_MCP_SERVERS
        except SquidbotError:  # nobody reads an error while completing
            return []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


class RoleName(click.ParamType[str]):
    """The name of a role; shells complete those that ship and those of the settings."""

    name = "role"

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 - click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        from squidbot.config.load import find_settings, read_settings
        from squidbot.core.domain.shipped_roles import SHIPPED

        names = list(SHIPPED)
        try:
            file = find_settings(ctx.ensure_object(Invocation).config)
            names += [name for name in read_settings(file).roles if name not in SHIPPED] if file else []
        except SquidbotError:  # nobody reads an error while completing
            return []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def role_option(command: Any) -> Any:
    """`--role R`: in whose name a command asks."""
    return click.option(
        "--role", type=RoleName(), metavar="ROLE", help="In this role; else agent.role of the settings, else operator."
    )(command)


class Command(click.Command):
    """A command with the common options and an example at the end of its help."""

    def __init__(self, *args: Any, example: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.example = example
        self.params.extend(_common_options())

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_example(formatter, self.example)
        super().format_epilog(ctx, formatter)


class Group(click.Group):
    """A group of commands, some of which may live in modules that are not loaded yet."""

    command_class = Command

    def __init__(
        self,
        *args: Any,
        example: str = "",
        modules: Mapping[str, tuple[str, str]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.example = example
        self.modules = modules or {}
        """Name of a command: where it is (`module:attribute`), and its line in the list."""
        self.params.extend(_common_options())

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [*self.modules, *(name for name in self.commands if name not in self.modules)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.modules and cmd_name not in self.commands:
            module, _, attribute = self.modules[cmd_name][0].partition(":")
            self.add_command(getattr(importlib.import_module(module), attribute), cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            # Click knows only the commands that are loaded; the names not loaded yet may be meant as well.
            raise click.NoSuchCommand(error.command_name, possibilities=self.list_commands(ctx), ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, self._line(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_example(formatter, self.example)
        super().format_epilog(ctx, formatter)

    def _line(self, ctx: click.Context, name: str) -> str:
        if name in self.modules:
            return self.modules[name][1]
        command = self.get_command(ctx, name)
        return command.get_short_help_str(limit=100) if command else ""


Group.group_class = Group


def _write_example(formatter: click.HelpFormatter, example: str) -> None:
    if example:
        with formatter.section("Example"):
            for line in example.splitlines():
                formatter.write(f"  {line}\n")
