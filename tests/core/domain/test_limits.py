"""Limits as values: whom they concern, what the default leaves, and the arithmetic of a bucket."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squidbot.core.domain.callers import OPERATOR
from squidbot.core.domain.limits import DEFAULT_LIMIT, Bucket, Limit, limits_of, rate_of, refusal
from squidbot.core.domain.tools import ToolId

RATES = st.sampled_from([1 / 86400, 1 / 60, 0.5, 1.0, 3.0, 10.0, 50.0, 1e4])
READ = ToolId("files", "read_file")


@pytest.mark.requirement("E-07")
@pytest.mark.parametrize(
    ("text", "rate"), [("1/s", 1.0), ("3000/m", 50.0), ("7200/h", 2.0), ("86400/d", 1.0), ("1/d", 1 / 86400)]
)
def test_a_rate_is_read_as_calls_a_second(text: str, rate: float) -> None:
    """People think in minutes and days, buckets in seconds."""
    assert rate_of(text) == pytest.approx(rate)


@pytest.mark.requirement("E-07")
@pytest.mark.parametrize("text", ["", "3000", "0/m", "-1/m", "1.5/s", "5/w", "5 / m", "5/m\n", "٣/m"])
def test_what_is_no_rate_is_refused_with_an_example(text: str) -> None:
    """A limit that was misread is worse than none."""
    with pytest.raises(ValueError, match="as in 3000/m"):
        rate_of(text)


@pytest.mark.requirement("E-07")
def test_every_role_has_the_default_limit_unless_the_settings_say_otherwise() -> None:
    """A limit ships, and is on."""
    assert limits_of("qa", []) == [DEFAULT_LIMIT]
    narrow = Limit(server="files", tool="delete_*", rate=1.0)
    assert limits_of("qa", [narrow]) == [DEFAULT_LIMIT, narrow]
    own = Limit(role="qa", rate=10.0, burst=5, concurrency=3)
    assert limits_of("qa", [own]) == [own]
    assert limits_of("dev", [own]) == [DEFAULT_LIMIT]


@pytest.mark.requirement("E-07")
def test_what_a_general_limit_leaves_open_the_default_still_holds() -> None:
    """Who limits how many run side by side has not said that any rate will do."""
    side_by_side = Limit(concurrency=2)
    (kept, given) = limits_of("qa", [side_by_side])
    assert (kept.rate, kept.concurrency, given) == (DEFAULT_LIMIT.rate, None, side_by_side)
    faster = Limit(role="q*", rate=1000.0, burst=9)
    (kept, given) = limits_of("qa", [faster])
    assert (kept.rate, kept.concurrency, given) == (None, DEFAULT_LIMIT.concurrency, faster)


@pytest.mark.requirement("E-07")
def test_the_operator_has_no_limit() -> None:
    """The person at the keyboard is their own."""
    assert limits_of(OPERATOR, [Limit(rate=1.0)]) == []
    assert not Limit(rate=1.0).concerns(OPERATOR, READ)


@pytest.mark.requirement("E-07")
@pytest.mark.parametrize(
    ("limit", "concerned"),
    [
        (Limit(), True),
        (Limit(role="qa", server="files", tool="read_*"), True),
        (Limit(role="q?"), True),
        (Limit(role="QA"), False),
        (Limit(server="git"), False),
        (Limit(tool="write_*"), False),
    ],
)
def test_a_limit_concerns_what_its_globs_match(limit: Limit, concerned: bool) -> None:
    """One pattern language for grants and limits; capitals count."""
    assert limit.concerns("qa", READ) is concerned


@pytest.mark.requirement("E-07")
@given(
    rate=RATES,
    burst=st.integers(1, 50),
    gaps=st.lists(st.floats(0, 3), max_size=200),
    start=st.floats(0, 1e7),
)
def test_in_no_stretch_of_time_more_than_burst_and_rate_pass(
    rate: float, burst: int, gaps: list[float], start: float
) -> None:
    """This is what a limit means, for every rhythm of calls."""
    bucket, now = Bucket(Limit(rate=rate, burst=burst), start), start
    passed: list[float] = []
    for gap in gaps:
        now += gap / rate
        if not bucket.wait(now):
            bucket.take(now)
            passed.append(now)
    for first, begin in enumerate(passed):
        for last in range(first, len(passed)):
            assert last - first + 1 <= burst + rate * (passed[last] - begin) + 0.02


@pytest.mark.requirement("E-07")
@given(rate=RATES, burst=st.integers(1, 50), start=st.floats(0, 1e7), calls=st.integers(1, 200))
def test_whoever_waits_as_told_passes_and_loses_nothing_of_the_rate(
    rate: float, burst: int, start: float, calls: int
) -> None:
    """A wait that is too short is a lie, one that is too long wastes what was granted."""
    bucket, now = Bucket(Limit(rate=rate, burst=burst), start), start
    for _ in range(burst + calls):
        now += bucket.wait(now)
        assert bucket.wait(now) == 0
        bucket.take(now)
    assert now - start <= calls / rate * 1.01


@pytest.mark.requirement("E-07")
@given(rate=RATES, burst=st.integers(1, 1000), rest=st.floats(0, 1e7))
def test_a_rest_fills_a_bucket_to_its_burst_and_no_further(rate: float, burst: int, rest: float) -> None:
    """Yesterday's unused calls are not today's."""
    bucket = Bucket(Limit(rate=rate, burst=burst), 0.0)
    for _ in range(burst):
        assert bucket.wait(rest) == 0
        bucket.take(rest)
    assert bucket.wait(rest) > 0


@pytest.mark.requirement("E-07")
@pytest.mark.parametrize(
    ("limit", "busy", "words"),
    [
        (
            Limit(rate=50.0, burst=500),
            False,
            "role 'qa' may make 3000 calls a minute and 500 at once; try again in 1.5 s",
        ),
        (
            Limit(server="git", tool="push", rate=1 / 3600),
            False,
            "role 'qa' may make 1 call an hour and 1 at once of git/push; try again in 1.5 s",
        ),
        (
            Limit(concurrency=4),
            True,
            (
                "role 'qa' has 4 calls running, which is as many as it may have at a time; "
                "try again when one has ended, in about 1.5 s"
            ),
        ),
    ],
)
def test_a_refusal_says_who_what_and_when(limit: Limit, busy: bool, words: str) -> None:
    """An agent reads it and must know what to do."""
    assert str(refusal("qa", limit, 1.5, busy=busy)) == words


@pytest.mark.requirement("E-07")
@pytest.mark.parametrize(
    ("on_failure", "writes", "reads"), [(None, False, True), ("open", True, True), ("closed", False, False)]
)
def test_without_a_count_only_what_changes_nothing_passes_unless_the_limit_says(
    on_failure: str, writes: bool, reads: bool
) -> None:
    """A lost counter must not become a free pass, nor stop those who only look."""
    limit = Limit(rate=1.0, on_failure=on_failure)  # type: ignore[arg-type]
    assert limit.passes_unreachable(changes=True) is writes
    assert limit.passes_unreachable(changes=False) is reads
