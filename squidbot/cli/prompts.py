"""`squidbot prompts`: what prompts the servers offer, and filling one."""

from collections.abc import Mapping

import click

from squidbot.cli.arguments import read_arguments
from squidbot.cli.grammar import Group, ServerName, role_option
from squidbot.cli.invocation import Invocation
from squidbot.cli.lookup import find_one, nearest
from squidbot.cli.results import Answers
from squidbot.core.domain.errors import InvalidArguments, Problem
from squidbot.core.domain.prompts import PromptDefinition, RenderedPrompt
from squidbot.core.domain.shapes import prompt_json, rendered_json


@click.group(cls=Group, example="squidbot prompts list")
def prompts() -> None:
    """List and render prompts."""


@prompts.command("list", example="squidbot prompts list --server everything")
@click.option("--server", type=ServerName(), metavar="NAME", help="Only the prompts of this server.")
@role_option
@click.pass_obj
def list_prompts(call: Invocation, server: str | None, role: str | None) -> None:
    """List the prompts of all servers."""
    servers = None if server is None else [call.known_server(server)]

    async def ask() -> list[PromptDefinition]:
        async with call.door(servers, only_looks=call.caller(role).is_operator) as door:
            return door.prompts(await call.known_role(door, role), server)

    found = call.run(ask)
    if call.json:
        call.output.document([prompt_json(prompt) for prompt in found])
    elif found:
        rows = [(prompt.name, _arguments(prompt), prompt.description) for prompt in found]
        call.output.table(("name", "arguments", "description"), rows)
    else:
        call.output.note("No server offers a prompt.")


@prompts.command("render", example="squidbot prompts render mcp_everything_complex_prompt temperature=0.7")
@click.argument("name")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--args", "whole", metavar="JSON", help="All arguments at once: a JSON object, or @FILE.")
@role_option
@click.pass_obj
def render_prompt(call: Invocation, name: str, arguments: tuple[str, ...], whole: str | None, role: str | None) -> None:
    """Fill a prompt with its arguments and show the messages."""
    given = read_arguments(arguments, whole)
    texts = {
        **{key: value if isinstance(value, str) else str(value) for key, value in given.values.items()},
        **given.texts,
    }

    async def ask() -> tuple[PromptDefinition, RenderedPrompt]:
        async with call.door(meant=name) as door:
            caller = await call.known_role(door, role)
            prompt = find_one(name, door.source.get_prompts(), names=_names, kind="prompt")
            _check(prompt, texts)
            with call.output.waiting(f"Asking {prompt.server!r}…"):
                return prompt, await door.render_prompt(caller, prompt.server, prompt.prompt, texts)

    prompt, rendered = call.run(ask)
    if call.json:
        call.output.document(rendered_json(prompt, rendered))
        return
    answers = Answers(call.output, folder=call.container.state() / "results", name=prompt.name)
    for message in rendered.messages:
        call.output.heading(f"{message.role}:")
        answers.show([message.content])


def _names(prompt: PromptDefinition) -> list[str]:
    return [prompt.name, f"{prompt.server}/{prompt.prompt}", prompt.prompt]


def _arguments(prompt: PromptDefinition) -> str:
    """As in a usage line: what may be left out is in brackets."""
    return " ".join(item.name if item.required else f"[{item.name}]" for item in prompt.arguments)


def _check(prompt: PromptDefinition, given: Mapping[str, str]) -> None:
    known = [argument.name for argument in prompt.arguments]
    problems = [
        Problem(argument.name, "is needed", argument.description or None)
        for argument in prompt.arguments
        if argument.required and argument.name not in given
    ]
    for name in given.keys() - set(known):
        near = nearest(name, known)
        problems.append(Problem(name, "is no argument of it", f"Did you mean {near[0]!r}?" if near else None))
    if problems:
        raise InvalidArguments(f"the arguments do not fit {prompt.name!r}:", problems)
