"""The secrets of the settings, in every form in which they may be found, and the quick look that clears most texts."""

import base64
import html
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, TypeAlias
from urllib.parse import quote, quote_plus

from squidbot.core.domain.token_shapes import runs

MIN_LENGTH: Final = 4
"""A shorter value is no secret worth the name, and taking it out would mangle every text."""
_LEAST_ENCODED: Final = 8
"""Shorter base64 is found in texts that have nothing to do with it."""
_PIECE: Final = 6
_CORE: Final = re.compile("[A-Za-z0-9]+")
_ESCAPE: Final = re.compile("%[0-9A-F]{2}")
_AS_IN_HTML: Final = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}
"""How Go, among others, writes these in JSON."""

Form: TypeAlias = tuple[str, str]
"""How a secret may be found, and the mark that takes its place."""


class KnownSecrets:
    """Some secrets, and how to see whether a text has any: by a piece of it that no way of writing it down changes."""

    def __init__(self, secrets: Collection[str], mark: Callable[[str], str]) -> None:
        self._pieces: dict[bytes, list[Form]] = {}
        """Forms with a run in them, by all parts of its end of which one is at a sixth place of the run in a text."""
        self._cores: dict[str, list[Form]] = {}
        """The others, by a part that they share."""
        whose = {form: secret for secret in sorted(secrets) for form in _forms(secret)}
        self._shortest = min(map(len, whose), default=0)
        self._everywhere = True
        """Whether JSON leaves all that is looked for as it is."""
        marks = {secret: mark(secret) for secret in secrets}
        for form, secret in whose.items():
            self._add((form, marks[secret]), secret)
        self._raw = tuple(secret.encode("utf-8", "surrogatepass") for secret in secrets if len(secret) >= MIN_LENGTH)

    def out_of(self, text: str, found: Collection[bytes] | None = None) -> str:
        """`text` with marks in the place of secrets; `found` are its runs."""
        if len(text) < self._shortest or not (self._pieces or self._cores):
            return text
        if found is None:
            found = runs(text) if self._pieces else ()
        candidates = self._candidates(text, found)
        # The longest first, so that no part of one is left.
        for form, mark in sorted(candidates, key=_longest) if candidates else ():
            if form in text:
                text = text.replace(form, mark)
        return text

    def may_be_in_json(self, text: str) -> bool:
        """Whether any string of the tree that this text was written from may have a secret in it."""
        if len(text) < self._shortest:
            return False
        return not self._everywhere or bool(self._candidates(text, runs(text) if self._pieces else ()))

    def are_in(self, data: bytes) -> bool:
        """Whether any is in `data` as it is."""
        return any(raw in data for raw in self._raw)

    def _candidates(self, text: str, found: Iterable[bytes]) -> set[Form]:
        candidates: set[Form] = set()
        if self._pieces:
            pieces = {run[at : at + _PIECE] for run in found for at in range(0, len(run) - _PIECE + 1, _PIECE)}
            for piece in pieces & self._pieces.keys():
                candidates.update(self._pieces[piece])
        for core, forms in self._cores.items():
            if core in text:
                candidates.update(forms)
        return candidates

    def _add(self, form: Form, secret: str) -> None:
        run = max(runs(form[0]), key=len, default=b"")
        if run:
            # Not of its beginning, which many tokens share.
            end = run[-2 * _PIECE + 1 :]
            for piece in {end[at : at + _PIECE] for at in range(_PIECE)}:
                self._pieces.setdefault(piece, []).append(form)
            return
        # What is encoded letter by letter keeps its letters.
        core = max(_CORE.findall(secret), key=len, default="")
        if len(core) < MIN_LENGTH or core not in form[0]:
            core = form[0]
            self._everywhere &= json.dumps(core, ensure_ascii=False) == f'"{core}"'
        self._cores.setdefault(core, []).append(form)


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


def _longest(form: Form) -> tuple[int, str]:
    return -len(form[0]), form[0]
