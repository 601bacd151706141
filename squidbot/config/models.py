"""Which language model is meant: the settings', the one named on the command line, or one that the environment has a key for."""

import os
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from squidbot.config.sections import FallbackModel, ModelSettings

OPENROUTER = "https://openrouter.ai/api/v1"
OLLAMA = "http://127.0.0.1:11434"

_KEYS = {
    "ANTHROPIC_API_KEY": ModelSettings(provider="anthropic", name="claude-sonnet-4-5"),
    "OPENAI_API_KEY": ModelSettings(name="gpt-5"),
    "OPENROUTER_API_KEY": ModelSettings(name="openai/gpt-5", base_url=OPENROUTER),
}
"""What a key in the environment is good for; another model of the same provider is a matter of `--model`."""
_PREFIXES = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "openrouter": "OPENROUTER_API_KEY"}


def models_in_environment(environ: Mapping[str, str] | None = None) -> dict[str, ModelSettings]:
    """A model for each key that is set, by the variable that has it."""
    ours = os.environ if environ is None else environ
    return {name: model.model_copy(update={"api_key": ours[name]}) for name, model in _KEYS.items() if ours.get(name)}


def ollama_url(environ: Mapping[str, str] | None = None) -> str:
    """Where Ollama would be on this machine: `OLLAMA_HOST` if that is on loopback, else its usual port."""
    named = (os.environ if environ is None else environ).get("OLLAMA_HOST", "")
    parts = urlsplit(named if "://" in named else f"http://{named}")
    try:
        loopback = parts.hostname == "localhost" or ip_address(parts.hostname or "").is_loopback
        port = parts.port or 11434
    except ValueError:
        return OLLAMA
    return f"http://{parts.hostname}:{port}" if loopback else OLLAMA


def ollama_model(name: str, environ: Mapping[str, str] | None = None) -> ModelSettings:
    """A model of the Ollama on this machine."""
    return ModelSettings(name=name, base_url=f"{ollama_url(environ)}/v1")


def named_model(
    name: str, settings: ModelSettings | None, environ: Mapping[str, str] | None = None
) -> ModelSettings | None:
    """The model that `--model NAME` means; None if nobody knows where it would be.

    `PROVIDER:NAME` with openai, anthropic, openrouter, ollama or scripted says it; a bare name is another model at the
    place of the settings', else of the key that is set.
    """
    prefix, _, rest = name.partition(":")
    found = models_in_environment(environ)
    if rest and prefix == "scripted":
        return ModelSettings(provider="scripted", name=rest)
    if rest and prefix == "ollama":
        return ollama_model(rest, environ)
    if rest and prefix in _PREFIXES:
        variable = _PREFIXES[prefix]
        model = found.get(variable, _KEYS[variable])
        if settings is not None and _same_place(settings, model):
            model = settings
        return model.model_copy(update={"name": rest, "fallback": []})
    if settings is not None:
        return settings.model_copy(update={"name": name, "fallback": []})
    wanted = ["ANTHROPIC_API_KEY"] if name.startswith("claude") else ["OPENAI_API_KEY", "OPENROUTER_API_KEY"]
    if "/" in name:
        wanted.reverse()
    at = next((found[variable] for variable in wanted if variable in found), None)
    return None if at is None else at.model_copy(update={"name": name})


def candidates(model: ModelSettings) -> list[FallbackModel]:
    """The model and those to turn to, in order."""
    return [model, *model.fallback]


def _same_place(settings: ModelSettings, model: ModelSettings) -> bool:
    return settings.provider == model.provider and settings.base_url == model.base_url
