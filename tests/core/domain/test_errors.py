"""The errors that people and programs meet."""

import pytest

from squidbot.core.domain.errors import (
    ConfigError,
    InvalidArguments,
    MCPConnectionError,
    MCPProtocolError,
    Problem,
    RateLimited,
    SquidbotError,
    ToolNotPermitted,
    UnknownTool,
)


@pytest.mark.parametrize(
    ("error", "also"),
    [
        (ConfigError("x"), ValueError),
        (ToolNotPermitted("x"), PermissionError),
        (RateLimited("x", retry_after=1), SquidbotError),
        (UnknownTool("x"), ValueError),
        (InvalidArguments("x"), ValueError),
        (MCPConnectionError("x"), RuntimeError),
        (MCPProtocolError("x"), SquidbotError),
    ],
)
def test_every_error_is_ours_and_also_what_a_python_programmer_would_catch(
    error: SquidbotError, also: type[Exception]
) -> None:
    """The library promises both: one tree to catch all, and the usual classes."""
    assert isinstance(error, SquidbotError)
    assert isinstance(error, also)
    assert str(error) == "x"
    assert error.hint is None


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (Problem("a.b", "is missing"), "a.b: is missing"),
        (Problem("", "is no object"), "is no object"),
        (Problem("a", "is unknown", "Did you mean 'b'?"), "a: is unknown. Did you mean 'b'?"),
    ],
)
def test_a_problem_says_where_what_and_what_to_do(problem: Problem, words: str) -> None:
    """People mend what they can find."""
    assert str(problem) == words


@pytest.mark.requirement("A-04")
@pytest.mark.parametrize("kind", [ConfigError, InvalidArguments])
def test_all_problems_are_listed_not_only_the_first(kind: type[ConfigError] | type[InvalidArguments]) -> None:
    """One problem a run makes as many runs as there are problems."""
    error = kind("two things:", [Problem("a", "is missing"), Problem("b", "is wrong")])
    assert str(error) == "two things:\n  a: is missing\n  b: is wrong"
    assert [problem.path for problem in error.problems] == ["a", "b"]


def test_an_unknown_tool_comes_with_the_nearest_names() -> None:
    """Most unknown names are typing errors."""
    assert UnknownTool("x", nearest=["a", "b"]).hint == "Did you mean 'a' or 'b'?"


def test_a_limit_says_when_the_next_call_passes_and_a_lost_server_why() -> None:
    """Programs wait and decide by these, not by the words."""
    assert RateLimited("x", retry_after=2.5).retry_after == 2.5
    lost = MCPConnectionError("x", server="s", hint="h", status=503, retry_after=3, permanent=True)
    assert (lost.server, lost.hint, lost.status, lost.retry_after, lost.permanent) == ("s", "h", 503, 3, True)
