"""Reads the project's own source as syntax trees, so that rules about it can be held without importing it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Module:
    """One file of Python, parsed."""

    name: str
    place: str
    tree: ast.Module

    def at(self, node: ast.AST) -> str:
        return f"{self.place}:{getattr(node, 'lineno', 1)}"


@dataclass(frozen=True)
class Import:
    """One imported module, and whether a function has to run before it is."""

    module: str
    node: ast.stmt
    late: bool


@cache
def modules(folder: str) -> tuple[Module, ...]:
    """Every module under `folder` of the project."""
    return tuple(
        parse(path.read_text("utf-8"), path.relative_to(ROOT)) for path in sorted((ROOT / folder).rglob("*.py"))
    )


def parse(text: str, path: Path) -> Module:
    parts = path.with_suffix("").parts
    return Module(
        name=".".join(parts[:-1] if parts[-1] == "__init__" else parts),
        place=path.as_posix(),
        tree=ast.parse(text, path.as_posix()),
    )


def imports(module: Module) -> Iterator[Import]:
    """What the module imports, as absolute names; `from a import b` counts as `a.b`, which covers both."""
    for node, late in _statements(module.tree, late=False):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(alias.name, node, late)
            case ast.ImportFrom(module=source, names=names, level=level):
                prefix = "." * level + (source or "")
                for alias in names:
                    yield Import(f"{prefix}.{alias.name}", node, late)


def _statements(node: ast.AST, *, late: bool) -> Iterator[tuple[ast.AST, bool]]:
    for child in ast.iter_child_nodes(node):
        inside = late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield child, inside
        yield from _statements(child, late=inside)


def within(name: str, prefixes: frozenset[str] | tuple[str, ...]) -> bool:
    """Whether a dotted name is one of `prefixes` or below one of them."""
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)
