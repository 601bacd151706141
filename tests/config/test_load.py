"""Finding, reading and loading the settings file, and the reports of what is wrong with it."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squidbot.config.load import find_settings, load_settings, read_document, read_settings
from squidbot.config.state import state_folder
from squidbot.core.domain.errors import ConfigError

EXAMPLE = Path(__file__).parents[2] / "config.example.json"
CANARY = "canary-9f31c2"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(text: str | dict[str, Any], name: str = "squidbot.json") -> Path:
    path = Path.cwd() / name
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return path


def refused(text: str | dict[str, Any], name: str = "squidbot.json") -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings(write(text, name), environ={})
    return str(caught.value)


@pytest.mark.requirement("A-01")
def test_the_settings_file_is_found_in_the_promised_order(here: Path, home: Path) -> None:
    """Which file counts must never be a surprise."""
    assert find_settings(environ={}) is None
    user = home / ".config/squidbot/squidbot.yaml"
    user.parent.mkdir(parents=True)
    user.write_text("{}")
    assert find_settings(environ={}) == user
    local_yaml = write("{}", "squidbot.yaml")
    assert find_settings(environ={}) == local_yaml
    local = write("{}")
    assert find_settings(environ={}) == local
    mcp, ours, explicit = write("{}", "mcp.json"), write("{}", "ours.json"), write("{}", "explicit.json")
    assert find_settings(environ={"MCP_CONFIG_PATH": str(mcp)}) == mcp
    assert find_settings(environ={"MCP_CONFIG_PATH": str(mcp), "SQUIDBOT_CONFIG": "ours.json"}) == ours
    assert find_settings(explicit, environ={"SQUIDBOT_CONFIG": str(ours)}) == explicit


@pytest.mark.requirement("A-01")
@pytest.mark.parametrize("name", ["nope.json", "x" * 5000])
def test_a_file_that_was_named_and_is_not_there_stops_the_load(name: str) -> None:
    """Falling back to another file would start other servers than the person meant."""
    with pytest.raises(ConfigError, match="which SQUIDBOT_CONFIG names"):
        load_settings(environ={"SQUIDBOT_CONFIG": name})
    with pytest.raises(ConfigError, match="which the command line names"):
        load_settings(Path(name), environ={})


@pytest.mark.requirement("A-01")
def test_the_example_loads_as_it_is_and_has_every_section(caplog: pytest.LogCaptureFixture) -> None:
    """It is the first thing that people try."""
    loaded = load_settings(EXAMPLE, environ={})
    assert not caplog.records
    sections = {"tools", "roles", "agent", "model", "gateway", "audit", "limits", "alerts"}
    assert sections <= read_document(EXAMPLE).keys()
    assert [server.name for server in loaded.mcp.servers.values() if server.enabled] == [
        "git",
        "github",
        "jira",
        "filesystem",
    ]
    assert loaded.roles["ai_engineer"].tools["filesystem"][0].tool == "*"
    assert loaded.alerts.rules.model_fields_set == {"burst", "refusals", "first_use", "error_rate"}
    assert loaded.source == EXAMPLE


@pytest.mark.requirement("A-01")
def test_json_with_comments_and_yaml_say_the_same(here: Path) -> None:
    """The keys are the same in both, whatever the file is called."""
    commented = """// top
    {"tools": {/* all */ "mcp_servers": {"it": {"command": "x", "args": ["// no comment", "/* nor this */",],},},},
    }"""
    plain = "tools:\n  mcp_servers:\n    it:\n      command: x\n      args: ['// no comment', '/* nor this */']\n"
    documents = [read_document(write(text, name)) for text, name in [
        (commented, "a.json"), (commented, "a"), (plain, "a.yaml"), (plain, "b"), ("\ufeff" + commented, "c.json"),
    ]]  # fmt: skip
    assert documents == [documents[0]] * 5


@pytest.mark.requirement("A-01")
def test_dates_in_yaml_are_text_and_anchors_work() -> None:
    """A protocol revision looks like a date."""
    text = "x: &base {command: y, min_protocol: 2025-11-25}\nz: {<<: *base, lazy: true}\n"
    assert read_document(write(text, "a.yaml"))["z"] == {"command": "y", "min_protocol": "2025-11-25", "lazy": True}


@pytest.mark.requirement("A-04")
@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', "s.json", "s.json is not valid JSON: a ',' or '}' is missing, line 2, column 9:\n    \"a\": 1\n          ^"),
        ('{"a": 1, "a": 2}', "s.json", "the key 'a' appears twice, line 1, column 10"),
        ("a: 1\na: 2\n", "s.yaml", "s.yaml is not valid YAML: the key 'a' appears twice, line 2, column 1"),
        ('{"a": tru}', "s.json", "'tru' is no value; text stands in double quotes"),
        ('{"a": NaN}', "s.json", "'NaN' is no value"),
        ('{"a": -}', "s.json", "a value is missing before '-'"),
        ("{'a': 1}", "s.json", "a key stands in double quotes"),
        ('{a: 1}', "s.json", "a key in double quotes is missing here"),
        ('{"a" 1}', "s.json", "a ':' is missing after the key 'a'"),
        ('{"a": 1', "s.json", "the document ends before its '}'"),
        ('{"a": ', "s.json", "the document ends in the middle"),
        ("{", "s.json", "the document ends in the middle"),
        ('{"a": "x', "s.json", "unterminated string"),
        ('{"a": "x\ny"}', "s.json", "invalid control character"),
        ('{"a": "\\ud800"}', "s.json", "half of a character (a lone surrogate) in a string, line 1, column 7"),
        ("{} {}", "s.json", "something follows the end of the document, line 1, column 4"),
        ("{} /* open", "s.json", "a comment that starts with '/*' is never closed"),
        ('{"a": ' + "9" * 5000 + "}", "s.json", "a number of too many digits"),
        ("[" * 3000, "s.json", "nested deeper than 100 levels"),
        ("[" * 3000, "s.yaml", "nested too deeply"),
        ("a: &a [*a]", "s.yaml", "too large or too deeply nested"),
        ("a: !!python/object:os.system x", "s.yaml", "could not determine a constructor"),
        ("a: !thing x", "s.yaml", "the tag '!thing' is not known here"),
        ("a: !!int x", "s.yaml", "a value or character in it cannot be read"),
        ("on: 1", "s.yaml", "the key 'on' is no text; put it in quotes, line 1, column 1"),
        ("a: b: c", "s.yaml", "mapping values are not allowed here, line 1, column 5"),
        ("\0", "s.yaml", "a value or character in it cannot be read"),
        ("  \n", "s.json", "s.json is empty"),
        ("[]", "s.json", "s.json holds a list; settings are an object"),
        ("just text", "s.yaml", "s.yaml holds a string"),
        ("# only a comment", "s.yaml", "s.yaml holds null"),
    ],
)  # fmt: skip
def test_a_syntax_error_is_shown_with_its_place(text: str, name: str, message: str) -> None:
    """People look for the line, so it is there."""
    assert message in refused(text, name)


@pytest.mark.requirement("A-04")
def test_a_billion_laughs_are_refused_before_they_are_told() -> None:
    """A settings file must not be able to eat the machine."""
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert "too large" in refused("\n".join(levels), "s.yaml")


@pytest.mark.requirement("A-04")
def test_the_line_of_a_syntax_error_shows_no_secret() -> None:
    """Reports are pasted into tickets."""
    words = refused(f'{{"env": {{"TOKEN": "{CANARY}" "A": 1}}}}') + refused('{"x": "sk-4f1e7a98c0d2b3e5f6a7" "A": 1}')
    assert CANARY not in words
    assert "sk-4f" not in words
    assert "************" in words


@pytest.mark.requirement("A-04")
def test_files_that_cannot_be_read_are_named(here: Path) -> None:
    """A folder, a picture, a book."""
    (here / "folder.json").mkdir()
    with pytest.raises(ConfigError, match=r"^folder\.json cannot be read: Is a directory"):
        load_settings(here / "folder.json")
    (here / "binary.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        load_settings(here / "binary.json")
    (here / "big.json").write_bytes(b" " * 1_000_001)
    with pytest.raises(ConfigError, match="larger than 1000000 bytes"):
        load_settings(here / "big.json")


@pytest.mark.requirement("A-04")
@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"tool": {}}, "tool: unknown key (line 1). Did you mean 'tools'?"),
        ({"tools": {}, "mcpServers": {}}, "mcpServers: unknown key (line 1). Here it is called 'tools.mcp_servers'"),
        ({"mcp": {"servers": {}}}, "mcp: unknown key (line 1). Here it is called 'tools.mcp_servers'"),
        ({"mcpservers": {}}, "mcpservers: unknown key (line 1). Here it is called 'tools.mcp_servers'"),
        ({"MCP-Servers": {}}, "MCP-Servers: unknown key (line 1). Here it is called 'tools.mcp_servers'"),
        ({"server": {}}, "server: unknown key (line 1). Here it is called 'tools.mcp_servers'"),
        ({"tools": {"mcpServers": {}}}, "tools.mcpServers: unknown key (line 1). Did you mean 'mcp_servers'?"),
        ({"tools": 3}, "tools: found 3; expected an object"),
        ({"tools": {"mcp_servers": []}}, "tools.mcp_servers: found a list; expected an object"),
        ({"tools": {"mcp_servers": {"a b": {"command": "x"}}}}, "'a b' is no name for a server"),
        ({"tools": {"mcp_servers": {"git": None}}}, "tools.mcp_servers.git: found null; expected an object"),
        ({"roles": {"r": {"tools": {"s": [{"tol": "x"}]}}}}, "roles.r.tools.s[0].tol: unknown key (line 1). Did you mean 'tool'?"),
        ({"roles": {"r": {"tools": {"s": [{"tool": "x", "when": {"branch": "main"}}]}}}}, "roles.r.tools.s[0].when.branch: found 'main'; expected a list of globs (line 1). Write it like {'branch'"),
        ({"roles": {"r": {"tools": {"s": [{"tool": "x", "when": {"branch": []}}]}}}}, "roles.r.tools.s[0].when.branch: found an empty list; expected a list of globs"),
        ({"roles": {"r": {"tools": {"s": [{"tool": "x", "when": ["branch"]}]}}}}, "roles.r.tools.s[0].when: found a list; expected an object, with a list of globs for each argument"),
        ({"roles": {"r": {"tools": {"s": [{"tool": "x", "when": {"": ["main"]}}]}}}}, "'' is no name of an argument"),
        ({"roles": {"r": {"tools": {"s": "x"}}}}, "roles.r.tools.s: found 'x'; expected a list"),
        ({"limits": [{}]}, "limits[0]: limits nothing"),
        ({"limits": [{"concurrency": 1, "burst": 3}]}, "limits[0].burst: means nothing without a 'rate'"),
        ({"limits": [{"rate": "lots"}]}, "limits[0].rate: found 'lots'; expected so many per second"),
        ({"gateway": {"port": 70000}}, "gateway.port: found 70000; expected at most 65535"),
        ({"gateway": {"oidc": {"issuer": "https://x"}}}, "gateway.oidc.audience: is missing, and must be given"),
        ({"audit": {"url": "mysql://x"}}, "audit.url: the scheme must be sqlite or postgresql or postgres"),
        ({"redis": "http://x"}, "redis: the scheme must be redis or rediss"),
        ({"model": {"name": "x", "provider": "openia"}}, "model.provider: found 'openia'; allowed: 'openai', 'anthropic' or 'scripted' (line 1). Did you mean 'openai'?"),
        ({"model": {"name": "x", "api_key": 12345678}}, "model.api_key: found a number; expected a string"),
        ({"agent": {"max_steps": 1.5}}, "agent.max_steps: found 1.5; expected a whole number"),
        ({"alerts": {"rules": {"burts": {}}}}, "alerts.rules.burts: unknown key (line 1). Did you mean 'burst'?"),
        ({"alerts": {"rules": {"error_rate": {"rate": 2}}}}, "alerts.rules.error_rate.rate: found 2; expected at most 1"),
    ],
)  # fmt: skip
def test_each_section_reports_what_is_wrong_with_it(document: dict[str, Any], message: str) -> None:
    """Path, what was found, what is allowed."""
    assert message in refused(document)


@pytest.mark.requirement("A-04")
def test_a_report_names_the_line_of_each_problem() -> None:
    """In a long file the path alone is a search."""
    words = refused('{\n "tools": {\n  "mcp_servers": {\n   "git": {\n    "command": 3,\n    "tmeout": 1\n}}}}')
    assert "tools.mcp_servers.git.command: found a number; expected a string (line 5)" in words
    assert "tools.mcp_servers.git.tmeout: unknown key (line 6). Did you mean 'timeout'?" in words


@pytest.mark.requirement("A-03")
def test_every_missing_variable_of_the_file_is_in_one_report() -> None:
    """One round, not five."""
    words = refused(
        {
            "tools": {"mcp_servers": {"a": {"command": "${A}"}, "b": {"url": "http://h/${B}"}}},
            "model": {"name": "m", "api_key": "${C}"},
            "redis": "${D}",
            "audit": {"url": "${E}"},
            "alerts": {"webhook": "${F}"},
            "gateway": {"oidc": {"issuer": "${G}", "audience": "${H}"}},
        }
    )
    assert words.startswith("squidbot.json cannot be used:")
    for path, name in {"tools.mcp_servers.a.command": "A", "tools.mcp_servers.b.url": "B", "model.api_key": "C", "redis": "D",
                       "audit.url": "E", "alerts.webhook": "F", "gateway.oidc.issuer": "G", "gateway.oidc.audience": "H"}.items():  # fmt: skip
        assert f"{path}: the variable {name!r} is not set. Set it, or write '${{{name}:-default}}'." in words


@pytest.mark.requirement("A-03")
def test_filled_sections_are_checked_and_their_secrets_known() -> None:
    """What a variable holds is held to the same rules, and never shown."""
    document = {
        "model": {"name": "m", "api_key": "${K}"},
        "redis": "redis://:${K}@h",
        "roles": {"r": {"tools": {"s": ["${x}"]}}},
    }
    loaded = load_settings(write(document), environ={"K": CANARY})
    assert loaded.model is not None
    assert (loaded.model.api_key, loaded.redis) == (CANARY, f"redis://:{CANARY}@h")
    assert CANARY in loaded.secrets
    assert CANARY not in f"{loaded!r} {loaded.model!r} {loaded.shown()}"
    assert loaded.shown()["model"]["api_key"] == "${K}"
    assert loaded.roles["r"].tools["s"][0].tool == "${x}"
    assert loaded.resolved({}) is loaded
    with pytest.raises(ConfigError, match=r"alerts\.webhook: the scheme must be http or https") as caught:
        load_settings(write({"alerts": {"webhook": "${K}"}}), environ={"K": f"ftp://{CANARY}"})
    assert CANARY not in str(caught.value)


@pytest.mark.requirement("A-03")
def test_a_secret_is_known_by_its_shape_and_a_hook_by_its_place() -> None:
    """`config show` is what people paste into an issue."""
    hook, token = "https://hooks.example/T0/B0/x?token=abc", f"ghp_{'c4n4ry' * 6}"
    entry = {"command": "x", "env": {"GH": token}, "args": [f"--header=X: {token}"]}
    write({"alerts": {"webhook": hook}, "tools": {"mcp_servers": {"s": entry}}})
    shown = load_settings().shown()
    assert shown["alerts"]["webhook"] == "https://hooks.example/***"
    assert token not in json.dumps(shown)
    assert shown["tools"]["mcp_servers"]["s"]["env"] == {"GH": "***"}


@pytest.mark.requirement("A-03")
def test_relative_paths_start_from_the_settings_files_folder(here: Path) -> None:
    """The same file must mean the same from every folder."""
    folder = here / "project"
    folder.mkdir()
    (folder / "key").write_text("sesame\n")
    (folder / ".env").write_text("NAME=value\n")
    entry = {"command": "x", "cwd": "work", "envFile": ".env", "env": {"K": "${file:key}", "N": "${NAME}"}}
    path = write(
        {"tools": {"mcp_servers": {"it": entry}}, "model": {"name": "m", "api_key": "${file:key}"}}, "project/s.json"
    )
    loaded = load_settings(path, environ={})
    server = loaded.mcp.servers["it"]
    assert (server.cwd, server.env) == (str(folder / "work"), {"K": "sesame", "N": "value"})
    assert loaded.model is not None
    assert loaded.model.api_key == "sesame"


@pytest.mark.requirement("A-06", "A-03")
def test_without_settings_the_built_in_servers_serve_as_far_as_they_can(caplog: pytest.LogCaptureFixture) -> None:
    """A first run needs no file, and says what it left out."""
    with caplog.at_level(logging.WARNING, "squidbot.config"):
        loaded = load_settings(environ={"SQUIDBOT_HOME": "/somewhere"})
    assert loaded.source is None
    assert "filesystem" in loaded.mcp.servers
    assert loaded.mcp.servers["filesystem"].env["SQUIDBOT_HOME"] == "/somewhere"
    assert "brave" not in loaded.mcp.servers
    assert "left out for want of a variable: 'github' (GITHUB_TOKEN), 'brave' (BRAVE_API_KEY)" in caplog.text
    assert "brave" in load_settings(environ={"BRAVE_API_KEY": "k"}).mcp.servers


@pytest.mark.requirement("A-06", "A-03")
def test_a_built_in_that_was_named_is_not_left_out_in_silence() -> None:
    """Who named it wants it."""
    assert "tools.mcp_servers.brave.env.BRAVE_API_KEY: the variable 'BRAVE_API_KEY' is not set" in refused(
        {"tools": {"mcp_servers": {"brave": {}}}}
    )


def test_settings_that_name_no_servers_on_purpose_have_none() -> None:
    """An empty object is an answer, too."""
    assert load_settings(write({"tools": {"mcp_servers": {}}}), environ={}).mcp.servers == {}


def test_settings_can_be_read_as_written() -> None:
    """To check a file on a machine that lacks its variables."""
    assert read_settings(write({"redis": "${REDIS}"})).redis == "${REDIS}"


def test_the_state_folder_is_named_by_the_environment_or_the_system(home: Path) -> None:
    """State must not land in the folder where somebody happened to be."""
    assert state_folder({"SQUIDBOT_HOME": "~/x"}) == home / "x"
    assert state_folder() == home / "state"
    assert state_folder({}).name == "squidbot"


def outcome(path: Path) -> str:
    """What a person sees: the settings or the report; anything else that is raised fails the test."""
    try:
        return repr(load_settings(path, environ={}))
    except ConfigError as error:
        return str(error).encode().decode()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["${X}", "stdio", "http://h"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
KEYS = [
    "tools",
    "roles",
    "limits",
    "gateway",
    "audit",
    "redis",
    "model",
    "agent",
    "alerts",
    "mcpServers",
    "servers",
    "mcp_servers",
    "inputs",
    "$schema",
]
FIELDS = [
    "command",
    "args",
    "env",
    "url",
    "headers",
    "auth",
    "transport",
    "type",
    "timeout",
    "bounds",
    "config",
    "envFile",
    "cwd",
    "encoding",
]
ENTRIES = st.dictionaries(
    st.sampled_from(["a", "filesystem", "b c"]),
    st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4) | JSON,
    max_size=2,
)
DOCUMENTS = st.dictionaries(st.sampled_from(KEYS), JSON | ENTRIES | st.fixed_dictionaries({"mcp_servers": ENTRIES}) | st.lists(st.fixed_dictionaries({"type": st.just("mcp"), "server": JSON}), max_size=2), max_size=3)  # fmt: skip


@pytest.mark.requirement("A-04")
@pytest.mark.deadline(180)
@settings(max_examples=400, suppress_health_check=list(HealthCheck), deadline=None)
@given(DOCUMENTS)
def test_whatever_the_document_the_answer_is_settings_or_a_report(document: dict[str, Any]) -> None:
    """Never a traceback."""
    assert outcome(write(json.dumps(document)))


@pytest.mark.requirement("A-04")
@pytest.mark.deadline(180)
@settings(max_examples=400, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    st.text(st.characters(codec="utf-8"), max_size=60) | st.text('{}[]":,/*\n ab&!-1', max_size=60),
    st.sampled_from(["s.json", "s.yaml", "s"]),
)
def test_whatever_the_text_the_answer_is_settings_or_a_report(text: str, name: str) -> None:
    """Never a traceback, not even from a parser's depths."""
    assert outcome(write(text, name))


@pytest.mark.requirement("E-10")
@pytest.mark.parametrize(
    ("url", "fits"),
    [
        ("sqlite:///trail.db", True),
        ("postgresql://me@/trail?host=/run/postgresql", True),
        ("postgresql://db.internal/trail", True),
        ("postgresql:///trail", False),
        ("sqlite://", False),
    ],
)
def test_a_database_without_a_host_is_a_file_or_a_socket(url: str, fits: bool, tmp_path: Path) -> None:
    """PostgreSQL on the same machine is reached by a socket, SQLite by a path: neither has a host."""
    path = tmp_path / "squidbot.json"
    path.write_text(json.dumps({"audit": {"url": url}, "tools": {"mcp_servers": {}}}))
    if fits:
        assert load_settings(path).audit.url == url
    else:
        with pytest.raises(ConfigError, match=r"audit\.url"):
            load_settings(path)
