"""`squidbot tokens`: made once, listed without themselves, taken back, in the shapes of the outer surface."""

import json
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import Squidbot

pytestmark = pytest.mark.requirement("G-01", "G-03")


def test_a_token_is_made_listed_and_taken_back(squidbot: Squidbot, home: Path) -> None:
    """The whole life of a token, in JSON; the database and the lists never have the token itself."""
    made = squidbot("tokens", "create", "--role", "designer", "--name", "Ada", "--expires", "30d", "--json")
    assert made.code == 0
    assert list(made.json) == ["id", "token", "role", "name", "expires"]
    assert (made.json["role"], made.json["name"], made.json["token"][:4]) == ("designer", "Ada", "sqb_")
    secret = made.json["token"].rsplit("_", 1)[1]
    listed = squidbot("tokens", "list", "--json")
    assert [token["id"] for token in listed.json] == [made.json["id"]]
    assert listed.json[0]["revoked"] is False
    assert secret not in listed.out
    gone = squidbot("tokens", "revoke", made.json["id"], "--json")
    assert (gone.code, gone.json["revoked"]) == (0, True)
    assert squidbot("tokens", "revoke", "nobody", "--json").error["code"] == "unknown_token"
    with sqlite3.connect(home / "state" / "audit.db") as connection:
        rows = connection.execute("SELECT tool, role, arguments FROM tool_execution_logs ORDER BY sequence").fetchall()
    connection.close()
    assert [row[:2] for row in rows] == [("tokens.create", "operator"), ("tokens.revoke", "operator")]
    assert secret not in json.dumps(rows)
    assert all(secret.encode() not in file.read_bytes() for file in (home / "state").rglob("*") if file.is_file())


def test_people_get_the_token_alone_on_stdout_and_what_to_do_with_it_beside(squidbot: Squidbot) -> None:
    """`TOKEN=$(squidbot tokens create …)` must hold the token and nothing else."""
    made = squidbot("tokens", "create", "--role", "designer", "--name", "Ada")
    assert made.out.startswith("sqb_")
    assert len(made.out.split()) == 1
    assert "squidbot connect" in made.err
    assert "not shown again" in made.err
    shown = squidbot("tokens", "list")
    assert "designer" in shown.out
    assert "until it is revoked" in shown.out


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--role", "operator", "--name", "Ada"], "unknown_role", "backend_developer"),
        (["--role", "desinger", "--name", "Ada"], "unknown_role", "designer"),
        (["--role", "designer", "--name", "Ada", "--expires", "soon"], "usage", "30d"),
        (["--role", "designer", "--name", ""], "invalid_arguments", ""),
        (["--role", "designer"], "usage", ""),
    ],
)
def test_what_cannot_be_made_is_refused_with_what_there_is(
    squidbot: Squidbot, options: list[str], code: str, words: str
) -> None:
    """A typing error must end in a list of roles, not in a token that is good for nothing."""
    refused = squidbot("tokens", "create", *options, "--json")
    assert (refused.code, refused.error["code"]) == (2, code)
    assert words in (refused.error["hint"] or "")
    assert squidbot("tokens", "list", "--json").json == []


@pytest.mark.parametrize("right", ["admin", "auditor"])
def test_a_right_can_be_given_by_the_person_at_the_machine(squidbot: Squidbot, right: str) -> None:
    """Somebody must be able to let an auditor in."""
    made = squidbot("tokens", "create", "--role", right, "--name", "Eve", "--json")
    assert made.json["role"] == right
