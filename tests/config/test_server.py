"""One server entry: inference, the rules of each transport, references, secrets, the child's environment."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from squidbot.config.schema import MCPConfig, MCPServerConfig
from squidbot.core.domain.errors import ConfigError

CANARY = "canary-9f31c2"


def report(**entry: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        MCPConfig.from_dict({"servers": {"it": entry}})
    return str(caught.value)


@pytest.mark.requirement("A-04")
@pytest.mark.parametrize(("document", "words"), [(None, "found null"), ([], "found a list"), ("x", "found 'x'")])
def test_a_document_of_another_kind_is_no_definition(document: Any, words: str) -> None:
    """An empty YAML file is `None`; nothing at all is not the same as no servers."""
    with pytest.raises(ConfigError, match=f"{words}; expected an object"):
        MCPConfig.from_dict(document)


@pytest.mark.requirement("A-02")
@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"command": "x"}, "stdio"),
        ({"url": "http://h/mcp"}, "http"),
        ({"url": "HTTPS://h/mcp"}, "http"),
        ({"url": "ws://h"}, "websocket"),
        ({"url": "WSS://h"}, "websocket"),
        ({"url": "http://h/sse", "transport": "sse"}, "sse"),
        ({"url": "${BASE}/mcp"}, "http"),
    ],
)
def test_the_transport_is_inferred_when_absent(entry: dict[str, Any], transport: str) -> None:
    """Nobody should have to say twice what the command or the url says."""
    assert MCPServerConfig(**entry).transport == transport


@pytest.mark.requirement("A-02")
def test_a_url_from_a_variable_is_inferred_once_it_is_known() -> None:
    """Before that, nobody can say which it is."""
    config = MCPServerConfig(name="it", url="${BASE}")
    assert config.resolved({"BASE": "wss://h/mcp"}).transport == "websocket"
    with pytest.raises(ConfigError, match="scheme must be http or https"):
        config.resolved({"BASE": "ftp://h"})


@pytest.mark.requirement("A-02")
def test_the_defaults_are_as_promised() -> None:
    """Programs rely on them."""
    entry = MCPConfig.from_dict({"servers": {"it": {"command": "x"}}}).servers["it"]
    assert (entry.name, entry.timeout, entry.sse_read_timeout, entry.request_timeout) == ("it", 30, 300, 60)
    assert (entry.startup_timeout, entry.max_retries, entry.protocol) == (30, 3, "auto")
    assert (entry.terminate_on_close, entry.load_tools, entry.load_prompts, entry.enabled) == (True,) * 4
    assert (entry.lazy, entry.required, entry.read_only, entry.allow, entry.deny) == (False, False, [], None, [])
    assert entry.bounds.model_dump() == {
        "bytes": 10_000_000, "blocks": 10_000, "objects": 100_000, "depth": 200, "tools": 2_000, "pages": 100,
        "notifications": 1_000,
    }  # fmt: skip


@pytest.mark.requirement("A-01")
def test_an_entry_takes_what_it_leaves_out_from_the_defaults_of_all() -> None:
    """The two defaults are said once for all servers."""
    config = MCPConfig.from_dict(
        {"servers": {"a": {"command": "x"}, "b": {"command": "x", "timeout": 5, "max_retries": 0}},
         "default_timeout": 7, "max_retries": 9}
    )  # fmt: skip
    assert [(server.timeout, server.max_retries) for server in config.servers.values()] == [(7, 9), (5, 0)]


@pytest.mark.requirement("A-02", "A-04")
@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"command": "x", "url": "http://h"}, "it.url: belongs to sse, websocket, http; this entry is stdio because it has a 'command'"),
        ({"url": "http://h", "args": []}, "it.args: belongs to stdio; this entry is http because of its 'url'"),
        ({"url": "http://h", "transport": "sse", "terminate_on_close": True}, "it.terminate_on_close: belongs to http; this entry is sse."),
        ({"url": "ws://h", "auth": {}}, "it.auth: belongs to sse, http; this entry is websocket"),
        ({"transport": "stdio"}, "it.command: a stdio server needs a 'command'"),
        ({"transport": "http"}, "it.url: a server over http needs a 'url'"),
        ({}, "it: nothing to start or to reach: it has neither a 'command' nor a 'url'"),
        ({"command": " "}, "it.command: empty; name the program to start"),
        ({"command": "a\nb"}, "it.command: a command has no NUL character or newline"),
        ({"command": "x", "args": ["a\0"]}, "it.args[0]: an argument has no NUL character"),
        ({"command": "x", "env": {"A=B": "1"}}, "it.env['A=B']: not a valid name for a variable"),
        ({"command": "x", "env": {"A": "\0"}}, "it.env.A: a variable's value has no NUL character"),
        ({"command": "x", "env": {"A": True}}, "it.env.A: found true or false; expected a string"),
        ({"command": "x", "encoding": "utf-16"}, "it.encoding: a newline is not the single byte 0x0a"),
        ({"command": "x", "encoding": "utf-9"}, "it.encoding: no text encoding of this name"),
        ({"command": "x", "encoding": "base64"}, "it.encoding: no text encoding of this name"),
        ({"url": "ftp://h"}, "it.url: the scheme must be http or https"),
        ({"url": "ftp://${HOST}/x"}, "it.url: the scheme must be http or https"),
        ({"url": "example.com"}, "it.url: not a url; it must start with http:// or https://"),
        ({"url": "http://h:99999"}, "it.url: the host or the port is not valid"),
        ({"url": "http://[::1"}, "it.url: the host or the port is not valid"),
        ({"url": "http://h/a b"}, "it.url: a url has no spaces"),
        ({"url": "http://h", "transport": "websocket"}, "it.url: the scheme must be ws or wss"),
        ({"url": "http://h", "headers": {"A B": "1"}}, "it.headers['A B']: not a valid header name"),
        ({"url": "http://h", "headers": {"A": "1\r\nB: 2"}}, "it.headers.A: a header's value has no newlines"),
        ({"url": "http://h", "headers": {"A": "é"}}, "it.headers.A: a header's value is plain ASCII"),
        ({"url": "http://h", "auth": {"type": "client_credentials"}}, "it.auth.client_secret: client_credentials need a 'client_secret'"),
        ({"url": "http://h", "auth": {"issuer": "x"}}, "it.auth.issuer: not a url"),
        ({"url": "http://h", "auth": {"client_metadata_url": "http://h/x"}}, "it.auth.client_metadata_url: the scheme must be https"),
        ({"url": "http://h", "auth": {"type": "client_credentials", "client_id": "a", "client_secret": "b", "token_endpoint_auth_method": "none"}}, "cannot go without a secret"),
        ({"command": "x", "transport": "htpp"}, "it.transport: found 'htpp'; allowed: 'stdio', 'sse', 'websocket' or 'http'. Did you mean 'http'?"),
        ({"command": "x", "timeout": 0}, "it.timeout: found 0; expected more than 0"),
        ({"command": "x", "timeout": "30"}, "it.timeout: found '30'; expected a number"),
        ({"command": "x", "max_retries": -1}, "it.max_retries: found -1; expected at least 0"),
        ({"command": "x", "bounds": {"depth": 5000}}, "it.bounds.depth: found 5000; expected at most 1000"),
        ({"command": "x", "bounds": {"byte": 1}}, "it.bounds.byte: unknown key. Did you mean 'bytes'?"),
        ({"command": "x", "read_only": [""]}, "it.read_only[0]: found ''; it must not be empty"),
        ({"command": "x", "min_protocol": "2025-01-01"}, "it.min_protocol: found '2025-01-01'; allowed: '2024-11-05'"),
        ({"command": "x", "log_level": "loud"}, "it.log_level: found 'loud'; allowed: 'debug'"),
        ({"command": "x", "lazy": 1}, "it.lazy: found 1; expected true or false"),
        ({"command": "x", "config": {"a": float("nan")}}, "it.config: it goes to the server as JSON"),
        ({"command": "x", "config": {"a": object()}}, "it.config: it goes to the server as JSON"),
        ({"command": "x", "tmeout": 3}, "it.tmeout: unknown key. Did you mean 'timeout'?"),
        ({"command": "x", "zzz": 3}, "it.zzz: unknown key. Known here: name, transport, command"),
        ({"command": "x", "env_file": "a", "envFile": "b"}, "it.envFile: unknown key. Did you mean 'env_file'?"),
    ],
)  # fmt: skip
def test_each_rule_of_an_entry_gives_its_message(entry: dict[str, Any], message: str) -> None:
    """What failed, where, why, and what to do: the message is the interface."""
    assert message in report(**entry)


@pytest.mark.requirement("A-04")
def test_all_problems_of_an_entry_come_in_one_report() -> None:
    """Rules over several fields must not hide those of single ones, nor the other way round."""
    assert "it.env: belongs to stdio" in report(url="http://h", transport="htpp", env={})
    words = report(command=3, url="http://h", timeout="x", tmeout=1)
    assert all(part in words for part in ("it.command", "it.url", "it.timeout", "it.tmeout"))


@pytest.mark.requirement("A-02")
def test_env_file_may_be_spelt_as_other_tools_do_and_numbers_stand_for_their_text() -> None:
    """Entries are copied from other tools' files and from YAML."""
    config = MCPServerConfig.model_validate({"command": "x", "envFile": ".env", "args": ["-p", 80], "env": {"P": 8.5}})
    assert (config.env_file, config.args, config.env) == (".env", ["-p", "80"], {"P": "8.5"})


@pytest.mark.requirement("A-03")
def test_resolving_names_every_missing_variable_and_shows_no_value() -> None:
    """The load stops once, with all of it."""
    config = MCPServerConfig(
        name="it", command="${A}", args=["${B}"], env={"C": "${C}", "D": "${D}"}, cwd="${file:nope}"
    )
    with pytest.raises(ConfigError) as caught:
        config.resolved({"D": CANARY})
    assert [problem.path for problem in caught.value.problems] == ["command", "args[0]", "env.C", "cwd"]
    assert CANARY not in str(caught.value)


@pytest.mark.requirement("A-03")
def test_a_filled_value_is_held_to_the_rules_without_being_shown() -> None:
    """A newline in a secret file would forge a header."""
    config = MCPServerConfig(url="http://h", headers={"X": "${V}"}, transport="http")
    with pytest.raises(ConfigError) as caught:
        config.resolved({"V": f"{CANARY}\nEvil: 1"})
    assert "headers.X: a header's value has no newlines" in str(caught.value)
    assert CANARY not in str(caught.value)


@pytest.mark.requirement("A-03")
@given(
    st.dictionaries(
        st.from_regex(r"[A-Z]{1,5}", fullmatch=True),
        st.text(st.characters(exclude_characters="\0", codec="utf-8")),
        max_size=4,
    )
)
def test_resolving_is_idempotent_and_keeps_the_digest(values: dict[str, str]) -> None:
    """A resolved copy is handed around freely; a value that looks like a reference must not be read again."""
    config = MCPServerConfig(name="it", command="x", env={name: f"${{{name}}}$${{Z}}" for name in values})
    once = config.resolved(values)
    assert once.env == {name: f"{value}${{Z}}" for name, value in values.items()}
    assert once.resolved({}) is once
    assert once.digest == config.digest


@pytest.mark.requirement("A-03")
def test_an_env_file_feeds_references_and_the_child(tmp_path: Path) -> None:
    """As other editors have it: one file, next to the settings, for both."""
    (tmp_path / ".env").write_text("TOKEN=from-file\nEXTRA=more\n")
    (tmp_path / "key").write_text("key-value\n")
    config = MCPServerConfig(
        command="x",
        env={"T": "${TOKEN}", "K": "${file:" + str(tmp_path / "key") + "}"},
        env_file=str(tmp_path / ".env"),
    )
    child = config.child_environment({"TOKEN": "ours", "PATH": "/bin", "AWS_SECRET": "no"})
    assert child == {"PATH": "/bin", "TOKEN": "from-file", "EXTRA": "more", "T": "from-file", "K": "key-value"}
    assert {"from-file", "more", "key-value"} <= config.resolved({}).secrets


@pytest.mark.requirement("A-03")
@pytest.mark.parametrize("content", [None, "no equals sign", b"\xff\xfe"])
def test_an_env_file_that_cannot_be_read_is_a_problem(tmp_path: Path, content: str | bytes | None) -> None:
    """It is named, its content is not."""
    path = tmp_path / ".env"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match=r"env_file: the file .* cannot be read: "):
        MCPServerConfig(command="x", env_file=str(path)).resolved({})


@pytest.mark.requirement("A-03")
def test_resolve_env_alone_is_lenient(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that are their own master may do without, and hear of it."""
    monkeypatch.setenv("THERE", CANARY)
    config = MCPServerConfig(name="it", command="x", env={"A": "${THERE}", "B": "<${NOT_THERE}>"})
    with caplog.at_level(logging.WARNING, "squidbot.config"):
        assert config.resolve_env() == {"A": CANARY, "B": "<>"}
    assert "it.env.B: the variable 'NOT_THERE' is not set; it is left empty" in caplog.text
    assert CANARY not in caplog.text
    monkeypatch.setenv("NOT_THERE", "now")
    assert config.resolved().resolve_env() == {"A": CANARY, "B": "<now>"}


@pytest.mark.requirement("A-03")
def test_secrets_are_known_and_never_shown() -> None:
    """Logs, reports and tracebacks all print objects sooner or later."""
    config = MCPServerConfig(
        name="it",
        url=f"https://user:{CANARY}1@h/mcp?api_key={CANARY}2&q=1",
        headers={"Authorization": f"Bearer {CANARY}3", "X-Plain": "${PLAIN}"},
        auth={"client_secret": f"{CANARY}4", "client_id": "me"},  # type: ignore[arg-type]
    )
    resolved = config.resolved({"PLAIN": f"{CANARY}5"})
    assert {f"{CANARY}{number}" for number in range(1, 6)} <= resolved.secrets
    stdio = MCPServerConfig(
        command="x",
        args=["--token", f"{CANARY}6", f"--api-key={CANARY}7", "v"],
        env={"MY_PASSWORD": f"{CANARY}8", "DEBUG": "true"},
    )
    assert stdio.secrets == {f"{CANARY}{number}" for number in range(6, 9)}
    shown = [
        f"{it!r} {it} {it.shown()}"
        for it in (config, resolved, stdio, MCPConfig(servers={"it": resolved, "b": stdio}))[:3]
    ]
    assert CANARY not in "".join(shown) + repr(MCPConfig(servers={"it": resolved, "b": stdio}))
    assert resolved.shown()["headers"] == {"Authorization": "***", "X-Plain": "${PLAIN}"}


def test_a_rejected_value_is_not_shown_by_the_exception_either() -> None:
    """A program that builds an entry by hand sees pydantic's own error."""
    with pytest.raises(ValidationError) as caught:
        MCPServerConfig(command="x", headers={"Authorization": CANARY}, timeout=CANARY)  # type: ignore[arg-type]
    assert CANARY not in str(caught.value)


@pytest.mark.requirement("A-08")
def test_config_reaches_the_child_whole_and_the_wire_without_secrets() -> None:
    """Secrets go only where nobody else listens."""
    config = MCPServerConfig(
        command="x",
        config={"depth": 3, "mode": "$${x}", "token": "literal", "at": "${WHERE}", "deep": [{"api_key": 1, "b": "c"}]},
    )
    resolved = config.resolved({"WHERE": "a secret place"})
    sent = json.loads(resolved.child_environment({})["MCP_CONFIG"])
    assert sent == {
        "depth": 3,
        "mode": "${x}",
        "token": "literal",
        "at": "a secret place",
        "deep": [{"api_key": 1, "b": "c"}],
    }
    assert resolved.public_config() == config.public_config() == {"depth": 3, "mode": "${x}", "deep": [{"b": "c"}]}
    assert MCPServerConfig(command="x").public_config() is None
    assert "MCP_CONFIG" not in MCPServerConfig(command="x").child_environment({})


def test_the_digest_tells_definitions_apart_and_nothing_else() -> None:
    """What was learnt of a server is kept under it: too coarse mixes servers up, too fine forgets."""

    def digest(**entry: Any) -> str:
        return MCPServerConfig.model_validate({"name": "a", "command": "x", **entry}).digest

    assert digest(env={"A": "1", "B": "2"}) == digest(env={"B": "2", "A": "1"})
    assert digest() == digest(timeout=3, description="words", lazy=True, transport="stdio")
    different = [
        digest(),
        digest(name="b"),
        digest(args=["1"]),
        digest(env={"A": "1"}),
        digest(deny=["*"]),
        digest(cwd="/"),
    ]
    assert len(set(different)) == len(different)


def test_relative_paths_and_the_home_folder_are_made_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A server must find its folder wherever squidbot was started."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    resolved = MCPServerConfig(command="~/bin/x", cwd="~/w").resolved()
    assert (resolved.command, resolved.cwd) == (f"{tmp_path}/bin/x", f"{tmp_path}/w")
    assert MCPServerConfig(command="x", cwd="sub").resolved().cwd == f"{tmp_path}/sub"
    assert (
        MCPServerConfig(command="x", cwd="~nobody-of-this-name/x").resolved().cwd
        == f"{tmp_path}/~nobody-of-this-name/x"
    )


def test_a_config_of_objects_is_named_by_its_keys_and_leaves_the_given_ones_alone() -> None:
    """The same object may be given twice, under two names."""
    entry = MCPServerConfig(command="x")
    config = MCPConfig(servers={"a": entry, "b": entry})
    assert [server.name for server in config.servers.values()] == ["a", "b"]
    assert entry.name == ""


@pytest.mark.requirement("A-03")
def test_disabled_entries_are_not_resolved() -> None:
    """What is switched off may lack its variables."""
    servers = {"off": {"command": "${NONE}", "enabled": False}, "on": {"command": "${THERE}"}}
    config = MCPConfig.from_dict({"servers": servers}).resolved({"THERE": "x"})
    assert (config.servers["off"].command, config.servers["on"].command) == ("${NONE}", "x")
    with pytest.raises(ConfigError, match=r"servers\.on\.command: the variable 'THERE' is not set"):
        config = MCPConfig.from_dict({"servers": servers}).resolved({})
