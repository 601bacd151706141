"""Which models a server offers: asked by HTTP, briefly, for it may not be there."""

from typing import Any

import httpx2

from squidbot.adapters.models.definition import ModelDefinition

_PATIENCE = httpx2.Timeout(3.0, connect=0.5)
_MOST_ASKED = 8


async def ollama_models(url: str) -> list[str] | None:
    """The models of the Ollama at `url`, those that can call tools first; None if nobody is there."""
    async with httpx2.AsyncClient(base_url=url, timeout=_PATIENCE, trust_env=False) as client:
        listed = await _asked(client, "GET", "/api/tags")
        if not isinstance(listed, dict) or not isinstance(listed.get("models"), list):
            return None
        names = [str(model["name"]) for model in listed["models"] if isinstance(model, dict) and "name" in model]
        able = []
        for name in names[:_MOST_ASKED]:
            shown = await _asked(client, "POST", "/api/show", {"model": name})
            if isinstance(shown, dict) and "tools" in (shown.get("capabilities") or ["tools"]):
                able.append(name)
    return [*able, *(name for name in names if name not in able)]


async def offered_models(model: ModelDefinition) -> list[str] | None:
    """What an OpenAI-compatible server lists at `/models`; None if it does not say."""
    if model.base_url is None:
        return None
    headers = {"Authorization": f"Bearer {model.api_key}"} if model.api_key else {}
    async with httpx2.AsyncClient(headers=headers, timeout=_PATIENCE, trust_env=not model.is_local) as client:
        listed = await _asked(client, "GET", f"{model.base_url.rstrip('/')}/models")
    if not isinstance(listed, dict) or not isinstance(listed.get("data"), list):
        return None
    return [str(entry["id"]) for entry in listed["data"] if isinstance(entry, dict) and "id" in entry]


async def _asked(client: httpx2.AsyncClient, method: str, path: str, body: Any = None) -> Any:
    try:
        answer = await client.request(method, path, json=body)
        return answer.json() if answer.is_success else None
    except (httpx2.HTTPError, ValueError):
        return None
