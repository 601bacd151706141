"""A server is given secrets, and may say them again where it describes itself: that is for everybody to read."""

from collections.abc import Collection
from dataclasses import replace

from squidbot.adapters.mcp.remembered import Remembered
from squidbot.core.domain.recorded import known_out
from squidbot.core.domain.redaction import Redactor

_SAID = ("instructions", "info", "tools", "prompts", "resources", "templates")


class _Hiding(Redactor):
    """One whose marks are all the same: a name or an address that had a secret is to read well."""

    def mark(self, secret: str) -> str:  # noqa: ARG002
        return "[hidden]"


def without_own_secrets(known: Remembered, secrets: Collection[str]) -> Remembered:
    """What a server says of itself and lists, without the secrets that it was given, in whatever form."""
    if not secrets:
        return known
    hiding = _Hiding(secrets)
    telling = {name: value for name in _SAID if hiding.may_know_any_of(value := getattr(known, name))}
    return replace(known, **{name: known_out(value, hiding) for name, value in telling.items()})
