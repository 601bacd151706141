"""The agent: its model, what it keeps, and what servers may ask of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from squidbot.adapters.models.definition import Input, ModelDefinition
    from squidbot.adapters.system.sessions import Sessions
    from squidbot.config.schema import ModelSettings, Settings
    from squidbot.config.sections import FallbackModel
    from squidbot.core.ports import (
        LanguageModel,
        ResultShelf,
    )
    from squidbot.core.services.sampling import Sampler, SamplingBudget


def build_shelf(state: Path) -> "ResultShelf":
    """Where results are kept that are too large for a model."""
    from squidbot.adapters.system.results import FolderShelf

    return FolderShelf(state / "results" / "kept")


def build_sessions(state: Path) -> "Sessions":
    """The conversations with agents that were given a name."""
    from squidbot.adapters.system.sessions import Sessions

    return Sessions(state / "sessions")


def build_language_model(choice: "ModelSettings", *, folder: Path | None = None) -> "LanguageModel":
    """The model, with those to turn to when it fails. A script is looked for from `folder`. Raises ConfigError, ModelError."""
    from squidbot.adapters.models.patience import PatientModel
    from squidbot.config.models import candidates

    return PatientModel([_one_model(entry, folder) for entry in candidates(choice)])


def _one_model(entry: "FallbackModel", folder: Path | None) -> "LanguageModel":
    if entry.provider == "scripted":
        from squidbot.adapters.models.scripted import ScriptedModel
        from squidbot.config.files import under
        from squidbot.config.load import read_document

        return ScriptedModel(read_document(under(folder, entry.name)), name=entry.name)
    if entry.provider == "anthropic":
        from squidbot.adapters.models.anthropic_messages import AnthropicModel

        return AnthropicModel(_definition(entry))
    from squidbot.adapters.models.openai_chat import OpenAIModel

    return OpenAIModel(_definition(entry))


def _definition(entry: "FallbackModel") -> "ModelDefinition":
    from squidbot.adapters.models.definition import ModelDefinition
    from squidbot.config.models import OPENROUTER

    seeing = entry.provider == "anthropic" or entry.base_url in (None, OPENROUTER)
    inputs: Sequence[Input] = entry.inputs if entry.inputs is not None else ("image",) if seeing else ()
    return ModelDefinition(
        name=entry.name,
        base_url=entry.base_url,
        api_key=entry.api_key or None,
        inputs=frozenset(inputs),
        price=(entry.price.input, entry.price.output) if entry.price is not None else None,
        max_output=entry.max_output,
    )


def build_sampler(settings: "Settings") -> "Sampler | None":
    """What answers servers that may ask the model of the settings, in the place of callers who have none."""
    from squidbot.core.services.sampling import Sampler

    budgets = build_budgets(settings)
    if settings.model is None or not budgets:
        return None
    folder = settings.source.parent if settings.source else None
    return Sampler(build_language_model(settings.model, folder=folder), budgets)


def build_budgets(settings: "Settings") -> "dict[str, SamplingBudget]":
    """How much each server may ask the model for."""
    from squidbot.core.services.sampling import SamplingBudget

    entries = settings.tools.mcp_servers.items()
    return {
        name: SamplingBudget(entry.sampling.requests, entry.sampling.tokens)
        for name, entry in entries
        if entry.sampling is not None
    }


async def find_ollama(url: str) -> "list[str] | None":
    """The models of the Ollama at `url`; None if nobody is there."""
    from squidbot.adapters.models.finding import ollama_models

    return await ollama_models(url)


async def find_offered(entry: "FallbackModel") -> "list[str] | None":
    """The models that the server of `entry` offers; None if it does not say."""
    from squidbot.adapters.models.finding import offered_models

    return await offered_models(_definition(entry))
