"""Which package a command runs by its name, and what is known of such packages: missing ones, empty ones, holed ones."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, TypeAlias

Registry: TypeAlias = Literal["pypi", "npm"]

_RUNNERS: Mapping[tuple[str, ...], Registry] = {
    ("uvx",): "pypi",
    ("uv", "tool", "run"): "pypi",
    ("pipx", "run"): "pypi",
    ("npx",): "npm",
    ("npm", "exec"): "npm",
    ("pnpm", "dlx"): "npm",
    ("yarn", "dlx"): "npm",
    ("bunx",): "npm",
}
_NAMING = frozenset({"--from", "--spec", "-p", "--package"})
"""Options that name the package apart from the command that it brings."""
_TAKES_VALUE = frozenset({"--python", "--with", "--index-url", "--extra-index-url", "--cache", "-c", "--call"})

NOT_THERE: Mapping[tuple[Registry, str], str] = {
    ("pypi", "mcp-server-github"): "no package of this name exists on PyPI, and whoever takes it runs code here",
    ("pypi", "mcp-server-filesystem"): "no package of this name exists on PyPI, and whoever takes it runs code here",
    ("pypi", "mcp-server-everything"): "no package of this name exists on PyPI, and whoever takes it runs code here",
    ("pypi", "mcp-server-postgres"): "no package of this name exists on PyPI, and whoever takes it runs code here",
    ("pypi", "mcp-server-slack"): "no package of this name exists on PyPI, and whoever takes it runs code here",
    ("pypi", "mcp-server-puppeteer"): "no package of this name exists on PyPI, and whoever takes it runs code here",
    ("pypi", "mcp-server-brave-search"): "the package of this name on PyPI is an empty placeholder",
    ("npm", "@modelcontextprotocol/server-git"): "npm has no package of this name; the git server is on PyPI",
    ("npm", "@modelcontextprotocol/server-time"): "npm has no package of this name; the time server is on PyPI",
    ("npm", "@modelcontextprotocol/server-fetch"): "npm has no package of this name; the fetch server is on PyPI",
    ("npm", "@modelcontextprotocol/server-sqlite"): "npm has no package of this name; the sqlite server is on PyPI",
    ("npm", "@modelcontextprotocol/server-jira"): "npm has no package of this name",
    ("npm", "mcp-server-git"): "npm has no package of this name, and whoever takes it runs code here",
    ("npm", "mcp-server-time"): "npm has no package of this name, and whoever takes it runs code here",
}
"""Names that people write and that start nothing, or something that is not what they think."""

HOLED: Mapping[tuple[Registry, str], tuple[str, str]] = {
    ("npm", "mcp-remote"): ("0.1.16", "CVE-2025-6514: a server can run commands on the client"),
    ("npm", "@modelcontextprotocol/inspector"): ("0.14.1", "CVE-2025-49596: any web page can run commands"),
    ("npm", "@modelcontextprotocol/server-filesystem"): ("2025.7.1", "CVE-2025-53109, -53110: ways out of the folder"),
    ("npm", "figma-developer-mcp"): ("0.6.3", "CVE-2025-53967: arguments reach a shell"),
    ("pypi", "mcp-server-git"): ("2025.12.18", "CVE-2025-68143, -68144, -68145: any repository, any option of git"),
}
"""The first version without a known hole, and what the hole was."""

MALICIOUS: Mapping[tuple[Registry, str], str] = {
    ("npm", "postmark-mcp"): "it was published to copy all mail to its maker",
}


@dataclass(frozen=True, slots=True)
class Package:
    """What a command fetches and runs."""

    registry: Registry
    name: str
    version: str | None


def package_of(command: str, args: Sequence[str]) -> Package | None:
    """The package that a command line runs by name, if it is one that does."""
    words = [PurePath(command).name.removesuffix(".exe").removesuffix(".cmd"), *args]
    for runner, registry in _RUNNERS.items():
        if tuple(words[: len(runner)]) == runner:
            spec = _spec(words[len(runner) :])
            return None if spec is None else _parsed(registry, spec)
    return None


def shortcomings(package: Package) -> Iterator[tuple[str, str]]:
    """What is wrong with running this package, each with what to do about it."""
    key = (package.registry, package.name)
    if key in NOT_THERE:
        yield f"it runs {package.name!r} by name: {NOT_THERE[key]}", "Name a package that its maker publishes."
        return
    if key in MALICIOUS:
        yield f"it runs {package.name!r}: {MALICIOUS[key]}", "Remove it, and change every secret that it was given."
        return
    if package.version is None:
        mark = "==" if package.registry == "pypi" else "@"
        yield (
            f"it runs {package.name!r} without a version: tomorrow that may be another program",
            f"Pin it: {package.name}{mark}VERSION.",
        )
    elif key in HOLED and _numbers(package.version) < _numbers(HOLED[key][0]):
        fixed, hole = HOLED[key]
        yield f"{package.name} {package.version} has a known hole ({hole})", f"Take {fixed} or newer."


def _spec(words: Sequence[str]) -> str | None:
    rest = iter(words)
    for word in rest:
        option, has_value, value = word.partition("=")
        if option in _NAMING:
            return value if has_value else next(rest, None)
        if word in _TAKES_VALUE:
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return None


def _parsed(registry: Registry, spec: str) -> Package | None:
    if "://" in spec or spec.startswith((".", "/", "git+")):
        return None
    if registry == "pypi":
        name, _, version = re.sub(r"\[.*?\]", "", spec).replace("@", "==", 1).partition("==")
        return Package(registry, re.sub(r"[-_.]+", "-", re.split(r"[<>~!;\s]", name)[0]).lower(), _exact(version))
    name, _, version = spec[1:].partition("@") if spec.startswith("@") else spec.partition("@")
    return Package(registry, f"@{name}" if spec.startswith("@") else name, _exact(version))


def _exact(version: str) -> str | None:
    return version if re.match(r"\d+(\.\d+)*", version) and not re.search(r"[\^~*xX<>|\s]", version) else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:4])
