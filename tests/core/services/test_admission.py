"""Tokens are shown once, good at once, and gone at once; whoever has none is recorded, but not without end."""

from dataclasses import replace

import anyio
import pytest

from squidbot.core.domain.callers import Caller
from squidbot.core.domain.errors import InvalidArguments, NotFound
from squidbot.core.domain.happenings import Happening
from squidbot.core.domain.members import Identified, Principal
from squidbot.core.domain.sign_in import RefusalBudget, parts_of, span
from squidbot.core.ports import Identity, TokenStore
from squidbot.core.services.admission import NO_TOKEN, Admission, Refused
from squidbot.core.services.hub import Hub
from tests.fakes.door import World
from tests.fakes.tokens import FakeIdentity, FakeTokens

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-01")]

ADMIN = Caller("admin", member="m_root", origin="api")


class Gate:
    """An admission, and what stands behind it."""

    def __init__(self, roles: tuple[str, ...] = ("designer", "operator")) -> None:
        self.world = World([])
        self.store = FakeTokens(self.world.log)
        self.identity = FakeIdentity()
        self.hub = Hub()
        self.roles = list(roles)
        ports: tuple[TokenStore, Identity] = (self.store, self.identity)
        self.admission = Admission(
            ports[0],
            recorder=self.world.door.recorder,
            clock=self.world.clock,
            roles=lambda: self.roles,
            hub=self.hub,
            identity=ports[1],
        )


async def test_a_token_is_good_from_the_moment_it_is_made_and_kept_only_as_a_digest() -> None:
    """Whoever reads the database must not be able to sign in with what is found there."""
    gate = Gate()
    made = await gate.admission.create(ADMIN, "designer", name="Ada")
    who = await gate.admission.admit(made.token)
    assert who == Principal(made.record.member, "Ada", made.record.id, role="designer")
    secret = made.token.rsplit("_", 1)[1]
    assert len(bytes.fromhex(secret)) == 32
    assert secret not in repr(made)
    assert secret not in repr(gate.store.kept)
    assert secret not in repr(gate.world.log.closed)
    (record,) = gate.world.log.closed
    assert (record.kind, record.role, record.squad_member_id, record.tool) == (
        "grant",
        "admin",
        "m_root",
        "tokens.create",
    )


async def test_a_right_is_no_role() -> None:
    """An auditor's token must not be a way to any tool."""
    gate = Gate()
    made = await gate.admission.create(ADMIN, "auditor", name="Eve")
    who = await gate.admission.admit(made.token)
    assert who is not None
    assert (who.role, who.right, who.caller("mcp").role) == (None, "auditor", "")


@pytest.mark.parametrize("wanted", ["operator", "nobody", "", "Designer"])
async def test_a_token_is_only_for_a_role_that_there_is(wanted: str) -> None:
    """The operator is the person at the machine and never comes by token; a typing error must not make a dead token."""
    gate = Gate()
    with pytest.raises(NotFound, match="there is no role") as caught:
        await gate.admission.create(ADMIN, wanted, name="Ada")
    assert "designer" in (caught.value.hint or "")
    assert gate.store.kept == {}


@pytest.mark.parametrize("name", ["", "  ", "a" * 65, "a\nb", "a\x1b[31m"])
async def test_a_member_has_a_name_that_can_be_shown(name: str) -> None:
    """It is printed in lists and logs."""
    with pytest.raises(InvalidArguments, match="name"):
        await Gate().admission.create(ADMIN, "designer", name=name)


async def test_a_token_ends_at_its_time() -> None:
    """A token for a month must not be one for ever."""
    gate = Gate()
    end = gate.world.clock.time() + 60
    made = await gate.admission.create(ADMIN, "designer", name="Ada", expires=end)
    who = await gate.admission.admit(made.token)
    assert who is not None
    gate.world.clock.now += 60
    assert await gate.admission.admit(made.token) is None
    assert not await gate.admission.still(who)
    with pytest.raises(InvalidArguments, match="expires"):
        await gate.admission.create(ADMIN, "designer", name="Ada", expires=end)


async def test_a_revoked_token_is_nobodys_at_once_here_and_within_a_second_elsewhere() -> None:
    """A token that was lost is taken back before somebody else uses it."""
    gate = Gate()
    made = await gate.admission.create(ADMIN, "designer", name="Ada")
    who = await gate.admission.admit(made.token)
    assert who is not None
    with gate.hub.listen({"tokens"}) as heard:
        revoked = await gate.admission.revoke(ADMIN, made.record.id)
        assert heard.receive_nowait() == Happening("tokens", data={"id": made.record.id, "revoked": True})
    assert revoked.revoked
    assert await gate.admission.admit(made.token) is None
    assert not await gate.admission.still(who)
    again = await gate.admission.create(ADMIN, "designer", name="Ada")
    assert await gate.admission.admit(again.token) is not None
    gate.store.kept[again.record.id] = replace(again.record, revoked=True)
    gate.world.clock.now += 1
    assert await gate.admission.admit(again.token) is None
    with pytest.raises(NotFound):
        await gate.admission.revoke(ADMIN, "ffffffffffff")


async def test_revoking_twice_is_recorded_once() -> None:
    """A record of something that did not happen would be a false one."""
    gate = Gate()
    made = await gate.admission.create(ADMIN, "designer", name="Ada")
    for _ in range(2):
        await gate.admission.revoke(ADMIN, made.record.id)
    assert [record.tool for record in gate.world.log.closed] == ["tokens.create", "tokens.revoke"]


async def test_a_token_that_another_process_makes_is_good_at_once() -> None:
    """`squidbot tokens create` runs beside the gateway, and its next line is the one that connects a client."""
    gate, other = Gate(), Gate()
    made = await other.admission.create(ADMIN, "designer", name="Ada")
    assert await gate.admission.admit(made.token) is None
    gate.store.kept = other.store.kept
    assert await gate.admission.admit(made.token) is not None


async def test_the_database_is_not_asked_for_every_call() -> None:
    """A busy client asks a thousand times a second."""
    gate = Gate()
    made = await gate.admission.create(ADMIN, "designer", name="Ada")
    for _ in range(100):
        await gate.admission.admit(made.token)
    assert gate.store.asked == 1


async def test_a_crowd_whose_token_is_looked_up_again_asks_once() -> None:
    """Each question is a thread and a connection: sixty-four at once would hold up every other call."""
    gate = Gate()
    made = await gate.admission.create(ADMIN, "designer", name="Ada")
    await gate.admission.admit(made.token)
    gate.world.clock.now += 1
    async with anyio.create_task_group() as tasks:
        for _ in range(64):
            tasks.start_soon(gate.admission.admit, made.token)
    assert gate.store.asked == 2


@pytest.mark.parametrize(
    "change", [lambda t: t[:-1] + ("0" if t[-1] != "0" else "1"), str.upper, lambda t: t + " ", lambda t: t[4:]]
)
async def test_what_is_almost_a_token_is_none(change: object) -> None:
    """Nobody gets in with a part of a token, or with one in other letters."""
    gate = Gate()
    made = await gate.admission.create(ADMIN, "designer", name="Ada")
    assert callable(change)
    assert await gate.admission.admit(change(made.token)) is None


async def test_somebody_whose_role_is_gone_is_not_let_in() -> None:
    """A role that the settings no longer have must not come back with an old token."""
    gate = Gate()
    made = await gate.admission.create(ADMIN, "designer", name="Ada")
    who = await gate.admission.admit(made.token)
    assert who is not None
    gate.roles.remove("designer")
    assert await gate.admission.admit(made.token) is None
    assert not await gate.admission.still(who)


@pytest.mark.parametrize("claimed", ["operator", "nobody", ""])
async def test_an_issuer_cannot_name_a_role_that_there_is_not(claimed: str) -> None:
    """Whoever runs the issuer must not become the person at this machine."""
    gate = Gate()
    gate.identity.known["jwt"] = Identified("ada", "Ada", claimed, gate.world.clock.time() + 60)
    assert isinstance(await gate.admission.judge("jwt"), Refused)


async def test_an_issuers_word_is_good_for_a_role_that_there_is() -> None:
    """A team signs in with what it has."""
    gate = Gate()
    gate.identity.known["jwt"] = Identified("ada", "Ada", "designer", gate.world.clock.time() + 60)
    who = await gate.admission.admit("jwt")
    assert who == Principal("oidc:ada", "Ada", "oidc:ada", role="designer", expires=gate.world.clock.time() + 60)
    assert await gate.admission.still(who)
    gate.world.clock.now += 60
    assert not await gate.admission.still(who)


@pytest.mark.requirement("E-05")
async def test_a_flood_of_refused_sign_ins_is_counted_not_kept() -> None:
    """Somebody without a token must not be able to fill the disk with records of it."""
    gate = Gate()
    for _ in range(10_000):
        await gate.admission.refuse(Refused("there is no such token", "abc"), origin="mcp", address="203.0.113.9")
    first = gate.world.log.closed
    assert len(first) == 20
    assert (first[0].kind, first[0].outcome, first[0].success) == ("sign_in", "refused", False)
    assert '"id":"abc"' in first[0].arguments  # which token it was, and no secret
    gate.world.clock.now += 10
    await gate.admission.refuse(Refused("there is no such token"), origin="mcp")
    assert '"not_recorded_before":9980' in gate.world.log.closed[-1].arguments


async def test_those_who_show_no_token_do_not_hide_those_who_try_one() -> None:
    """A monitor that asks without a token every second is no cover for somebody who guesses."""
    gate = Gate()
    for _ in range(100):
        await gate.admission.refuse(NO_TOKEN, origin="mcp")
    assert len(gate.world.log.closed) == 20
    await gate.admission.refuse(Refused("there is no such token", "abc"), origin="mcp")
    assert gate.world.log.closed[-1].error_message == "there is no such token"


async def test_a_refusal_stands_even_when_it_cannot_be_recorded() -> None:
    """A full disk must not turn a 401 into a crash."""
    gate = Gate()
    gate.world.log.broken = True
    await gate.admission.refuse(Refused("no"), origin="mcp")


def test_a_budget_fills_up_again_but_not_beyond_its_size() -> None:
    """After a quiet night the next flood is bounded as the first one was."""
    budget = RefusalBudget()
    assert [budget.take(0.0) for _ in range(21)] == [0] * 20 + [None]
    assert [budget.take(1e6) for _ in range(21)] == [1] + [0] * 19 + [None]


@pytest.mark.parametrize(
    ("text", "seconds"), [("30d", 30 * 86_400), ("12h", 43_200), ("5m", 300), ("0d", None), ("d", None), ("1e9d", None)]
)
def test_spans_are_read_as_people_write_them(text: str, seconds: int | None) -> None:
    """A token that was meant for a month and lives for ever is a hole."""
    assert span(text) == seconds


def test_foreign_tokens_have_no_parts() -> None:
    """Whatever somebody sends in a header is looked at, and nothing in it is trusted."""
    for text in ("", "sqb_", "sqb_0123456789ab_", "Bearer x", "sqb_0123456789ab_" + "é" * 64, "\0"):
        assert parts_of(text) is None
