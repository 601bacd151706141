"""Secrets that nobody told us of, by how they look and where they stand.

Most texts have none, and that must be quick to see: a token of a well-known maker is, or has in it, a run of twelve and more letters,
digits, `_` and `-`, and begins where a word does. So only runs are looked at, and patterns tried only when one begins so.
"""

import re
from collections.abc import Callable, Collection, Iterator
from typing import Final

_RUN: Final = b"\1" * 12
_IN_RUNS: Final = bytes(chr(code).isascii() and (chr(code).isalnum() or chr(code) in "_-") for code in range(256))
_TELLING: Final = b".\\"
_ESCAPES: Final = b"nrtbf"
_WORD = r"[A-Za-z0-9_-]"


def runs(text: str) -> list[bytes]:
    """All of twelve and more characters of a token in a row; with the dot before, as a JWT's second part has one, or backslash."""
    if len(text) < len(_RUN):
        return []
    data = text.encode("utf-8", "surrogatepass")
    place = data.translate(_IN_RUNS)
    found: list[bytes] = []
    begin = place.find(_RUN)
    while begin >= 0:
        end = place.find(0, begin + len(_RUN))
        if end < 0:
            end = len(place)
        found.append(data[begin - 1 : end] if begin and data[begin - 1] in _TELLING else data[begin:end])
        begin = place.find(_RUN, end)
    return found


def _at_beginning(prefix: str) -> str:
    """A pattern for `prefix` where a word begins, be it behind a line end that JSON has written as a letter.

    A pattern that begins with plain letters is looked for many times faster than one that begins with a boundary.
    """
    return rf"{prefix}(?:(?<!\w{prefix})|(?<=\\[nrtbf]{prefix})|(?<=\\u00..{prefix}))"


def _token(prefix: str, rest: str) -> tuple[str, re.Pattern[str]]:
    return prefix, re.compile(_at_beginning(prefix) + rest)


_TOKENS: Final = (
    *(_token(f"gh{kind}_", "[A-Za-z0-9]{16,}") for kind in "pousr"),
    _token("github_pat_", "[A-Za-z0-9_]{16,}"),
    _token("glpat-", f"{_WORD}{{16,}}"),
    *(_token(f"{kind}k-", f"(?:{_WORD}{{2,12}}-)?{_WORD}{{20,}}") for kind in "spr"),
    *(_token(f"{kind}k_{use}_", "[A-Za-z0-9]{16,}") for kind in "sr" for use in ("live", "test")),
    *(_token(f"xox{kind}-", "[A-Za-z0-9-]{12,}") for kind in "abprs"),
    _token("xapp-", "[A-Za-z0-9-]{12,}"),
    *(_token(f"A{kind}A", r"[0-9A-Z]{16}\b") for kind in ("KI", "SI")),
    _token("AIza", f"{_WORD}{{35}}"),
    _token("npm_", r"[A-Za-z0-9]{36}\b"),
    _token("pypi-", f"{_WORD}{{32,}}"),
    _token("ATATT", f"{_WORD}{{16,}}[A-Za-z0-9_=-]*"),
    _token("sqb_", f"{_WORD}{{16,}}"),
    _token("eyJ", rf"{_WORD}{{8,}}\.{_WORD}{{16,}}\.{_WORD}*"),
    # Some of these prefixes in base64: ghp_, github_pat_, eyJ, -----BEGIN.
    *(_token(prefix, "[A-Za-z0-9+/_-]{16,}={0,2}") for prefix in ("Z2hwX", "Z2l0aHViX3BhdF", "ZXlK", "LS0tLS1CRUdJTi")),
)
_PREFIXES: Final = tuple(prefix.encode() for prefix, _ in _TOKENS)
_BEGINNINGS: Final = frozenset(prefix[:3] for prefix in _PREFIXES)


def _begins_a_token(run: bytes) -> bool:
    if _is_token_at(run, 0):
        return True
    if run[0] in _TELLING and (
        _is_token_at(run, 1)
        or (run[1] in _ESCAPES and _is_token_at(run, 2))
        or (run[1:4] == b"u00" and _is_token_at(run, 6))
    ):
        return True
    dash = run.find(b"-")
    while dash >= 0:
        if _is_token_at(run, dash + 1):
            return True
        dash = run.find(b"-", dash + 1)
    return False


def _is_token_at(run: bytes, at: int) -> bool:
    return run[at : at + 3] in _BEGINNINGS and run.startswith(_PREFIXES, at)


def without_tokens(text: str, found: Collection[bytes], mark: Callable[[re.Match[str]], str]) -> str:
    """`text` with marks in the place of tokens of well-known makers; `found` are its runs."""
    if not any(map(_begins_a_token, found)) and not (any(run[:1] == b"." for run in found) and "eyJ" in text):
        return text
    for prefix, shape in _TOKENS:
        if prefix in text:
            text = shape.sub(mark, text)
    return text


_KEY: Final = re.compile(r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)")
_BEARER: Final = re.compile(f"{_at_beginning('[Bb]earer ')}|{_at_beginning('Basic ')}")
_CREDENTIALS: Final = re.compile(r"(?=[A-Za-z._~+/-]*[0-9])[A-Za-z0-9._~+/-]{12,}=*")
_ADDRESS: Final = re.compile("://")
_OF_USER: Final = r"[^:/?#@\s\"'\\]{0,256}+:[^/?#@\s\"'\\]{1,512}+(?=@)"
_USER: Final = re.compile(_OF_USER)
"""A name, which may be empty, and a password."""
_ADDRESS_WITH_USER: Final = re.compile(f"://{_OF_USER}")
_PARAMETER: Final = re.compile(r"[?&;](?:token|access_token|api_key|apikey|password|secret)=", re.IGNORECASE)
_PARAMETERS: Final = ("token", "key", "password", "secret")
_VALUE: Final = re.compile(r"[^&;\s\"'\\]+")


def without_places(text: str, mark: Callable[[re.Match[str]], str]) -> str:
    """`text` with marks in the place of what is secret because of where it stands."""
    if "PRIVATE KEY" in text:
        text = _KEY.sub(mark, text)
    if "earer " in text or "Basic " in text:
        text = _replaced(text, _BEARER, _CREDENTIALS, mark)
    if "://" in text and "@" in text and _ADDRESS_WITH_USER.search(text):
        text = _replaced(text, _ADDRESS, _USER, mark)
    if "=" in text and any(part[-8:].lower().endswith(_PARAMETERS) for part in text.split("=")):
        text = _replaced(text, _PARAMETER, _VALUE, mark)
    return text


def _replaced(text: str, before: re.Pattern[str], shape: re.Pattern[str], mark: Callable[[re.Match[str]], str]) -> str:
    """`text` with marks in the place of whatever has the shape and stands right behind `before`."""
    kept: list[str] = []
    done = 0
    for found in _behind(text, before, shape):
        if found.start() >= done:
            kept += (text[done : found.start()], mark(found))
            done = found.end()
    return "".join((*kept, text[done:])) if kept else text


def _behind(text: str, before: re.Pattern[str], shape: re.Pattern[str]) -> Iterator[re.Match[str]]:
    for place in before.finditer(text):
        found = shape.match(text, place.end())
        if found is not None:
            yield found
