"""Which language model is meant, by the settings, the command line and the environment."""

import pytest

from squidbot.config.models import OLLAMA, OPENROUTER, models_in_environment, named_model, ollama_url
from squidbot.config.schema import ModelSettings

pytestmark = pytest.mark.requirement("G-02")

KEYS = {"OPENAI_API_KEY": "sk-o", "ANTHROPIC_API_KEY": "sk-a", "OPENROUTER_API_KEY": "sk-r"}
LOCAL = ModelSettings(name="qwen", base_url="http://127.0.0.1:8000/v1", fallback=[ModelSettings(name="x")])


@pytest.mark.parametrize(
    ("name", "settings", "environ", "expected"),
    [
        ("gpt-5", None, KEYS, ("openai", "gpt-5", None, "sk-o")),
        ("claude-opus", None, KEYS, ("anthropic", "claude-opus", None, "sk-a")),
        ("qwen/qwen3", None, KEYS, ("openai", "qwen/qwen3", OPENROUTER, "sk-r")),
        ("openrouter:a/b", None, KEYS, ("openai", "a/b", OPENROUTER, "sk-r")),
        ("anthropic:claude-x", LOCAL, KEYS, ("anthropic", "claude-x", None, "sk-a")),
        ("openai:gpt-x", None, {}, ("openai", "gpt-x", None, None)),
        ("llama3.2:3b", LOCAL, KEYS, ("openai", "llama3.2:3b", LOCAL.base_url, None)),
        ("ollama:llama3.2:3b", LOCAL, {}, ("openai", "llama3.2:3b", f"{OLLAMA}/v1", None)),
        ("scripted:a.json", LOCAL, {}, ("scripted", "a.json", None, None)),
        ("gpt-5", None, {"ANTHROPIC_API_KEY": "sk-a"}, None),
        ("gpt-5", None, {"OPENROUTER_API_KEY": "sk-r"}, ("openai", "gpt-5", OPENROUTER, "sk-r")),
        ("gpt-5", None, {}, None),
    ],
)
def test_a_name_finds_its_place(
    name: str, settings: ModelSettings | None, environ: dict[str, str], expected: tuple[str, ...] | None
) -> None:
    """A bare name is another model at the place that is known; a prefix names the place."""
    found = named_model(name, settings, environ)
    assert (found and (found.provider, found.name, found.base_url, found.api_key)) == expected
    assert found is None or found.fallback == []


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", OLLAMA),
        ("127.0.0.1:9999", "http://127.0.0.1:9999"),
        ("http://localhost", "http://localhost:11434"),
        ("0.0.0.0", OLLAMA),
        ("models.example:11434", OLLAMA),
        ("127.0.0.1:no", OLLAMA),
    ],
)
def test_ollama_is_looked_for_on_this_machine_only(host: str, url: str) -> None:
    """What is found by itself is never somebody else's machine."""
    assert ollama_url({"OLLAMA_HOST": host}) == url


def test_an_empty_key_is_none() -> None:
    """Shells export variables that are set to nothing."""
    assert models_in_environment({"OPENAI_API_KEY": ""}) == {}
