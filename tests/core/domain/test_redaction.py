"""Secrets are taken out at one place, in every form in which they travel, and nothing else is."""

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squidbot.core.domain.recorded import known_out
from squidbot.core.domain.redaction import Redactor, names_a_secret

SECRET = 'p@ss/w0rd+"quoted" ünïcode'
FORMS = [
    SECRET,
    json.dumps(SECRET),
    json.dumps(SECRET, ensure_ascii=False),
    quote(SECRET, safe=""),
    quote(SECRET),
    base64.b64encode(SECRET.encode()).decode(),
    base64.b64encode(b"user:" + SECRET.encode()).decode(),
    base64.urlsafe_b64encode(b"me:" + SECRET.encode() + b":x").decode(),
    SECRET.encode().hex(),
    f"https://user:{quote(SECRET, safe='')}@host/path",
]


@pytest.mark.requirement("E-05")
@pytest.mark.parametrize("form", FORMS)
def test_a_known_secret_is_found_in_every_form(form: str) -> None:
    """A secret that was only encoded is still a secret."""
    redacted = Redactor([SECRET]).text(f"before {form} after")
    assert "[redacted:" in redacted
    assert not any(known in redacted for known in FORMS[:-1])
    assert redacted.startswith("before ")
    assert redacted.endswith(" after")


@pytest.mark.requirement("E-05")
@pytest.mark.parametrize(
    "token",
    [
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "github_pat_11ABCDEFG0123456789_abcdefghij",
        "glpat-abcdefghij0123456789",
        "sk-proj-abcdefghij0123456789ABCDEFGHIJ",
        "xoxb-123456789012-abcdefghijkl",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----",
        base64.b64encode(b"ghp_0123456789abcdefghijABCDEFGHIJ012345").decode(),
    ],
)
def test_a_token_of_a_known_maker_is_told_by_its_shape(token: str) -> None:
    """A caller may pass a token that no settings know of."""
    redacted = Redactor().text(f"value={token} end")
    assert token not in redacted
    assert "[redacted:" in redacted
    assert redacted.endswith(" end")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("postgres://app:hunter22@db/x", "postgres://[redacted:"),
        ("redis://:hunter22@cache:6379/0", "redis://[redacted:"),
        ("amqp://app:a:b:c@mq", "amqp://[redacted:"),
        ("Authorization: Bearer abc123def456ghi789", "Authorization: Bearer [redacted:"),
        ("https://host/cb?token=abcdef&next=1", "https://host/cb?token=[redacted:"),
        ("https://host/cb?TOKEN=abcdef&next=1", "https://host/cb?TOKEN=[redacted:"),
        ("{'password' : 'hunter22'}", "{'password' : '[redacted:"),
    ],
)
def test_secrets_in_urls_and_headers_go_and_the_rest_stays(text: str, kept: str) -> None:
    """What is left must still tell where it was."""
    assert Redactor().text(text).startswith(kept)


BENIGN = [
    "Use basic authentication or bearer authentication.",
    '{"key": "SHOP-12", "nextPageToken": "abc", "max_tokens": 200}',
    "https://github.com/acme/shop/pull/12#discussion",
    "mailto:someone@example.com, 12:30@home",
    "feature/sk-ill-tree and risk-averse ghp_ alone",
    "def token(self) -> str: return self._token",
    "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg==",
]


@pytest.mark.requirement("E-05")
@pytest.mark.parametrize("text", BENIGN)
def test_what_is_no_secret_is_left_alone(text: str) -> None:
    """A record full of marks is no record."""
    assert Redactor(["s3cr3t-value"]).text(text) == text


def test_what_stands_under_a_telling_key_goes_whatever_it_looks_like() -> None:
    """`password: hunter2` has no shape but its name."""
    kept = json.loads(
        Redactor().json(
            {
                "password": "hunter2",
                "nested": [{"apiKey": "zzz", "Authorization": "x y", "key": "SHOP-1"}],
                "cursor": {"nextPageToken": "page-2"},
                "empty_token": "",
                "token": 7,
            }
        )
    )
    assert kept["password"].startswith("[redacted:")
    assert kept["nested"][0]["apiKey"].startswith("[redacted:")
    assert kept["nested"][0]["Authorization"].startswith("[redacted:")
    assert kept["nested"][0]["key"] == "SHOP-1"
    assert (kept["cursor"], kept["empty_token"], kept["token"]) == ({"nextPageToken": "page-2"}, "", 7)


@pytest.mark.parametrize("name", ["password", "DB_PASSWORD", "client-secret", "accessToken", "Cookie", "api key"])
def test_names_that_tell_a_secret(name: str) -> None:
    """However it is spelt."""
    assert names_a_secret(name)


def test_equal_secrets_leave_equal_marks_and_the_salt_decides_which() -> None:
    """Two records of one token can be told from records of two, and nobody can try out which token it was."""
    ours, theirs = Redactor(salt=b"a"), Redactor(salt=b"b")
    assert ours.mark("one") == ours.mark("one") != ours.mark("two")
    assert ours.mark("one") != theirs.mark("one")


def test_what_the_settings_add_later_is_known_too() -> None:
    """The log is set up before the settings are read."""
    secrets: set[str] = set()
    redactor = Redactor(secrets)
    assert redactor.text("late-secret") == "late-secret"
    secrets.add("late-secret")
    assert redactor.text("late-secret") != "late-secret"


@given(st.text(min_size=6, max_size=60), st.text(), st.text())
def test_no_secret_is_ever_left(secret: str, before: str, after: str) -> None:
    """For every secret and everything around it."""
    redactor = Redactor([secret])
    left = redactor.text(before + secret + after)
    marks = redactor.mark(secret)
    assert secret in marks or secret not in left.replace(marks, "")


@given(
    st.sampled_from(["ghp_", "sk-", "xoxb-", "npm_", "Z2hwX", "eyJhbGciOiJIUzI1NiJ9."]),
    st.text() | st.from_regex(r"[a-z0-9-]{0,20}[-./\\ ]"),
    st.text(),
)
def test_a_token_is_found_whatever_stands_before_and_after(prefix: str, before: str, after: str) -> None:
    """The quick look that clears most texts must see where every token begins."""
    token = f"{prefix}{'0123456789AB' * 3}." if prefix.startswith("eyJ") else f"{prefix}{'0123456789AB' * 3}"
    if not before[-1:].isalnum() and before[-1:] != "_":
        assert token[:-1] not in Redactor().text(f"{before}{token} {after}")
        assert token[:-1] not in Redactor().json({"text": f"{before}{token} {after}"})


@pytest.mark.requirement("E-05")
@pytest.mark.parametrize("end", ["\n", "\r\n", "\t", "\x0b", "\\"])
@pytest.mark.parametrize("token", ["ghp_0123456789abcdefghijABCDEFGHIJ012345", "Bearer abc123def456ghi789"])
def test_a_token_at_the_beginning_of_a_line_is_found_in_json_too(end: str, token: str) -> None:
    """There the line end before it is a letter, and the token seems to begin within a word."""
    once = Redactor().json({"text": f"one{end}{token}"})
    twice = Redactor().json({"text": json.dumps({"text": f"one{end}{token}"})})
    assert token[-12:] not in once + twice
    assert json.loads(json.loads(twice)["text"])["text"].startswith(f"one{end}")


@given(
    st.lists(st.text(min_size=4, max_size=30), min_size=1, max_size=4),
    st.recursive(st.text(), lambda part: st.lists(part) | st.dictionaries(st.text(), part), max_leaves=5),
    st.data(),
)
def test_an_answer_that_is_not_looked_through_has_no_secret(
    secrets: list[str], tree: object, data: st.DataObject
) -> None:
    """The quick look at an answer is at its JSON, in which a secret may be written in another way than in its texts."""
    redactor = Redactor(secrets)
    given = [tree, {"text": data.draw(st.text()) + data.draw(st.sampled_from(secrets))}]
    assert redactor.may_know_any_of(given)
    assert known_out(tree, redactor) == tree or redactor.may_know_any_of(tree)


@given(st.lists(st.text("abcdef0123456789", min_size=24, max_size=40), min_size=1, max_size=30), st.data())
def test_many_secrets_are_found_as_surely_as_one(secrets: list[str], data: st.DataObject) -> None:
    """The quick look that clears most texts must never clear one that has a secret."""
    chosen = data.draw(st.sampled_from(secrets))
    text = data.draw(st.text(max_size=50)) + chosen + data.draw(st.text(max_size=50))
    assert chosen not in Redactor(secrets).known(text)


@pytest.mark.requirement("E-05")
@pytest.mark.parametrize(
    "form",
    [
        json.dumps(json.dumps(SECRET)),
        json.dumps(json.dumps(SECRET, ensure_ascii=False), ensure_ascii=False),
        json.dumps(SECRET).replace("/", "\\/"),
        quote(SECRET, safe="").lower(),
        SECRET.encode().hex().upper(),
        "p@ss/w0rd+&quot;quoted&quot; ünïcode",
    ],
)
def test_a_known_secret_is_found_as_other_languages_write_it(form: str) -> None:
    """An answer is JSON inside of a record that is JSON; .NET writes %2f, PHP writes \\/, a page writes &quot;."""
    redacted = Redactor([SECRET]).text(f"before {form} after")
    assert "w0rd" not in redacted
    assert "quoted" not in redacted
    assert redacted.startswith("before ")
    assert redacted.endswith(" after")


@pytest.mark.requirement("E-05")
@pytest.mark.parametrize(
    "text",
    [
        '{"password": "hunter2"}',
        '{"user":"me","dbPassword":"hunter2","n":1}',
        "{'token': 'hunter2'}",
        '[{"a": "{\\"client_secret\\": \\"hunter2\\"}"}]',
        json.dumps({"a": json.dumps({"b": json.dumps({"Cookie": 'hunter2"; path="/x'})})}),
    ],
)
def test_json_inside_of_a_text_is_read_by_its_names(text: str) -> None:
    """Most tools answer with a text that is JSON: its passwords are as plain as those of a tree."""
    redacted = Redactor().text(text)
    assert "hunter2" not in redacted
    assert "[redacted:" in redacted
    assert len(redacted) < len(text) + 20
    inner = json.loads(Redactor().json({"content": [{"text": text}]}))["content"][0]["text"]
    assert "hunter2" not in inner


@pytest.mark.requirement("E-05")
def test_what_is_inside_of_a_secret_thing_is_secret_and_a_schema_is_none() -> None:
    """`cookies` has one of them under each name; `properties` has only the names."""
    schema = {"properties": {"password": {"type": "string", "description": "at least 8 letters"}}}
    kept = json.loads(Redactor().json({"cookies": {"session": "hunter2"}, "secret": [{"value": "abc"}], **schema}))
    assert kept["cookies"]["session"].startswith("[redacted:")
    assert kept["secret"][0]["value"].startswith("[redacted:")
    assert kept["properties"] == schema["properties"]


@given(st.text(), st.text(min_size=1), st.text())
def test_json_stays_json_whatever_is_taken_out(before: str, value: str, after: str) -> None:
    """A record that cannot be parsed is no record."""
    tree = {"text": json.dumps({"a": before, "password": value, "b": after}), "token": value}
    kept = json.loads(Redactor().json(tree))
    assert json.loads(kept["text"])["password"].startswith("[redacted:")


def test_bytes_lose_the_secrets_of_the_settings_and_nothing_else() -> None:
    """A file that a server sends may have one inside."""
    redactor = Redactor([SECRET])
    data = b"\x00\xff\x80" + SECRET.encode() + b"\xc3\x28\x00"
    redacted = redactor.known_bytes(data)
    assert redacted == b"\x00\xff\x80" + redactor.mark(SECRET).encode() + b"\xc3\x28\x00"
    assert redactor.known_bytes(redacted) is redacted
