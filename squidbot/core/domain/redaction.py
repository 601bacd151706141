"""The one place where secrets are taken out: before log, audit, error and screen.

Known values go in every form in which they travel (plain, quoted, percent-encoded, base64); unknown ones by their
shape (tokens of well-known makers, JWTs, keys, passwords in urls) and by the key they stand under. What is taken out
leaves a mark, `[redacted:3fa9c1]`, which is equal for equal secrets and tells nothing else.
"""

import base64
import hashlib
import hmac
import html
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import quote, quote_plus

MIN_LENGTH = 4
"""A shorter value is no secret worth the name, and taking it out would mangle every text."""
_LEAST_ENCODED = 8
"""Shorter base64 is found in texts that have nothing to do with it."""
_PIECE = 12
_CHUNKS = re.compile(f"(?s).{{{_PIECE}}}")
_CORE = re.compile("[A-Za-z0-9]+")
_ESCAPE = re.compile("%[0-9A-F]{2}")
_AS_IN_HTML = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}
"""How Go, among others, writes these in JSON."""

_WORD = r"[A-Za-z0-9_-]"
_IN_QUERY = (
    "(?i:"
    + "|".join(f"(?<=[?&;]{name}=)" for name in ("token", "access_token", "api_key", "apikey", "password", "secret"))
    + r")[^&;\s\"'\\]+"
)
Shape: TypeAlias = tuple[tuple[str, ...], re.Pattern[str]]
"""Words of which one must be there for the pattern to be worth trying, and the pattern."""


def _shapes(*given: tuple[tuple[str, ...], str]) -> tuple[Shape, ...]:
    return tuple((hints, re.compile(pattern)) for hints, pattern in given)


_TOKENS = _shapes(
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"\bgh[pousr]_[A-Za-z0-9]{16,}"),
    (("github_pat_",), r"\bgithub_pat_[A-Za-z0-9_]{16,}"),
    (("glpat-",), rf"\bglpat-{_WORD}{{16,}}"),
    # Each by itself: a pattern that begins with plain letters is looked for many times faster.
    *(((prefix,), rf"{prefix}(?<!\w{prefix})(?:{_WORD}{{2,12}}-)?{_WORD}{{20,}}") for prefix in ("sk-", "pk-", "rk-")),
    (("sk_live_", "sk_test_", "rk_live_"), r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    (("xox", "xapp-"), r"\bx(?:ox[abprs]|app)-[A-Za-z0-9-]{12,}"),
    (("AKIA", "ASIA"), r"\bA(?:KI|SI)A[0-9A-Z]{16}\b"),
    (("AIza",), rf"\bAIza{_WORD}{{35}}"),
    (("npm_",), r"\bnpm_[A-Za-z0-9]{36}\b"),
    (("pypi-",), rf"\bpypi-{_WORD}{{32,}}"),
    (("ATATT",), rf"\bATATT{_WORD}{{16,}}[A-Za-z0-9_=-]*"),
    (("sqb_",), rf"\bsqb_{_WORD}{{16,}}"),
    (("eyJ",), rf"\beyJ{_WORD}{{8,}}\.{_WORD}{{16,}}\.{_WORD}*"),
    # The same prefixes in base64: ghp_, github_pat_, eyJ, -----BEGIN.
    (
        ("Z2hwX", "Z2l0aHViX3BhdF", "ZXlK", "LS0tLS1CRUdJTi"),
        r"\b(?:Z2hwX|Z2l0aHViX3BhdF|ZXlK|LS0tLS1CRUdJTi)[A-Za-z0-9+/_-]{16,}={0,2}",
    ),
)
"""Tokens of well-known makers; each has a run of sixteen letters, digits, `_` and `-`."""
_PLACES = _shapes(
    (("PRIVATE KEY",), r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
    (
        ("earer ", "Basic "),
        r"(?:(?<=\b[Bb]earer )|(?<=\bBasic ))(?=[A-Za-z._~+/-]*[0-9])[A-Za-z0-9._~+/-]{12,}=*",
    ),
    (("://",), r"(?<=://)[^/?#@\s\"'\\]{1,256}:[^/?#@\s\"'\\]{1,256}(?=@)"),
    (("token=", "key=", "password=", "secret="), _IN_QUERY),
)
"""Secrets that are told by where they stand."""
_RUN = b"\1" * 16
_IN_RUNS = bytes(chr(code).isascii() and (chr(code).isalnum() or chr(code) in "_-") for code in range(256))


def _has_run(text: str) -> bool:
    """Whether sixteen characters of a token stand in a row anywhere; most texts have none, and this is quick to see."""
    return _RUN in text.encode("utf-8", "surrogatepass").translate(_IN_RUNS)


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
_HINTS = ("pass", "pwd", "secret", "token", "authorization", "cookie", "key", "credential")


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
        self._forms: tuple[tuple[str, str], ...] = ()
        self._plain: dict[str, list[tuple[str, str]]] = {}
        """Those that the pieces do not tell of, by a part that they share and that is looked for first."""
        self._pieces: frozenset[str] = frozenset()
        self._raw: tuple[bytes, ...] = ()
        self._names: dict[str, str] = {}

    @property
    def knows_any(self) -> bool:
        """Whether there is any secret of the settings to look for."""
        return bool(self._secrets)

    def text(self, text: str) -> str:
        """`text` without known secrets and without what looks like one."""
        text = self._shapeless(text)
        return self._told(text) if ('":' in text or "':" in text) and _tells(text) else text

    def name(self, text: str) -> str:
        """As `text`, for names, of which the same few come again and again."""
        if len(self._secrets) != self._count:
            self._learn()
        found = self._names.get(text)
        if found is None:
            if len(self._names) >= _MOST_NAMES:
                self._names.clear()
            found = self._names[text] = self.text(text)
        return found

    def known_bytes(self, data: bytes) -> bytes:
        """`data` without the secrets of the settings."""
        if len(self._secrets) != self._count:
            self._learn()
        if not any(raw in data for raw in self._raw):
            return data
        return self.known(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def known(self, text: str) -> str:
        """`text` without the secrets of the settings, in whatever form."""
        if len(self._secrets) != self._count:
            self._learn()
        if not self._forms:
            return text
        if self._may_have_one(text):
            forms: Iterable[tuple[str, str]] = self._forms
        else:
            forms = [item for core, items in self._plain.items() if core in text for item in items]
            forms.sort(key=_longest)
        for form, mark in forms:
            if form in text:
                text = text.replace(form, mark)
        return text

    def _may_have_one(self, text: str) -> bool:
        """Whether a long form can be in the text: not without a run, nor without one of its pieces at a twelfth place."""
        if not self._pieces or not _has_run(text):
            return False
        return not self._pieces.isdisjoint(_CHUNKS.findall(text))

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
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
        if _tells(text):
            text = json.dumps(self.tree(value), ensure_ascii=False, separators=(",", ":"), default=str)
        return self._shapeless(text).encode("utf-8", "backslashreplace").decode()

    def mark(self, secret: str) -> str:
        """What stands in the place of `secret`; the same for the same one."""
        return (
            f"[redacted:{hmac.digest(self._salt, secret.encode('utf-8', 'surrogatepass'), hashlib.sha256).hex()[:6]}]"
        )

    def _marked(self, found: re.Match[str]) -> str:
        return found.group() if found.group().startswith("[redacted:") else self.mark(found.group())

    def _shapeless(self, text: str) -> str:
        text = self.known(text)
        for hints, shape in (*_TOKENS, *_PLACES) if _has_run(text) else _PLACES:
            if any(hint in text for hint in hints):
                text = shape.sub(self._marked, text)
        return text

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

    def _learn(self) -> None:
        secrets = set(self._secrets)
        self._count = len(secrets)
        whose = {form: secret for secret in sorted(secrets) for form in _forms(secret)}
        forms = {form: self.mark(secret) for form, secret in whose.items()}
        # The longest first, so that no part of one is left.
        self._forms = tuple(sorted(forms.items(), key=_longest))
        long = {form for form in forms if len(form) >= 2 * _PIECE and _has_run(form)}
        self._plain = {}
        for form in forms.keys() - long:
            # What is encoded letter by letter keeps its letters.
            core = max(_CORE.findall(whose[form]), key=len, default="")
            core = core if len(core) >= MIN_LENGTH and core in form else form
            self._plain.setdefault(core, []).append((form, forms[form]))
        self._raw = tuple(secret.encode("utf-8", "surrogatepass") for secret in secrets if len(secret) >= MIN_LENGTH)
        self._names.clear()
        self._pieces = frozenset(form[at : at + _PIECE] for form in long for at in range(len(form) - _PIECE + 1))


def _forms(secret: str) -> Iterator[str]:
    """A secret as it may be found: plain, in HTML, in JSON and JSON inside of that, in a url, in hexadecimal digits, in base64.

    Base64 has three places at which it can begin.
    """
    if len(secret) < MIN_LENGTH:
        return
    yield secret
    yield html.escape(secret)
    yield html.escape(secret, quote=False)
    for ascii_only in (True, False):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        for text in (once, once.replace("/", "\\/"), once.translate(_AS_IN_HTML)):
            yield text
            yield json.dumps(text, ensure_ascii=ascii_only)[1:-1]
    raw = secret.encode("utf-8", "surrogatepass")
    for text in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield text
        yield _ESCAPE.sub(lambda found: found.group().lower(), text)
    for before in range(3):
        # What the bytes before and after contribute to the first and last digits is cut away.
        start = (0, 2, 3)[before]
        end = -(len(raw) + before) % 3
        whole = base64.b64encode(b"\0" * before + raw).decode().rstrip("=")
        core = whole[start : len(whole) - (1 if end else 0)]
        if len(core) >= _LEAST_ENCODED:
            yield core
            yield core.replace("+", "-").replace("/", "_")
    if len(raw) >= _LEAST_ENCODED:
        yield raw.hex()
        yield raw.hex().upper()


def _is_hidden(value: str) -> bool:
    """Whether somebody took the secret out already."""
    return value.startswith("[redacted:") or not value.strip("*")


def _longest(item: tuple[str, str]) -> tuple[int, str]:
    return -len(item[0]), item[0]


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
    """Whether any name that tells a secret can be in the text."""
    lower = text.lower()
    return any(hint in lower for hint in _HINTS)
