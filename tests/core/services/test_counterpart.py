"""What a server wants from the person: asked where they can answer, and never what nobody should be asked."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squidbot.core.domain.elicitation import Form, Unaskable, Visit, wanted
from squidbot.core.domain.errors import Declined
from squidbot.core.services.counterpart import ROUNDS, AgentCounterpart
from tests.fakes.person import FakePerson

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-05")]


def form(required: list[str] | None = None, **fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": fields, "required": required or list(fields)}
    return {"mode": "form", "message": "Please say:", "requestedSchema": schema}


async def ask(person: FakePerson | None, params: dict[str, Any]) -> Any:
    return await AgentCounterpart("me", person=person).ask("elicitation", "shop", params)


async def test_a_form_is_asked_field_by_field_and_answered_in_its_types() -> None:
    """What people type is text; what the server wants may be more."""
    person = FakePerson(["y", "Ann", "seven", "7", "1.5", "yes", "2", "1, blue", ""])
    answer = await ask(
        person,
        form(
            ["name", "age", "height", "member", "size", "colours"],
            name={"type": "string", "title": "Your name", "minLength": 2},
            age={"type": "integer", "minimum": 1},
            height={"type": "number"},
            member={"type": "boolean"},
            size={"type": "string", "oneOf": [{"const": "s", "title": "S"}, {"const": "l", "title": "L"}]},
            colours={"type": "array", "items": {"enum": ["red", "blue"]}},
            note={"type": "string"},
        ),
    )
    assert answer == {
        "action": "accept",
        "content": {"name": "Ann", "age": 7, "height": 1.5, "member": True, "size": "l", "colours": ["red", "blue"]},
    }
    assert person.told[0] == "Server 'shop' asks: Please say:"
    assert "That does not fit: a whole number." in person.told


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["n"], {"action": "decline"}),
        ([""], {"action": "decline"}),
        ([], {"action": "decline"}),
        (["y", None], {"action": "cancel"}),
        (["y", "x", "x", "x"], {"action": "cancel"}),
        (["y", "", "3"], {"action": "accept", "content": {"n": 3}}),
    ],
)
async def test_a_person_may_say_no_or_nothing(answers: list[str | None], expected: Any) -> None:
    """Nothing is accepted that nobody accepted."""
    assert await ask(FakePerson(answers), form(n={"type": "integer"})) == expected


@pytest.mark.parametrize(
    "field",
    [
        {"password": {"type": "string"}},
        {"apiKey": {"type": "string"}},
        {"x": {"type": "string", "title": "Your GitHub token"}},
        {"x": {"type": "string", "description": "the one-time code"}},
        {"x": {"type": "string", "format": "password"}},
        {"x": {"type": "string", "writeOnly": True}},
        {"card_number": {"type": "string"}},
    ],
)
async def test_secrets_are_never_asked(field: dict[str, Any]) -> None:
    """T20: a server that wants a password gets a refusal, and the person does not even see the question."""
    person = FakePerson(["y", "hunter2"])
    with pytest.raises(Declined, match="looks like a secret"):
        await ask(person, form(colour={"type": "string"}, **field))
    assert (person.asked, person.told) == ([], [])


async def test_what_cannot_hold_a_secret_may_speak_of_one() -> None:
    """A choice, a yes or no and a small number give nothing away."""
    fields: dict[str, Any] = {
        "pin_colour": {"type": "string", "enum": ["red"]},
        "forget_password": {"type": "boolean"},
        "lucky": {"type": "integer", "maximum": 100, "description": "not your pin"},
    }
    assert await ask(FakePerson(["y", "1", "no", "7"]), form(**fields)) == {
        "action": "accept",
        "content": {"pin_colour": "red", "forget_password": False, "lucky": 7},
    }


@pytest.mark.parametrize(("typed", "action"), [("y", "accept"), ("n", "decline"), (None, "decline")])
async def test_a_page_is_shown_and_never_opened(typed: str | None, action: str) -> None:
    """Whether to go there is the person's business, and they can read where it leads."""
    person = FakePerson([typed])
    params = {"mode": "url", "message": "Sign in", "url": "https://shop.example/sign", "elicitationId": "1"}
    assert await ask(person, params) == {"action": action}
    assert "https://shop.example/sign" in person.told[1]


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "https://",
        7,
        None,
        "https://bank.example@evil.example/",
    ],
)
async def test_what_is_no_web_page_is_not_even_shown(url: Any) -> None:
    """T20: a link that runs something, or lies about where it leads, is declined."""
    person = FakePerson(["y"])
    with pytest.raises(Declined):
        await ask(person, {"mode": "url", "message": "Click", "url": url})
    assert person.told == []


async def test_a_server_may_ask_ten_times_and_in_a_new_request_anew() -> None:
    """T20: a server that asks without end wears people down until they say yes."""
    person = FakePerson(["n"] * 100)
    counterpart = AgentCounterpart("me", person=person)
    for _ in range(ROUNDS):
        await counterpart.ask("elicitation", "shop", form(n={"type": "integer"}))
    with pytest.raises(Declined, match="asked 10 times already"):
        await counterpart.ask("elicitation", "shop", form(n={"type": "integer"}))
    counterpart.begin()
    await counterpart.ask("elicitation", "shop", form(n={"type": "integer"}))
    assert len(person.asked) == ROUNDS + 1


async def test_without_a_terminal_and_without_a_model_both_are_declined() -> None:
    """Nobody answers in the place of somebody who is not there."""
    counterpart = AgentCounterpart("me")
    with pytest.raises(Declined, match="nobody is at a terminal"):
        await counterpart.ask("elicitation", "shop", form(n={"type": "integer"}))
    with pytest.raises(Declined, match="no model to ask"):
        await counterpart.ask("sampling", "shop", {})


async def test_a_message_cannot_play_with_the_terminal() -> None:
    """The question is a stranger's text."""
    person = FakePerson(["n"])
    await ask(person, {**form(n={"type": "integer"}), "message": "a\x1b[2Jb\u202ec"})
    assert person.told[0] == "Server 'shop' asks: a[2Jbc"


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@given(
    st.fixed_dictionaries({}, optional={"mode": _json, "message": _json, "url": _json, "requestedSchema": _json})
    | st.fixed_dictionaries(
        {"requestedSchema": st.fixed_dictionaries({"properties": st.dictionaries(st.text(), _json)})}
    )
)
def test_whatever_a_server_sends_is_a_form_a_page_or_unaskable(params: dict[str, Any]) -> None:
    """A server's question is read in the middle of a call."""
    assert isinstance(wanted(params), Form | Visit | Unaskable)
