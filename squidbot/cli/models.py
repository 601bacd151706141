"""`squidbot models`: which language models there are for the agent, and whether one answers."""

import time
from typing import TYPE_CHECKING, Any

import click

from squidbot.cli.exits import DONE, FAILED
from squidbot.cli.grammar import Group
from squidbot.cli.invocation import Invocation
from squidbot.cli.model_choice import choose_model
from squidbot.core.domain.conversation import CallAsked, ModelTool, TextDelta, TokenUsage, UserMessage

if TYPE_CHECKING:
    from squidbot.config.sections import FallbackModel

_PROBE = ModelTool(
    "tell_number",
    "Tells a number to whoever asked.",
    {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
)


@click.group(cls=Group, example="squidbot models test")
def models() -> None:
    """Which language models there are for the agent, and whether one answers."""


@models.command("list", example="squidbot models list")
@click.pass_obj
def list_models(call: Invocation) -> None:
    """List the models of the settings, of the Ollama on this machine, and those that a key is set for."""
    found = call.run(lambda: _found(call))
    if call.json:
        call.output.document(found)
    elif found:
        rows = [(row["name"], row["provider"], row["base_url"] or "", row["source"]) for row in found]
        call.output.table(("name", "provider", "where", "source"), rows)
    else:
        from squidbot.cli.model_choice import THREE_WAYS

        call.output.note(f"No models. {THREE_WAYS}")


@models.command("test", example="squidbot models test --model anthropic:claude-sonnet-4-5")
@click.option("--model", "named", metavar="MODEL", help="This model instead of the settings'.")
@click.pass_obj
def test_model(call: Invocation, named: str | None) -> int:
    """Ask a model for one tool call: whether it answers, and whether it can use tools."""

    async def ask() -> dict[str, Any]:
        chosen = await choose_model(call, call.settings.model, named)
        source = call.settings.source if named is None else None
        model = call.container.language_model(chosen, folder=source.parent if source else None)
        began = time.perf_counter()
        calls, words, usage = 0, "", TokenUsage()
        try:
            with call.output.waiting(f"Asking {chosen.name}…"):
                question = [UserMessage("Call the tool tell_number with the number 7.")]
                async for event in model.stream(question, tools=[_PROBE], max_tokens=1_000):
                    calls += isinstance(event, CallAsked)
                    words += event.text if isinstance(event, TextDelta) else ""
                    usage += event if isinstance(event, TokenUsage) else TokenUsage()
        finally:
            await model.aclose()
        return {
            "name": model.name,
            "provider": chosen.provider,
            "ok": bool(calls or words),
            "tools": calls > 0,
            "seconds": round(time.perf_counter() - began, 3),
            "usage": {"input": usage.input, "output": usage.output},
        }

    result = call.run(ask)
    if call.json:
        call.output.document(result)
    elif result["ok"]:
        tools = "calls tools" if result["tools"] else "answers, but called no tool: it may be of little use to an agent"
        call.output.labelled("ok", f"{result['name']} {tools}, {result['seconds']:.1f} s")
    else:
        call.output.labelled("failed", f"{result['name']} said nothing")
    return DONE if result["ok"] else FAILED


async def _found(call: Invocation) -> list[dict[str, Any]]:
    from squidbot.config.models import candidates, models_in_environment, ollama_model, ollama_url

    rows: list[dict[str, Any]] = []
    configured = candidates(call.settings.model) if call.settings.model is not None else []
    for index, entry in enumerate(configured):
        rows.append(_row(entry, "model.fallback" if index else "settings"))
        if entry.provider == "openai" and entry.base_url:
            offered = await call.container.find_offered(entry) or []
            more = [entry.model_copy(update={"name": name}) for name in offered if name != entry.name]
            rows += [_row(other, "offered there") for other in more]
    known = {(row["name"], row["base_url"]) for row in rows}
    local = [ollama_model(name) for name in await call.container.find_ollama(ollama_url()) or []]
    rows += [_row(model, "Ollama") for model in local if (model.name, model.base_url) not in known]
    rows += [_row(model, variable) for variable, model in models_in_environment().items()]
    return rows


def _row(entry: "FallbackModel", source: str) -> dict[str, Any]:
    return {"name": entry.name, "provider": entry.provider, "base_url": entry.base_url, "source": source}
