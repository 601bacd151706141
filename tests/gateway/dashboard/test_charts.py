"""Charts say the same in shapes, in words and in a table."""

from hypothesis import given
from hypothesis import strategies as st

from squidbot.gateway.dashboard.charts import Point, calls_chart, latency_chart

POINTS = st.lists(
    st.builds(
        lambda ok, errors, refused, p50, more: Point(
            0.0, ok + errors + refused, errors, refused, p50, None if p50 is None else p50 + more
        ),
        st.integers(0, 10**6),
        st.integers(0, 1_000),
        st.integers(0, 1_000),
        st.none() | st.floats(0, 600),
        st.floats(0, 600),
    ),
    max_size=40,
)


@given(POINTS)
def test_no_bar_and_no_line_leaves_the_drawing(points: list[Point]) -> None:
    """What is drawn outside its box is not seen, or lies over something else."""
    chart = calls_chart(points, step=60)
    for spot, point in zip(chart.spots, points, strict=True):
        assert sum(block.height for block in spot.blocks) <= 100.01
        assert all(-0.01 <= block.y <= 100 and block.height > 0 for block in spot.blocks)
        drawn = sum(block.height for block in spot.blocks)
        assert (drawn > 0) == (point.calls > 0) or point.calls < 10
    for line in latency_chart(points).lines:
        for path in line.paths:
            places = [part[1:] if part[0] in "ML" else part for part in path.split(" ") if part[0] != "h"]
            assert all(-0.01 <= float(y) <= 100.01 for y in places[1::2])


def test_a_chart_of_nothing_is_drawn_and_says_so() -> None:
    """The first hour of every gateway looks like this."""
    chart = calls_chart([], step=60)
    assert (chart.is_empty, chart.spots, chart.rows) == (True, (), ())
    assert chart.summary == "no calls, no errors, 0 refused."
    assert latency_chart([Point(0.0)]).summary == "No call was made in this time."


def test_words_and_table_say_what_the_bars_show() -> None:
    """Whoever cannot see the chart is told the same."""
    points = [Point(0.0), Point(60.0, 5, 1, 2, 0.01, 0.2), Point(120.0, 3, 0, 0, 0.02, 0.4)]
    chart = calls_chart(points, step=60)
    assert chart.summary == "8 calls, 1 error, 2 refused. At most 5 in a minute, at"
    assert chart.peak == 60.0
    assert chart.ticks == ("6", "3", "0")
    assert chart.rows == ((60.0, ("5", "1", "2")), (120.0, ("3", "0", "0")))
    assert [block.kind for block in chart.spots[1].blocks] == ["ok", "refused", "errors"]
    latency = latency_chart(points)
    assert (latency.summary, latency.peak) == ("The highest p95 was 400 ms, at", 120.0)
    assert latency.rows[0] == (60.0, ("10 ms", "200 ms"))


def test_a_line_is_broken_where_nothing_was_called() -> None:
    """A line across silence would tell of calls that nobody made."""
    values = (0.1, 0.1, None, 0.1)
    chart = latency_chart([Point(at, int(v is not None), 0, 0, v, v) for at, v in enumerate(values)])
    assert [len(line.paths) for line in chart.lines] == [2, 2]
    assert chart.lines[0].paths[1].endswith("h0.01")
