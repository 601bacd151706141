"""References in settings: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${file:PATH}`, and `$${` for a literal `${`.

A value that was put in is never read for references again, so nothing in the environment can reach
for another variable or for a file.
"""

import os
import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from squidbot.config.secrets import tells_a_place
from squidbot.core.domain.errors import Problem

_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)(\}?)")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
FORMS = "${VAR}, ${VAR:-default}, ${env:VAR} and ${file:PATH}"


def surroundings() -> Mapping[str, str]:
    """The environment, with `PWD` where we are: whoever starts us from elsewhere may have left its own, or none."""
    said = os.environ.get("PWD", "")
    try:
        here = said if said and Path(said).samefile(".") else str(Path.cwd())
    except OSError:  # what it names is not there
        here = str(Path.cwd())
    return ChainMap({"PWD": here}, os.environ)


def has_references(text: str) -> bool:
    """Whether `text` has a reference to fill (an escaped `$${` is none)."""
    return any(match[0] != "$${" for match in _REFERENCE.finditer(text))


def without_references(value: Any) -> Any:
    """A tree without the strings that have a reference, and with `$${` unescaped in the others."""
    match value:
        case str():
            return value.replace("$${", "${")
        case Mapping():
            return {key: without_references(part) for key, part in value.items() if not _is_reference(part)}
        case list() | tuple():
            return [without_references(part) for part in value if not _is_reference(part)]
        case _:
            return value


def _is_reference(value: Any) -> bool:
    return isinstance(value, str) and has_references(value)


def join_path(path: str, *steps: str | int) -> str:
    """`path` and the way on from it, as people write it: `tools.mcp_servers.git.args[2]`."""
    for step in steps:
        if isinstance(step, int):
            path = f"{path}[{step}]"
        elif re.fullmatch(r"[\w$-]+", step):
            path = f"{path}.{step}" if path else step
        else:
            path = f"{path}[{step[:60]!r}]"
    return path


@dataclass(slots=True)
class Filler:
    """Fills one text after the other, and remembers what came from outside and what could not be filled."""

    variables: Mapping[str, str]
    read: Callable[[str], str]
    """Reads a secret file; raises OSError or ValueError."""
    public: frozenset[str] = frozenset()
    """Variables whose values are no secrets: everybody's environment has them."""
    lenient: bool = False
    """Whether what is missing becomes an empty string; it is noted as a problem all the same."""
    taken: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def text(self, template: str, path: str) -> str:
        """`template` with its references filled; one that cannot be stays as it is (empty, if lenient)."""

        def put(match: re.Match[str]) -> str:
            if match[0] == "$${":
                return "${"
            try:
                return self._value(match[1], closed=bool(match[2]))
            except LookupError as missing:
                self.problems.append(Problem(path, *missing.args))
                return "" if self.lenient else match[0]

        return _REFERENCE.sub(put, template)

    def tree(self, value: Any, path: str) -> Any:
        """A JSON tree with the references in all of its strings filled; keys are left alone."""
        match value:
            case str():
                return self.text(value, path)
            case Mapping():
                return {key: self.tree(part, join_path(path, str(key))) for key, part in value.items()}
            case list() | tuple():
                return [self.tree(part, join_path(path, index)) for index, part in enumerate(value)]
            case _:
                return value

    def _value(self, reference: str, *, closed: bool) -> str:
        if closed and reference.startswith("file:"):
            return self._secret_file(reference.removeprefix("file:"))
        variable = _VARIABLE.fullmatch(reference) if closed else None
        if variable is None:
            raise LookupError(
                f"{'${' + reference[:40] + ('}' if closed else '')!r} is no reference",
                f"Known are {FORMS}; a literal '${{' is written '$${{'.",
            )
        name, default = variable.groups()
        value = self.variables.get(name)
        # As in a shell: `:-` also stands in for a variable that is set and empty.
        if value is None or (value == "" and default is not None):
            if default is None:
                raise LookupError(f"the variable {name!r} is not set", f"Set it, or write '${{{name}:-default}}'.")
            return str(default)
        if name not in self.public and not tells_a_place(name, value):
            self.taken.add(value)
        return value

    def _secret_file(self, path: str) -> str:
        try:
            value = self.read(path)
        except OSError as error:
            raise LookupError(f"the file {path!r} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise LookupError(f"the file {path!r} cannot be used: {error}") from error
        self.taken.add(value)
        return value


def parse_env_file(text: str) -> Iterator[tuple[str, str]]:
    """The variables of an env file: `NAME=value`, `export NAME="value"`, comments and blank lines.

    Raises ValueError, with the number of the line and never its text: it may hold a secret.
    """
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip().removeprefix("export ").lstrip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = stripped.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", name.rstrip()):
            raise ValueError(f"line {number} is not NAME=value")
        yield name.rstrip(), _unquoted(value.strip())


def _unquoted(value: str) -> str:
    quoted = re.fullmatch(r"""(?:"((?:[^"\\]|\\.)*)"|'([^']*)')\s*(?:#.*)?""", value)
    if quoted is None:
        return re.split(r"\s#", value, maxsplit=1)[0].rstrip()
    if quoted[2] is not None:
        return quoted[2]
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t", "r": "\r"}.get(match[1], match[1]), quoted[1])
