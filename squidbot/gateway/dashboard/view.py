"""Pages from templates: everything is escaped, and what cannot be seen in foreign text is written out."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from squidbot.core.domain.text import seen_and_unseen
from squidbot.gateway.dashboard.assets import Assets
from squidbot.gateway.dashboard.icons import SHAPES
from squidbot.gateway.dashboard.words import counted, laid_out, moment, one_line, pretty, seconds

_TEMPLATES = Path(__file__).parent / "templates"
_TONES = {
    "ok": ("ok", "ready", "allowed", "valid"),
    "warn": ("limited", "timeout", "degraded", "connecting", "conditional", "refused", "burst", "refusals", "expired"),
    "bad": ("tool_error", "server_error", "failed", "error_rate", "revoked"),
    "note": ("first_use", "unknown", "cancelled"),
}
_TONE = {word: tone for tone, words in _TONES.items() for word in words}
_FORMS = {
    "full": "%Y-%m-%d %H:%M:%S UTC",
    "short": "%m-%d %H:%M:%S UTC",
    "day": "%Y-%m-%d",
    "time": "%H:%M",
    "date": "%m-%d",
}
_MOST = 200_000
"""Characters of foreign text on one place of a page."""

Tone: TypeAlias = Literal["ok", "bad", "warn", "note"]


@dataclass(frozen=True, slots=True)
class Message:
    """Something to tell whoever looks: what happened, and what to do about it."""

    text: str
    kind: Tone = "ok"
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Way:
    """An entry of the navigation."""

    name: str
    path: str
    title: str
    icon: str


WAYS = tuple(
    Way(name, "/" if name == "overview" else f"/{name}", name.capitalize(), name)
    for name in ("overview", "servers", "tools", "roles", "calls", "alerts", "tokens")
)


class View:
    """Fills templates. `render` takes what a page shows; what all pages share is here."""

    def __init__(self, assets: Assets) -> None:
        self._assets = assets
        self._environment = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters |= {
            "shown": shown,
            "line": one_line,
            "seconds": seconds,
            "moment": moment,
            "exact": _exact,
            "utc": _utc,
            "tone": lambda word: _TONE.get(word, ""),
            "pretty": pretty,
            "json": laid_out,
        }
        self._environment.globals |= {"counted": counted, "shapes": SHAPES, "ways": WAYS}

    def render(self, template: str, *, prefix: str, **values: Any) -> str:
        """A page as text. `prefix` is where the dashboard is mounted."""

        def at(path: str, query: Mapping[str, str]) -> str:
            return f"{prefix}{path}?{urlencode(query, errors='replace')}"

        return self._environment.get_template(template).render(
            prefix=prefix,
            asset=lambda name: prefix + self._assets.path(name),
            url_tool=lambda server, tool: at("/tool", {"server": server, "tool": tool}),
            url_call=lambda record: at("/call", {"id": record}),
            url_explain=lambda role, server, tool: at("/explain", {"role": role, "server": server, "tool": tool}),
            **values,
        )


def shown(text: object) -> Markup:
    """Foreign text, escaped, with every character that is not seen written out and marked."""
    whole = str(text)
    rest = f"\n[... {len(whole) - _MOST:,} characters more ...]" if len(whole) > _MOST else ""
    parts = [
        Markup('<mark class="unseen" title="a character that is not seen">{}</mark>').format(part)
        if is_unseen
        else escape(part)
        for part, is_unseen in seen_and_unseen(whole[:_MOST])
    ]
    return Markup("").join([*parts, escape(rest)])


def _parsed(stamp: str) -> datetime | None:
    try:
        return datetime.fromisoformat(stamp).astimezone(UTC)
    except ValueError:
        return None


def _utc(stamp: str, form: str) -> str:
    at = _parsed(stamp)
    return stamp if at is None else at.strftime(_FORMS[form])


def _exact(stamp: str) -> str:
    at = _parsed(stamp)
    return stamp if at is None else at.strftime("%Y-%m-%d %H:%M:%S.%f UTC")
