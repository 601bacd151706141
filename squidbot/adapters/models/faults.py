"""What goes wrong with a provider, in our words: one table from statuses and exceptions to ModelError."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2

from squidbot.adapters.models.definition import ModelDefinition
from squidbot.core.domain.errors import ModelError, ModelFault
from squidbot.core.domain.text import visible

_LONGEST = 300
_NO_TOOLS = re.compile(
    r"(does not|doesn't|do not|not) support\w* (tool|function)|no endpoints found that support tool", re.IGNORECASE
)
_NO_MODEL = re.compile(
    r"model.{0,80}(not found|does not exist|not exist|unknown|is not a valid)|no such model", re.IGNORECASE | re.DOTALL
)
_QUOTA = re.compile(r"insufficient_quota|credit balance|exceeded your current quota|billing", re.IGNORECASE)
_INDEX = re.compile(r"\btools[.\[](\d+)")


def explained(error: Exception, sdk: Any, model: ModelDefinition) -> ModelError:
    """An exception of a provider's library, or of the connection below it, as ours."""
    where = f"model {model.name!r}" + (f" at {model.base_url}" if model.base_url else "")
    match error:
        case sdk.APITimeoutError() | httpx2.TimeoutException():
            return ModelError(f"{where} did not answer in time", kind="unreachable", hint=_reach(model))
        case sdk.APIStatusError():
            return _of_status(error, where)
        case sdk.APIConnectionError(__cause__=httpx2.RemoteProtocolError() | httpx2.ReadError()):
            return ModelError(f"{where}: the connection broke off ({_root(error)})", kind="broken")
        case sdk.APIConnectionError() | httpx2.ConnectError():
            reason = _root(error)
            return ModelError(f"{where} cannot be reached: {reason}", kind="unreachable", hint=_reach(model))
        case httpx2.HTTPError():
            return ModelError(f"{where}: the answer broke off ({_root(error)})", kind="broken")
        case sdk.APIError():
            return ModelError(f"{where} failed in the middle of its answer: {_said(error)}", kind="busy")
        case _:
            return ModelError(f"{where} answered with something that is no answer: {_short(str(error))}", kind="broken")


def broke_off(model: ModelDefinition, *, begun: bool) -> ModelError:
    """For a stream that ended before it said that it would; one that has not even begun may be a page, from elsewhere."""
    if not begun:
        where = f" at {model.base_url}" if model.base_url else ""
        hint = "Something is there, but it may be no model: check model.base_url."
        return ModelError(f"model {model.name!r}{where} answered with nothing", kind="broken", hint=hint)
    return ModelError(f"model {model.name!r}: the answer broke off before its end", kind="broken")


def library_missing(extra: str) -> ModelError:
    """For a provider whose library is not installed."""
    return ModelError(
        f"the library for {extra} models is not installed",
        kind="missing",
        hint=f"Install it: pip install 'squidbot-gateway[{extra}]'.",
    )


def refused_tool(error: Exception, names: Sequence[str]) -> tuple[str, str] | None:
    """The tool that a provider will not take, and why, if that is what its answer says."""
    if getattr(error, "status_code", None) not in (400, 422):
        return None
    said = _said(error)
    index = _INDEX.search(said)
    if index is not None and int(index[1]) < len(names):
        return names[int(index[1])], said
    named = [name for name in names if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", said)]
    return (named[0], said) if len(named) == 1 else None


def _of_status(error: Any, where: str) -> ModelError:
    said, status = _said(error), int(error.status_code)
    kind, hint = _kind(status, said, error)
    wait = _wait(getattr(error.response, "headers", {}))
    if kind == "limited" and wait:
        hint = f"Wait {wait:.0f} s, or name another model in model.fallback."
    return ModelError(f"{where} says no (status {status}): {said}", kind=kind, hint=hint, retry_after=wait)


def _kind(status: int, said: str, error: Any) -> tuple[ModelFault, str | None]:
    if status < 400:
        # An error in the middle of a stream that began well.
        return ("limited" if "rate_limit" in str(error.body) else "busy"), None
    if status in (401, 403):
        return "auth", "Check the key: model.api_key of the settings, or the variable it is taken from."
    if _QUOTA.search(said):
        return "refused", "The account has nothing left; see its billing page, or use another model."
    if status == 429:
        return "limited", "Wait, or name another model in model.fallback."
    if status in (408, 409) or status >= 500:
        return "busy", "It is the provider's fault, and may pass; model.fallback names models to turn to."
    if _NO_TOOLS.search(said):
        return "no_tools", "Use a model that can call tools, with --model or in the settings."
    if status == 404 or _NO_MODEL.search(said):
        return "unknown_model", "'squidbot models list' shows what there is; model.base_url may be wrong too."
    return "refused", None


def _wait(headers: Any) -> float | None:
    """Seconds that a provider asks us to wait: a number, milliseconds, or a date."""
    try:
        if "retry-after-ms" in headers:
            return max(float(headers["retry-after-ms"]) / 1000, 0.0)
        value = headers.get("retry-after")
        if value is None:
            return None
        if re.fullmatch(r"\d+(\.\d+)?", value.strip()):
            return float(value)
        return max((parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None


def _said(error: Any) -> str:
    """The provider's own words."""
    body = getattr(error, "body", None)
    match body:
        case (
            {"error": {"message": str(words)}}
            | {"message": str(words)}
            | {"error": str(words)}
            | {"detail": str(words)}
        ):
            return _short(words)
        case None | "":
            return _short(str(getattr(error, "message", error)))
        case _:
            return _short(body if isinstance(body, str) else json.dumps(body, default=str))


def _short(words: str) -> str:
    words = visible(words[: 4 * _LONGEST], newlines=False)
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"


def _root(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return _short(str(error)) or type(error).__name__


def _reach(model: ModelDefinition) -> str:
    if model.is_local:
        return "Is it running there? For Ollama: 'ollama serve', then 'ollama pull MODEL'."
    return "Check model.base_url and the network; 'squidbot models test' tries again."
