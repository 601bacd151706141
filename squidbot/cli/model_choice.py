"""Which language model a command uses: the one that is named, the settings', or one that is found."""

from typing import TYPE_CHECKING

from squidbot.cli.invocation import Invocation
from squidbot.core.domain.errors import ModelError

if TYPE_CHECKING:
    from squidbot.config.schema import ModelSettings

THREE_WAYS = (
    "Three ways to get one: run one on this machine with Ollama ('ollama pull qwen3', then 'ollama serve'); "
    "set OPENAI_API_KEY, ANTHROPIC_API_KEY or OPENROUTER_API_KEY; "
    "or name one in the settings, with model.name and model.base_url (any OpenAI-compatible server)."
)


async def choose_model(call: Invocation, settings_model: "ModelSettings | None", named: str | None) -> "ModelSettings":
    """The model to use; what was found by itself is said. Raises ModelError with three ways to get one."""
    from squidbot.config.models import models_in_environment, named_model, ollama_model, ollama_url

    if named is not None:
        chosen = named_model(named, settings_model)
        if chosen is None:
            offered = await call.container.find_ollama(ollama_url()) or []
            chosen = ollama_model(named) if named in offered else None
        if chosen is not None:
            return _hidden(call, chosen)
        raise ModelError(f"nobody here knows a model {named!r}", kind="missing", hint=THREE_WAYS)
    if settings_model is not None:
        return _hidden(call, settings_model)
    local = await call.container.find_ollama(ollama_url())
    if local:
        call.output.note(f"Model: {local[0]} of the Ollama on this machine. --model or the settings name another.")
        return ollama_model(local[0])
    for variable, model in models_in_environment().items():
        call.output.note(f"Model: {model.name}, since {variable} is set. --model or the settings name another.")
        return _hidden(call, model)
    raise ModelError("there is no language model to ask", kind="missing", hint=THREE_WAYS)


def _hidden(call: Invocation, model: "ModelSettings") -> "ModelSettings":
    """The same, with its keys where nothing shows them."""
    keys = {entry.api_key for entry in (model, *model.fallback) if entry.api_key}
    call.container.secrets().update(keys)
    return model
