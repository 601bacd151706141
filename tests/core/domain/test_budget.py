"""A talkative server has its lines in the log, and no more."""

from squidbot.core.domain.budget import LINES, SECONDS, LineBudget


def test_one_source_has_so_many_lines_and_then_silence() -> None:
    """A hundred thousand messages of one server must not bury those of the others."""
    budget = LineBudget()
    assert [budget.take("one", 0.0) for _ in range(LINES + 3)] == [0] * LINES + [None] * 3
    assert budget.take("other", 0.0) == 0


def test_the_next_line_says_how_many_were_left_out() -> None:
    """What was dropped must be known to have been there."""
    budget = LineBudget()
    for _ in range(LINES + 3):
        budget.take("one", 0.0)
    assert budget.take("one", SECONDS) == 3
    assert budget.take("one", SECONDS + 1) == 0
