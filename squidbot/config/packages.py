"""What a command fetches and runs, and what is known of such packages: missing ones, empty ones, holed ones."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, TypeAlias

Registry: TypeAlias = Literal["pypi", "npm", "jsr"]

_RUNNERS: Mapping[tuple[str, ...], Registry] = {
    ("uvx",): "pypi",
    ("uv", "tool", "run"): "pypi",
    ("pipx", "run"): "pypi",
    ("npx",): "npm",
    ("npm", "exec"): "npm",
    ("npm", "x"): "npm",
    ("pnpm", "dlx"): "npm",
    ("pnpx",): "npm",
    ("yarn", "dlx"): "npm",
    ("bunx",): "npm",
    ("bun", "x"): "npm",
}
_NAMING: Mapping[Registry, frozenset[str]] = {
    "pypi": frozenset({"--from", "--spec"}),
    "npm": frozenset({"-p", "--package"}),
}
"""Options that name the package apart from the command that it brings."""
_WITH = frozenset({"--with", "-w"})
"""Options of uv that name packages to be there as well."""
_TAKES_VALUE = re.compile(
    r"-[cfi]|--(python|call|index|(default-|extra-)?index-url|default-index|find-links|cache|cache-dir|with-requirements"
    r"|with-editable|constraints|overrides|env-file|directory|project|config|config-file|import-map|lock|node-options)"
)
_DENO = frozenset({"run", "x", "serve"})
_ENV_TAKES_VALUE = frozenset({"-u", "--unset", "-C", "--chdir"})
_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
_BARE_LETTERS = "ditPqD"
_BARE_WORD = re.compile(
    r"--(rm|rmi|init|interactive|tty|detach|privileged|read-only|read-only-tmpfs|publish-all|quiet|debug|tls|tlsverify"
    r"|tls-verify|no-healthcheck|oom-kill-disable|sig-proxy|disable-content-trust|replace|no-hosts|no-hostname"
    r"|http-proxy|env-host|passwd|unsetenv-all|remote)"
)
"""Options of a container's run that take no value; all others do."""
_MOVING = re.compile("latest|main|master|head|trunk|dev|develop|edge|nightly|next|canary", re.IGNORECASE)
"""Names of what is another thing tomorrow."""

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


def doubts(command: str, args: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What is wrong with what a command line fetches and runs, each with what to do about it."""
    words = _bare([command, *args])
    image = _image(words)
    if image is not None and _moves_image(image):
        yield (
            f"it runs the image {image!r} without a version: tomorrow that may be another program",
            "Pin it by a tag other than latest, or by its digest: IMAGE@sha256:….",
        )
    for package in packages_of(command, args):
        yield from shortcomings(package)
    for registry, spec in _specs(words):
        if _moves_repository(registry, spec):
            mark = "@" if registry == "pypi" else "#"
            yield (
                "it runs whatever a repository has at the time: no commit or tag is named",
                f"Pin it: URL{mark}COMMIT.",
            )


def packages_of(command: str, args: Sequence[str]) -> list[Package]:
    """The packages that a command line fetches by their names, if it is one that does."""
    specs = _specs(_bare([command, *args]))
    return [package for registry, spec in specs if (package := _parsed(registry, spec)) is not None]


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


def _bare(words: Sequence[str]) -> list[str]:
    """The command itself: without its folder, and without what only runs it."""
    name = PurePath(words[0].replace("\\", "/")).name if words else ""
    name = re.sub(r"\.(exe|cmd|bat)$", "", name, flags=re.IGNORECASE)
    rest = list(words[1:])
    if name == "cmd" and rest and rest[0].lower() == "/c":
        return _bare(rest[1:])
    if name == "env":
        while rest and (rest[0].startswith("-") or "=" in rest[0]):
            del rest[: 2 if rest[0] in _ENV_TAKES_VALUE else 1]
        return _bare(rest) if rest else [name]
    return [name, *rest]


def _specs(words: Sequence[str]) -> Iterator[tuple[Registry, str]]:
    """Every package that is named, as it is named."""
    if words[:1] == ["deno"]:
        rest = iter(words[1:])
        for word in rest:
            kind, _, spec = word.partition(":")
            if kind in ("npm", "jsr"):
                yield "npm" if kind == "npm" else "jsr", _without_path(spec.removeprefix("/"))
            if _TAKES_VALUE.fullmatch(word):
                next(rest, None)
            elif not word.startswith("-") and word not in _DENO:
                return
    elif tuple(words[:2]) == ("uv", "run"):
        yield from _named("pypi", words[2:], runs_by_name=False)
    for runner, registry in _RUNNERS.items():
        if tuple(words[: len(runner)]) == runner:
            yield from _named(registry, words[len(runner) :], runs_by_name=True)


def _named(registry: Registry, words: Sequence[str], *, runs_by_name: bool) -> Iterator[tuple[Registry, str]]:
    rest = iter(words)
    for word in rest:
        option, has_value, value = word.partition("=")
        if option in _NAMING[registry] or (option in _WITH and registry == "pypi"):
            value = value if has_value else next(rest, "")
            runs_by_name &= option in _WITH
            yield from ((registry, part.strip()) for part in _parts(value) if part.strip())
        elif _TAKES_VALUE.fullmatch(word) or (word == "-p" and registry == "pypi"):
            next(rest, None)
        elif not word.startswith("-"):
            if runs_by_name:
                yield registry, word
            return


def _parts(named: str) -> list[str]:
    """One option of uv may name several packages, and one package may be bounded several times: `a,b`, `a>=1,<2`."""
    return re.split(r",(?=\s*[A-Za-z])(?![^\[]*\])", named)


def _without_path(spec: str) -> str:
    """`@scope/name@1/bin` names a file of a package."""
    return "/".join(spec.split("/")[: 2 if spec.startswith("@") else 1])


def _parsed(registry: Registry, spec: str) -> Package | None:
    if "://" in spec or "${" in spec or spec.startswith((".", "/", "~", "git+")) or _shorthand(registry, spec):
        return None
    if registry == "pypi":
        name, _, version = re.sub(r"\[.*?\]", "", spec).replace("@", "==", 1).partition("==")
        return Package(registry, re.sub(r"[-_.]+", "-", re.split(r"[<>~!;\s]", name)[0]).lower(), _exact(version))
    name, _, version = spec[1:].partition("@") if spec.startswith("@") else spec.partition("@")
    return Package(registry, f"@{name}" if spec.startswith("@") else name, _exact(version))


def _shorthand(registry: Registry, spec: str) -> bool:
    """Whether npm would take it for a repository: `owner/name`, `github:owner/name`."""
    return (
        registry == "npm" and re.match(r"(github|gitlab|bitbucket|gist):|[\w-][\w.-]*/[\w.-]+(#|$)", spec) is not None
    )


def _moves_repository(registry: Registry, spec: str) -> bool:
    """Whether it is a repository, and no commit or tag of it is named."""
    if "${" in spec or not (_shorthand(registry, spec) or re.search(r"(^|[@\s])git\+|^git:|\.git(#|@|$)", spec)):
        return False
    path, _, fragment = spec.partition("#")
    reference = fragment if registry == "npm" else path.partition("://")[2].partition("/")[2].rpartition("@")[2]
    if registry != "npm" and "@" not in path.partition("://")[2].partition("/")[2]:
        reference = ""
    return not reference or _MOVING.fullmatch(reference) is not None


def _image(words: Sequence[str]) -> str | None:
    """The image that a container is run from."""
    if not words or words[0] not in _CONTAINERS:
        return None
    rest = iter(words[1:])
    for wanted in ("run", ""):
        word = _positional(rest)
        if word == "container" and wanted:
            word = _positional(rest)
        if wanted and word != wanted:
            return None
    return word


def _positional(words: Iterator[str]) -> str | None:
    """The next word that is neither an option nor its value."""
    for word in words:
        if word.startswith("--"):
            if "=" not in word and not _BARE_WORD.fullmatch(word):
                next(words, None)
        elif word.startswith("-"):
            valued = word[1:].lstrip(_BARE_LETTERS)
            if len(valued) == 1:
                next(words, None)
        else:
            return word
    return None


def _moves_image(image: str) -> bool:
    if "${" in image or "@" in image:
        return False
    tag = image.rpartition("/")[2].partition(":")[2]
    return not tag or _MOVING.fullmatch(tag) is not None


def _exact(version: str) -> str | None:
    return version if re.match(r"\d+(\.\d+)*", version) and not re.search(r"[\^~*xX<>|\s]", version) else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:4])
