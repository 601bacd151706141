"""Tells a secret by the name it stands under, and blanks it wherever it could be seen."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from squidbot.core.domain.redaction import Redactor

HIDDEN = "***"
MIN_LENGTH = 4
"""A shorter value is no secret worth the name, and blanking it would blank half of every text."""

_NAME = re.compile(
    r"token|secret|passw|pwd|pass$|api[-_ ]?key|auth(?!or(?!iz|is))|credential|private|access[-_]?key|cookie|bearer|signature"
    r"|connection[-_]?string|(^|[-_.])(key|pat|dsn|pin)$",
    re.IGNORECASE,
)
_PLAIN = frozenset({"auth", "token_endpoint_auth_method"})
"""Settings of ours that sound like secrets and are none."""
_HARMLESS = frozenset({"true", "false", "none", "null", "auto", "debug", "info", "warning", "error", "localhost"})
_PLACE = re.compile(
    r"(^|_)(url|uri|host|hostname|port|user|username|email|mail|region|path|dir|folder|home|repository|repo|project|org|owner)$",
    re.IGNORECASE,
)


class _Blanking(Redactor):
    """Knows tokens by their shape, and leaves the same mark for each."""

    def mark(self, secret: str) -> str:
        del secret
        return HIDDEN


_BLANKING = _Blanking()
_USERINFO = re.compile(r"(?<=://)[^/?#@\s]*@")


def is_secret_name(name: str) -> bool:
    """Whether a key, header or variable of this name usually holds a secret."""
    return name not in _PLAIN and _NAME.search(name) is not None


def tells_a_place(name: str, value: str) -> bool:
    """Whether a variable says where or who, not how to get in: `JIRA_URL`, `GIT_USER`, without a password inside."""
    return _PLACE.search(name) is not None and not is_secret_name(name) and not any(secrets_of_url(value))


def worth_hiding(values: Iterable[str]) -> frozenset[str]:
    """Those of `values` that are long and particular enough to be blanked in any text."""
    return frozenset(value for value in values if len(value) >= MIN_LENGTH and value.lower() not in _HARMLESS)


def secrets_in(value: Any, name: str = "") -> Iterator[str]:
    """Every string in a tree that stands under a secret's name, and what a url carries in front of its host."""
    match value:
        case str():
            if is_secret_name(name) and not _only_references(value):
                yield value
                # "Bearer abc": the second half alone is the secret, the whole is rarely quoted.
                yield value.partition(" ")[2].strip()
            yield from secrets_of_url(value)
        case Mapping():
            for key, part in value.items():
                yield from secrets_in(part, str(key) if not is_secret_name(name) else name)
        case list() | tuple():
            for part in value:
                yield from secrets_in(part, name)


def secrets_of_url(url: str) -> Iterator[str]:
    """The password of a url, and the values of its query that stand under a secret's name."""
    if "://" not in url:
        return
    try:
        parts = urlsplit(url)
        userinfo, at, _ = parts.netloc.rpartition("@")
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return
    if at:
        user, _, password = userinfo.partition(":")
        yield from (userinfo, password or user, unquote(password or user))
    yield from (value for key, value in query if is_secret_name(key))


def secrets_of_arguments(arguments: Sequence[str]) -> Iterator[str]:
    """What follows an option with a secret's name: `--token=abc`, `--token abc`."""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        option, equals, value = argument.partition("=")
        if option.startswith("-") and is_secret_name(option):
            yield from secrets_in(value if equals else following, option)


def hide(text: str, secrets: Iterable[str]) -> str:
    """`text` with every one of `secrets`, what looks like one, and whatever stands before a url's host, blanked."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return _USERINFO.sub(f"{HIDDEN}@", _BLANKING.text(text))


def shown(value: Any, name: str = "", *, secrets: Iterable[str] = ()) -> Any:
    """A tree as it may be shown: what stands under a secret's name is blanked, a `${VAR}` alone is not."""
    match value:
        case str():
            if is_secret_name(name) and not _only_references(value):
                return HIDDEN
            if name == "webhook":
                return _without_path(value)
            return hide(value, secrets)
        case Mapping():
            return {
                key: shown(part, name if is_secret_name(name) else str(key), secrets=secrets)
                for key, part in value.items()
            }
        case list() | tuple():
            return [shown(part, name, secrets=secrets) for part in value]
        case _:
            return value


def public(value: Any, *, secrets: Iterable[str]) -> Any:
    """A tree without the keys that have a secret's name, and with every known secret blanked."""
    match value:
        case str():
            return hide(value, secrets)
        case Mapping():
            return {key: public(part, secrets=secrets) for key, part in value.items() if not is_secret_name(str(key))}
        case list() | tuple():
            return [public(part, secrets=secrets) for part in value]
        case _:
            return value


def _without_path(url: str) -> str:
    """A hook's address up to its host: whoever knows the rest may post to it."""
    return hide(re.sub(r"(?i)^([a-z]+://[^/?#]+)[/?#].+", rf"\1/{HIDDEN}", url, flags=re.DOTALL), ())


def _only_references(text: str) -> bool:
    """A template without a default tells a variable's name and nothing of its value."""
    return re.fullmatch(r"(?:(?:Bearer|Basic|token) )?\$\{[^{}]*\}", text) is not None and ":-" not in text
