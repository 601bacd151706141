"""What is allowed in the settings and still unwise, server by server; `doctor` tells it."""

import ipaddress
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from squidbot.config.packages import doubts
from squidbot.config.schema import MCPServerConfig, Settings
from squidbot.config.secrets import is_secret_name, worth_hiding
from squidbot.core.domain.errors import Problem

_TOKEN = re.compile(
    r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|xox[abprs]-[\w-]{10,}"
    r"|AKIA[0-9A-Z]{16}|eyJ[\w-]{10,}\.[\w-]{10,}\.|AIza[\w-]{30,}|ATATT[\w-]{20,}|BSA[\w-]{20,}"
)
"""The shapes of well-known tokens."""
_SECRET_OPTION = re.compile(r"^--?[\w-]*(token|secret|password|passwd|api[-_]?key)(=|$)", re.IGNORECASE)
_SECRET_VARIABLE = re.compile(
    r"^(?:--env=|-e)?\w*(token|secret|password|passwd|api[-_]?key|access[-_]?key)=.", re.IGNORECASE
)
_REFERENCE = re.compile(r"\$\{[^{}]*\}")
_GIT_SERVER = re.compile(r"mcp[-_]server[-_]git(?![A-Za-z0-9_-]).*")
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "fish", "cmd", "cmd.exe", "powershell", "pwsh"})


def advice(settings: Settings) -> list[Problem]:
    """Everything unwise about the enabled servers, each with its path in the settings."""
    return [
        problem
        for name, server in settings.tools.mcp_servers.items()
        if server.enabled
        for problem in _of_server(f"tools.mcp_servers.{name}", server, settings.source)
    ]


def doubtful(settings: Settings) -> frozenset[str]:
    """The enabled servers of which it is in doubt what their commands would fetch and run."""
    return frozenset(
        name
        for name, server in settings.tools.mcp_servers.items()
        if server.enabled and server.command is not None and any(doubts(server.command, server.args))
    )


def _of_server(at: str, server: MCPServerConfig, source: Path | None) -> Iterator[Problem]:
    if server.command is not None:
        yield from _of_command(at, server.command, server.args)
    if server.url is not None:
        yield from _of_url(at, server.url, server.written.url or server.url)
    if server.env_file is not None:
        yield from _of_env_file(at, (source.parent if source else Path()) / Path(server.env_file).expanduser())


def _of_command(at: str, command: str, args: list[str]) -> Iterator[Problem]:
    for message, hint in doubts(command, args):
        yield Problem(f"{at}.args", message, hint)
    words = [Path(command).name, *args]
    if any(_GIT_SERVER.fullmatch(word.rpartition("/")[2]) for word in words) and not any(
        word in ("-r", "--repository") or word.startswith("--repository=") for word in args
    ):
        yield Problem(
            f"{at}.args", "mcp-server-git without --repository opens any repository on disk", "Add --repository PATH."
        )
    if Path(command).name in _SHELLS and any(word in ("-c", "/c", "-Command") for word in args):
        yield Problem(f"{at}.command", "it goes through a shell, which reads more into its arguments than they say")
    yield from _secrets_in_args(at, args)


def _secrets_in_args(at: str, args: list[str]) -> Iterator[Problem]:
    hint = "Give it in `env`, as ${VAR}: every program on the machine can read arguments."
    option_before = False
    for number, word in enumerate(args):
        option = _SECRET_OPTION.match(word)
        given_here = option is not None and option.group(2) == "="
        given_here |= _SECRET_VARIABLE.match(word) is not None
        if _TOKEN.search(word) or given_here or _tells_secret(word) or (option_before and not word.startswith("-")):
            yield Problem(f"{at}.args[{number}]", "a secret is given as an argument", hint)
        option_before = option is not None and not given_here


def _of_url(at: str, url: str, written: str) -> Iterator[Problem]:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return
    if parts.scheme in ("http", "ws") and "${" not in host and not _is_loopback(host):
        secure = "https" if parts.scheme == "http" else "wss"
        yield Problem(
            f"{at}.url",
            f"plain {parts.scheme} beyond this machine: tokens and answers can be read",
            f"Use {secure}://.",
        )
    if parts.username or parts.password:
        yield Problem(f"{at}.url", "it carries a password", "Give it in `headers`, as ${VAR}.")
    elif _tells_secret(written):
        yield Problem(f"{at}.url", "its query carries a secret", "Give it in `headers`, as ${VAR}, or here as ${VAR}.")


def _tells_secret(url: str) -> bool:
    """Whether a url has a password before its host, or a secret itself, and no reference to one, in its query."""
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query)
    except ValueError:
        return False
    if not parts.scheme or not parts.netloc:
        return False
    values = [value for name, value in query if is_secret_name(name) or _TOKEN.search(value)]
    return bool(parts.password) or bool(worth_hiding(value for value in values if not _REFERENCE.search(value)))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _of_env_file(at: str, env_file: Path) -> Iterator[Problem]:
    try:
        mode = env_file.stat().st_mode
    except OSError:
        return
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        yield Problem(f"{at}.env_file", "everybody on this machine can read it", f"Run `chmod 600 {env_file}`.")
