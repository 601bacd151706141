"""The rules for single values of a server entry: each is a function from a value to what is wrong with it, or None."""

import codecs
import re
from collections.abc import Sequence
from urllib.parse import SplitResult, parse_qs, urlsplit

from squidbot.config.variables import has_references

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def encoding_fault(encoding: str) -> str | None:
    """Messages are lines: only a codec in which a line ends in the byte 0x0a can carry them."""
    try:
        codecs.lookup(encoding)
        ends_in_newline = "\n".encode(encoding) == b"\n"
    except (LookupError, UnicodeError, ValueError):
        return "no text encoding of this name"
    return None if ends_in_newline else "a newline is not the single byte 0x0a in this encoding"


def url_fault(url: str, schemes: Sequence[str]) -> str | None:
    """What makes `url` unusable; as long as it has references, only what is certain already. Never quotes it."""
    if re.search(r"[\x00-\x20\x7f]", url):
        return "a url has no spaces, newlines or control characters"
    scheme, separator, _ = url.partition("://")
    if separator and not has_references(scheme) and scheme.lower() not in schemes:
        return f"the scheme must be {_either(schemes)}"
    if has_references(url):
        return None
    if not separator:
        return f"not a url; it must start with {_either([f'{scheme}://' for scheme in schemes])}"
    try:
        parts = urlsplit(url)
        valid = bool(parts.hostname or _is_local(parts)) and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    return None if valid else "the host or the port is not valid"


def _is_local(parts: SplitResult) -> bool:
    """Whether a database has no host by right: it is a file, or its server listens on a socket of this machine."""
    if parts.scheme == "sqlite":
        return parts.path not in ("", "/")
    return parts.scheme in ("postgresql", "postgres") and bool(parse_qs(parts.query).get("host"))


def header_fault(name: str, value: str) -> str | None:
    """What a request could not carry."""
    if not _HEADER_NAME.fullmatch(name):
        return "not a valid header name"
    if _CONTROL.search(value):
        return "a header's value has no newlines or control characters"
    return None if value.isascii() else "a header's value is plain ASCII"


def variable_fault(name: str, value: str) -> str | None:
    """What no process can be given."""
    if not name or "=" in name or "\0" in name:
        return "not a valid name for a variable"
    return "a variable's value has no NUL character" if "\0" in value else None


def command_fault(command: str) -> str | None:
    """What cannot be the name of a program."""
    if not command.strip():
        return "empty; name the program to start"
    return "a command has no NUL character or newline" if re.search(r"[\0\r\n]", command) else None


def _either(words: Sequence[str]) -> str:
    return " or ".join(words)
