"""The one place where secrets are taken out: before log, audit, error and screen.

Known values go in every form in which they travel (plain, quoted, percent-encoded, base64); unknown ones by their
shape (tokens of well-known makers, JWTs, keys, passwords in urls) and by the key they stand under. What is taken out
leaves a mark, `[redacted:3fa9c1]`, which is equal for equal secrets and tells nothing else.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Final

from squidbot.core.domain.known_secrets import KnownSecrets
from squidbot.core.domain.token_shapes import runs, without_places, without_tokens

_SPELLED = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NAME = re.compile(
    r"(?:^|[-_. ])(?:pass(?:word|wd|phrase)|pwd|secrets?|token|authorization|cookies?|api[-_ ]?key|access[-_ ]?key"
    r"|private[-_ ]?key|credentials?)$",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(
    r"(?:^|[-_. ])(?:page|next|cursor|continuation|sync|progress|cancel(?:lation)?)[-_. ]token$", re.IGNORECASE
)
_BEGINS = re.compile(r"(?<=[dDeEnNsStTyY\\])[\"']\s*:\s*(\\*[\"'])")
"""Where, in JSON inside of a text, a name ends and a string begins; inside of a string there are backslashes before."""
_ENDINGS = (
    *("password", "passwd", "passphrase", "pwd", "secret", "secrets", "token", "authorization", "cookie", "cookies"),
    *("key", "credential", "credentials"),
)
_LAST_NAME = re.compile(r"[\"'\\]")
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_MOST_NAMES = 4_096
_NAME_ENDS: Final = frozenset(
    end + quote
    for end in ("ord", "swd", "ase", "pwd", "ret", "ets", "ken", "ion", "kie", "ies", "key", "ial", "als")
    for quote in "\"'"
)
"""The last letters of all names that tell a secret, with the quote behind them."""
_ESCAPED_QUOTES: Final = ('\\"', "\\'")


def _as_json(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


_written: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_as_json).encode


@lru_cache(maxsize=_MOST_NAMES)
def names_a_secret(key: str) -> bool:
    """Whether what stands under this key is a secret by its name."""
    words = _SPELLED.sub("_", key)
    return _NAME.search(words) is not None and _NO_SECRET.search(words) is None


class Redactor:
    """Takes secrets out of texts and trees. `secrets` is looked at anew when it has grown."""

    def __init__(self, secrets: Collection[str] = (), *, salt: bytes = b"squidbot") -> None:
        self._secrets = secrets
        self._salt = salt
        self._count = -1
        self._learnt = KnownSecrets((), self.mark)
        self._names: dict[str, str] = {}

    @property
    def knows_any(self) -> bool:
        """Whether there is any secret of the settings to look for."""
        return bool(self._secrets)

    def text(self, text: str) -> str:
        """`text` without known secrets and without what looks like one."""
        text = self._shapeless(text)
        return self._told(text) if _tells(text) else text

    def name(self, text: str) -> str:
        """As `text`, for names, of which the same few come again and again."""
        self._known()
        found = self._names.get(text)
        if found is None:
            if len(self._names) >= _MOST_NAMES:
                self._names.clear()
            found = self._names[text] = self.text(text)
        return found

    def known_bytes(self, data: bytes) -> bytes:
        """`data` without the secrets of the settings."""
        if not self._known().are_in(data):
            return data
        return self.known(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def known(self, text: str) -> str:
        """`text` without the secrets of the settings, in whatever form."""
        return self._known().out_of(text)

    def may_know_any_of(self, value: Any) -> bool:
        """Whether a string of this JSON tree may have a secret of the settings in it: False is certain, and quick to see."""
        return self._known().may_be_in_json(_written(value))

    def tree(self, value: Any, key: str = "") -> Any:
        """A JSON tree without secrets, also without those that stand under a telling key."""
        match value:
            case str():
                return self.mark(value) if value and key and names_a_secret(key) else self.text(value)
            case Mapping():
                # All that stands under `cookies` is one; but a schema says of `password` only what it must be.
                above = key if key and names_a_secret(key) and value.get("type") not in _TYPES else ""
                return {self.text(str(name)): self.tree(part, above or str(name)) for name, part in value.items()}
            case list() | tuple():
                return [self.tree(part, key) for part in value]
            case _:
                return value

    def json(self, value: Any) -> str:
        """A JSON tree as text, without secrets."""
        text = _written(value)
        # A private key has line ends, and is to leave the same mark here as in a text.
        if "PRIVATE KEY" in text or _tells(text):
            text = _written(self.tree(value))
        text = self._shapeless(text)
        return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()

    def mark(self, secret: str) -> str:
        """What stands in the place of `secret`; the same for the same one."""
        return (
            f"[redacted:{hmac.digest(self._salt, secret.encode('utf-8', 'surrogatepass'), hashlib.sha256).hex()[:6]}]"
        )

    def _marked(self, found: re.Match[str]) -> str:
        return found.group() if found.group().startswith("[redacted:") else self.mark(found.group())

    def _shapeless(self, text: str) -> str:
        # Each once: names of fields come again and again.
        found = set(runs(text))
        unknown = self._known().out_of(text, found)
        if unknown is not text:
            found = set(runs(unknown))
        return without_places(without_tokens(unknown, found, self._marked), self._marked)

    def _told(self, text: str) -> str:
        """`text` without the strings that stand under a telling name in JSON inside of it, as most answers are."""
        kept, done = [], 0
        lower = text.replace("\u0130", "i").lower()  # the one letter that becomes two
        for found in _BEGINS.finditer(text):
            end = found.start()
            while end and text[end - 1] == "\\":
                end -= 1
            if end < done or not lower.endswith(_ENDINGS, done, end):
                continue
            name = _LAST_NAME.split(text[max(end - 64, done) : end])[-1]
            begin = found.end()
            close = _end_of_string(text, begin, found[1])
            value = text[begin:close]
            if close > begin and names_a_secret(name) and not _is_hidden(value):
                kept += [text[done:begin], self.mark(value)]
                done = close
        return "".join([*kept, text[done:]]) if kept else text

    def _known(self) -> KnownSecrets:
        if len(self._secrets) != self._count:
            secrets = frozenset(self._secrets)
            self._count = len(secrets)
            self._learnt = KnownSecrets(secrets, self.mark)
            self._names.clear()
        return self._learnt


def _is_hidden(value: str) -> bool:
    """Whether somebody took the secret out already."""
    return value.startswith("[redacted:") or not value.strip("*")


def _end_of_string(text: str, begin: int, quote: str) -> int:
    """Where the string that begins there ends; -1 if it does not.

    In JSON in JSON a quote has one backslash, then three, then seven; one that is inside of the string has more, and a
    backslash that is its last letter stands before as two, four, eight.
    """
    own = len(quote) - 1
    at = text.find(quote[-1], begin)
    while at >= 0:
        first = at
        while first > begin and text[first - 1] == "\\":
            first -= 1
        if (at - first) % (2 * own + 2) == own:
            return at - own
        at = text.find(quote[-1], at + 1)
    return -1


def _tells(text: str) -> bool:
    """Whether a name in quotes with a colon behind it, as JSON has them, tells a secret."""
    parts = text.split(":")
    parts.pop()
    for part in parts:
        # What is passed over here cannot be such a name; that is nearly all.
        if part[-4:].lower() in _NAME_ENDS or part[-2:] in _ESCAPED_QUOTES or part[-1:].isspace():
            named = part.rstrip()
            if named[-1:] in ("'", '"') and names_a_secret(_LAST_NAME.split(named[:-1].rstrip("\\")[-64:])[-1]):
                return True
    return False
