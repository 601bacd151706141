"""Reads a settings document, JSON or YAML, within bounds, and says where in it a fault is."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from squidbot.config.files import display, read_text
from squidbot.config.jsonc import JSONSyntaxError, Location, parse_jsonc
from squidbot.config.report import kind_of, looks_secret
from squidbot.config.secrets import is_secret_name
from squidbot.core.domain.errors import ConfigError, Problem

_MAX_DEPTH = 100
_MAX_NODES = 100_000
_YAML = "tag:yaml.org,2002:"
_SETTING = re.compile(r"""(["']?)([\w.-]+)\1\s*[:=]\s*(["']?)([^"'{}\[\],\s][^"'{},]*)""")


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says, and on which line each part of it stands."""

    value: dict[str, Any]
    lines: dict[Location, int]


class _Loader(yaml.SafeLoader):
    """YAML without dates: a protocol revision such as 2025-11-25 is text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != f"{_YAML}timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(path: Path) -> Document:
    """The document in a file. Raises ConfigError with line, column and the line itself if it is none."""
    try:
        text = read_text(path)
    except OSError as error:
        raise ConfigError(f"{display(path)} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{display(path)} cannot be read: {error}") from None
    return parse(text, name=display(path), is_json=_is_json(path, text))


def parse(text: str, *, name: str, is_json: bool) -> Document:
    """The document in `text`. Raises ConfigError."""
    if not text.strip():
        raise ConfigError(f"{name} is empty", hint="'squidbot init' writes a file to start from.")
    document = _json(text, name) if is_json else _yaml(text, name)
    if not isinstance(document.value, dict):
        raise ConfigError(f"{name} holds {kind_of(document.value)}; settings are an object of keys and values")
    return document


def _is_json(path: Path, text: str) -> bool:
    if path.suffix.lower() in {".yaml", ".yml"}:
        return False
    return path.suffix.lower() in {".json", ".jsonc"} or text.lstrip().startswith(("{", "//", "/*"))


def _json(text: str, name: str) -> Document:
    try:
        document = parse_jsonc(text)
    except JSONSyntaxError as error:
        line = text.count("\n", 0, error.offset)
        column = error.offset - (text.rfind("\n", 0, error.offset) + 1)
        raise _syntax_error(name, "JSON", str(error), text=text, line=line, column=column) from None
    starts = [match.start() for match in re.finditer("\n", text)]
    lines = {place: bisect_left(starts, span.key) + 1 for place, span in document.spans.items()}
    return Document(document.value, lines)


def _yaml(text: str, name: str) -> Document:
    lines: dict[Location, int] = {}
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        for place, part in _walk(node):
            lines.setdefault(place, part.start_mark.line + 1)
        value: Any = loader.construct_document(node) if node else None
        return Document(value, lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = error.problem or error.context or "it cannot be read"
        line, column = (mark.line, mark.column) if mark else (0, 0)
        raise _syntax_error(name, "YAML", words, text=text, line=line, column=column) from None
    except RecursionError:
        raise ConfigError(f"{name} is nested too deeply to be settings") from None
    except (yaml.YAMLError, ValueError, LookupError, ArithmeticError, AttributeError, TypeError):
        # What is left are values that deny the tag in front of them (`!!int x`) and characters that YAML excludes.
        raise ConfigError(f"{name} is not valid YAML: a value or character in it cannot be read") from None


def _walk(root: yaml.Node | None) -> Iterator[tuple[Location, yaml.Node]]:
    """Every node with its place; stops at what is too deep or too much, so that no anchor can blow it up."""
    waiting: list[tuple[Location, yaml.Node]] = [((), root)] if root else []
    seen = 0
    while waiting:
        place, node = waiting.pop()
        seen += 1
        if seen > _MAX_NODES or len(place) > _MAX_DEPTH:
            raise _fault("too large or too deeply nested to be settings", node)
        if not node.tag.startswith(_YAML):
            raise _fault(f"the tag {node.tag[:60]!r} is not known here", node)
        yield place, node
        if isinstance(node, yaml.MappingNode):
            waiting += _members(place, node)
        elif isinstance(node, yaml.SequenceNode):
            waiting += [((*place, index), item) for index, item in enumerate(node.value)]


def _members(place: Location, node: yaml.MappingNode) -> Iterator[tuple[Location, yaml.Node]]:
    keys = set()
    for key, value in node.value:
        if key.tag == f"{_YAML}merge":
            yield place, value
            continue
        if key.tag != f"{_YAML}str":
            raise _fault(f"the key {str(key.value)[:40]!r} is no text; put it in quotes", key)
        if key.value in keys:
            raise _fault(f"the key {key.value[:60]!r} appears twice", key)
        keys.add(key.value)
        yield (*place, key.value), value


def _fault(words: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=words, problem_mark=node.start_mark)


def _syntax_error(name: str, kind: str, words: str, *, text: str, line: int, column: int) -> ConfigError:
    shown = (text.split("\n")[line : line + 1] or [""])[0]
    # A window around the fault: a file of one long line is no reason for a report of one.
    start = max(0, column - 60)
    window = _without_secrets(shown.replace("\t", " ").rstrip())[start : start + 100]
    place = f"line {line + 1}, column {column + 1}"
    return ConfigError(
        f"{name} is not valid {kind}: {words}, {place}:", [Problem("", f"{window}\n  {'^':>{column - start + 1}}")]
    )


def _without_secrets(line: str) -> str:
    """The line with what may be a secret starred out, at its full length so that the mark below still points right."""
    for match in _SETTING.finditer(line):
        if is_secret_name(match[2]):
            line = line[: match.start(4)] + "*" * len(match[4]) + line[match.end(4) :]
    return re.sub(r"[\w+/=.-]{16,}", lambda match: "*" * len(match[0]) if looks_secret(match[0]) else match[0], line)
