"""What the store keeps: records and intents, grants, alerts, first uses; on SQLite and on PostgreSQL alike."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from squidbot.adapters.store.store import SQLStore
from squidbot.core.domain.alerts import Alert
from squidbot.core.domain.audit import GrantChange, Grants, RecordFilter
from squidbot.core.domain.errors import ConfigError, NotRecorded
from squidbot.core.ports import AlertSink, AuditLog, GrantStore, TokenStore, Trail
from tests.fixtures.running import until
from tests.fixtures.trail import EVERYTHING, Place, all_of, call, end, intent

pytestmark = pytest.mark.anyio


async def test_the_store_is_what_the_core_calls(sqlite_place: Place) -> None:
    """A port that its adapter does not fit is found by the type checker here, not by a caller at night."""
    store = sqlite_place.store()
    ports: tuple[AuditLog, GrantStore, AlertSink, TokenStore, Trail] = (store, store, store, store, store)
    assert set(ports) == {store}


@pytest.mark.requirement("E-05", "E-10")
async def test_a_record_is_read_back_as_it_was_written(place: Place) -> None:
    """What an auditor reads must be what happened."""
    record = end(result=None, success=False, error_message="no", outcome="tool_error", squad_member_id=None)
    async with place.store() as store:
        await store.close(record)
    async with place.store() as store:
        (found,) = await all_of(store)
        assert found == replace(record, sequence=1, chain=found.chain)
        assert await store.get(record.id) == found
        assert await store.get("nobody") is None


@pytest.mark.requirement("E-05")
async def test_text_that_no_database_keeps_is_kept_readable(place: Place) -> None:
    """A hostile tool name must not be able to keep its own refusal out of the record."""
    async with place.store() as store:
        await store.close(end(tool="a\0b", error_message="half \ud800 a character", role="naïve 🦑"))
        await store.begin(intent(server="x\0y"))
        (found,) = await all_of(store)
        assert (found.tool, found.error_message, found.role) == ("a␀b", "half � a character", "naïve 🦑")
        assert (await all_of(store, RecordFilter(tool="a\0b"))) == [found]
        assert (await store.verify()).ok


@pytest.mark.requirement("E-05")
async def test_an_intent_is_counted_as_open_until_its_end(place: Place) -> None:
    """A call under way is visible, and an ended one is one record."""
    async with place.store() as store:
        begun = intent()
        await store.begin(begun)
        assert (await store.open_intents(), await all_of(store)) == (1, [])
        await store.close(end(begun))
        assert await store.open_intents() == 0
        assert [record.sequence for record in await all_of(store)] == [2]


@pytest.mark.requirement("E-05")
async def test_what_is_open_when_the_store_is_left_ends_as_unknown(place: Place) -> None:
    """Every intent has exactly one end, also when somebody forgot it."""
    async with place.store() as store:
        begun = intent()
        await store.begin(begun)
    async with place.store() as store:
        found = await store.get(begun.id)
        assert found is not None
        assert (found.outcome, found.error_message) == ("unknown", "squidbot ended before the answer came")
        assert (await store.verify()).ok


@pytest.mark.requirement("E-05", "E-10")
async def test_a_store_that_opens_leaves_the_calls_of_a_living_one_alone(place: Place) -> None:
    """A one-shot command beside a running gateway must not declare its calls dead."""
    async with place.store() as gateway:
        begun = intent()
        await gateway.begin(begun)
        async with place.store() as command:
            await call(command)
            assert await command.get(begun.id) is None
        await gateway.close(end(begun))
        assert (await gateway.verify()).ok


@pytest.mark.requirement("E-05")
async def test_a_second_end_is_refused_and_hurts_nobody_else(place: Place) -> None:
    """Exactly one end each: the first wins, and a batch does not fail for one bad neighbour."""
    async with place.store() as store:
        record = end()
        await store.close(record)
        others = [end() for _ in range(5)]
        answers = await asyncio.gather(
            *(store.close(each) for each in [*others[:2], record, *others[2:]]), return_exceptions=True
        )
        assert [type(answer) for answer in answers if answer is not None] == [NotRecorded]
        assert str(answers[2]) == f"the audit trail has an end of {record.id!r} already"
        assert len(await all_of(store)) == 6
        assert (await store.verify()).ok


async def test_an_id_begins_once(place: Place) -> None:
    """Two intents of one id would share an end."""
    async with place.store() as store:
        begun = intent()
        first, second = await asyncio.gather(store.begin(begun), store.begin(begun), return_exceptions=True)
        assert first is None
        assert isinstance(second, NotRecorded)
        with pytest.raises(NotRecorded, match="has an intent of"):
            await store.begin(begun)


@pytest.mark.requirement("E-05")
async def test_an_intent_whose_caller_gave_up_is_closed_as_cancelled(place: Place) -> None:
    """Whoever is cancelled before the call was made does not come back to say so."""
    async with place.store() as store:
        begun = intent()
        task = asyncio.ensure_future(store.begin(begun))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        async def ended() -> bool:
            found = await store.get(begun.id)
            return found is not None and found.outcome == "cancelled"

        await until(ended, what="the end of a cancelled intent")
        assert await store.open_intents() == 0


async def test_records_come_oldest_first_and_as_filtered(place: Place) -> None:
    """An auditor asks for one role's refusals since Monday, and wants all of them and nothing else."""
    async with place.store() as store:
        for number in range(12):
            await store.close(
                end(
                    timestamp=f"2026-11-{number + 10}T00:00:00.000000Z",
                    role=("backend_developer", "qa_tester")[number % 2],
                    tool=("git_push", "git_pull", "create_issue")[number % 3],
                    outcome=("ok", "refused")[number % 4 == 0],
                    kind=("call", "prompt")[number == 11],
                )
            )

        async def days(newest: int | None = None, **wanted: Any) -> list[int]:
            return [int(found.timestamp[8:10]) for found in await all_of(store, RecordFilter(**wanted), newest)]

        assert await days() == list(range(10, 22))
        assert await days(newest=3) == [19, 20, 21]
        assert await days(newest=2, role="qa_tester") == [19, 21]
        assert await days(tool="git_*", role="*developer") == [10, 14, 16, 20]
        assert await days(tool="git_pu[!s]?") == [11, 14, 17, 20]
        assert await days(tool="GIT_*") == []
        assert await days(outcome="refused") == [10, 14, 18]
        assert await days(kind="prompt") == [21]
        assert await days(since="2026-11-12T00:00:00.000000Z", until="2026-11-15") == [12, 13, 14]
        assert await days(since="2030") == []
        assert await days(until="2020", newest=4) == []


@pytest.mark.requirement("E-05")
async def test_records_of_a_time_are_found_wherever_they_stand(place: Place) -> None:
    """A long call is recorded after shorter ones that began later, and a clock may be put back by an hour."""
    async with place.store() as store:
        for hour in (9, 12, 10, 15, 11, 10, 14):
            await store.close(end(timestamp=f"2026-11-18T{hour:02}:00:00.000000Z"))

        async def hours(since: str | None = None, until: str | None = None) -> list[int]:
            return [record.sequence for record in await all_of(store, RecordFilter(since=since, until=until))]

        assert await hours(since="2026-11-18T10", until="2026-11-18T12") == [3, 5, 6]
        assert await hours(since="2026-11-18T12") == [2, 4, 7]
        assert await hours(until="2026-11-18T11") == [1, 3, 6]


async def test_more_records_than_fit_on_a_page_all_come(place: Place) -> None:
    """Pages are ours, not the reader's."""
    async with place.store() as store:
        await asyncio.gather(*(store.close(end()) for _ in range(1203)))
        assert [record.sequence for record in await all_of(store)] == list(range(1, 1204))
        assert [record.sequence for record in await all_of(store, EVERYTHING, 1100)] == list(range(104, 1204))


async def test_new_records_are_followed_as_they_come(place: Place) -> None:
    """`audit tail -f` shows what happens now, not what happened before."""
    async with place.store() as store, place.store() as other:
        await call(store)
        followed = store.follow(RecordFilter(role="qa_*"))
        first = asyncio.ensure_future(anext(followed))
        # It follows from the moment it looked; write until it has seen one.
        while not first.done():
            await call(other)
            await call(other, role="qa_tester")
            await asyncio.wait([first], timeout=0.1)
        assert (await first).role == "qa_tester"
        await followed.aclose()


async def test_usage_counts_calls_errors_and_refusals_of_each_role_and_tool(place: Place) -> None:
    """Who uses what, and how well it goes."""
    async with place.store() as store:
        for outcome, duration in (("ok", 1.0), ("tool_error", 3.0), ("refused", 0.0), ("limited", 0.0)):
            await store.close(end(outcome=outcome, duration=duration))
        await store.close(end(role="qa_tester", kind="prompt"))
        (found,) = await store.usage()
        assert (found.role, found.tool, found.calls, found.errors, found.refused) == (
            *("backend_developer", "git_push", 4),
            *(1, 2),
        )
        assert (found.mean_seconds, found.worst_seconds) == (1.0, 3.0)
        assert [each.role for each in await store.usage(RecordFilter(kind="prompt"))] == ["qa_tester"]
        assert await store.usage(RecordFilter(tool="git_p[!u]*")) == []


@pytest.mark.requirement("E-04")
async def test_a_grant_and_its_record_are_made_together(place: Place) -> None:
    """A change of who may do what without a record of it would be the one that matters."""
    record = end(kind="grant")
    async with place.store() as store:
        assert await store.load() == Grants()
        made = await store.change(role="qa_tester", server="git", tool="git_log", enabled=True, record=record)
        assert made == Grants((GrantChange("qa_tester", "git", "git_log", enabled=True),), 1)
        withdrawn = await store.change(
            role="qa_tester", server="git", tool="git_log", enabled=False, record=end(kind="grant")
        )
        assert withdrawn == Grants((GrantChange("qa_tester", "git", "git_log", enabled=False),), 2)
        with pytest.raises(NotRecorded):
            await store.change(role="qa_tester", server="git", tool="git_push", enabled=True, record=record)
        assert await store.load() == withdrawn
        assert [each.kind for each in await all_of(store)] == ["grant", "grant"]


@pytest.mark.requirement("E-09")
async def test_alerts_are_kept_once_each(place: Place) -> None:
    """An alert is looked at later, by somebody who was not there."""
    alerts = [
        Alert(f"alert-{number}", f"2026-11-18T10:56:3{number}.000000Z", "burst", "qa_tester", None, None, "many calls")
        for number in range(3)
    ]
    alerts[1] = replace(alerts[1], details={"calls": 301}, message="with \0 in it")
    async with place.store() as store:
        for alert in (*alerts, alerts[0]):
            await store.send(alert)
        kept = [alerts[0], replace(alerts[1], message="with ␀ in it"), alerts[2]]
        assert await store.alerts() == kept
        assert await store.alerts(newest=1) == kept[2:]


async def test_a_first_use_is_new_once(place: Place) -> None:
    """The rule must remember over a restart, or every start is a storm of alerts."""
    async with place.store() as store:
        assert await store.note_first_use("qa_tester", "git", "git_log")
        assert not await store.note_first_use("qa_tester", "git", "git_log")
    async with place.store() as store:
        assert await store.first_uses() == {("qa_tester", "git", "git_log")}


async def test_a_store_that_is_not_open_refuses(sqlite_place: Place) -> None:
    """Constructors do nothing, and a closed store keeps nothing."""
    store = sqlite_place.store()
    assert not sqlite_place.state.exists()
    with pytest.raises(NotRecorded, match="is not open"):
        await store.close(end())


@pytest.mark.parametrize(
    ("url", "said"),
    [("mysql://root:hunter2@there/db", "names 'mysql'"), ("hunter2", "no url"), ("sqlite://", "names 'sqlite'")],
)
async def test_a_url_of_nothing_known_is_a_settings_error_without_its_password(
    url: str, said: str, sqlite_place: Place
) -> None:
    """A typo is found at start, and is not the way in which a password gets into a log."""
    with pytest.raises(ConfigError, match=said) as refused:
        SQLStore(url, state=sqlite_place.state)
    assert "hunter2" not in f"{refused.value} {refused.value.hint}"


async def test_sqlite_and_postgres_are_named_by_their_urls(sqlite_place: Place) -> None:
    """What a person writes into the settings, and reads in a message."""
    path = sqlite_place.state / "elsewhere" / "trail.db"
    assert SQLStore(f"sqlite:///{path}", state=sqlite_place.state).place == str(path)
    store = SQLStore("postgres://ada:hunter2@db.internal/audit?sslmode=require", state=sqlite_place.state)
    assert store.place == "postgresql://ada:***@db.internal/audit"
