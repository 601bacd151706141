"""References in settings: what is filled, what is missing, and that nothing leaks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squidbot.config.variables import Filler, has_references, join_path, parse_env_file, without_references
from squidbot.core.domain.errors import Problem

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


def no_files(path: str) -> str:
    raise FileNotFoundError(2, "No such file or directory")


def filled(text: str, /, **variables: str) -> str:
    filler = Filler(variables, no_files)
    result = filler.text(text, "here")
    assert not filler.problems
    return result


@pytest.mark.requirement("A-03")
@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("${A}", "one"),
        ("${env:A}", "one"),
        ("${A:-x}", "one"),
        ("${NONE:-x}", "x"),
        ("${NONE:-}", ""),
        ("${EMPTY:-x}", "x"),
        ("${EMPTY}", ""),
        ("${env:NONE:-a:-b}", "a:-b"),
        ("Bearer ${A}/${B}!", "Bearer one/two!"),
        ("$${A}", "${A}"),
        ("$A costs $5", "$A costs $5"),
        ("{A}", "{A}"),
    ],
)
def test_every_form_of_reference_is_filled_inside_a_longer_string(template: str, expected: str) -> None:
    """The forms are promised, and a dollar that is no reference must stay."""
    assert filled(template, A="one", B="two", EMPTY="") == expected


@pytest.mark.requirement("A-03")
@pytest.mark.parametrize("template", ["${}", "${1A}", "${A B}", "${input:token}", "${A", "${A:x}", "${"])
def test_what_looks_like_a_reference_and_is_none_is_a_problem(template: str) -> None:
    """A typo must not reach a server as literal text."""
    filler = Filler({"A": "one"}, no_files)
    filler.text(template, "servers.git.args[0]")
    (problem,) = filler.problems
    assert problem.path == "servers.git.args[0]"
    assert "is no reference" in problem.message
    assert "${VAR:-default}" in str(problem.hint)


@pytest.mark.requirement("A-03")
def test_every_missing_variable_is_named_with_its_path() -> None:
    """People fix all of it at once, or give up after the third round."""
    filler = Filler({}, no_files)
    filler.tree({"env": {"A": "${ONE}"}, "args": ["x", "${TWO} ${file:key}"], "n": 3, "none": None}, "git")
    assert [(problem.path, problem.message) for problem in filler.problems] == [
        ("git.env.A", "the variable 'ONE' is not set"),
        ("git.args[1]", "the variable 'TWO' is not set"),
        ("git.args[1]", "the file 'key' cannot be read: No such file or directory"),
    ]


def test_a_secret_file_that_is_no_text_is_a_problem() -> None:
    """A key in binary form cannot be put into a string."""

    def read(path: str) -> str:
        raise ValueError("it is not UTF-8 text")

    filler = Filler({}, read)
    filler.text("${file:key.der}", "x")
    assert filler.problems == [Problem("x", "the file 'key.der' cannot be used: it is not UTF-8 text")]


@given(st.text(), st.dictionaries(NAMES, st.text(), max_size=4), NAMES)
def test_a_value_is_never_read_for_references_again(value: str, others: dict[str, str], name: str) -> None:
    """Whoever controls one variable must not reach for another, or for a file."""
    assert filled(f"<${{{name}}}>", **{**others, name: value}) == f"<{value}>"


@given(st.text(), st.dictionaries(NAMES, st.text(min_size=4), max_size=4))
def test_problems_never_show_a_variables_value(template: str, variables: dict[str, str]) -> None:
    """A report is pasted into tickets."""
    marked = {name: f"hidden-{value}" for name, value in variables.items()}
    filler = Filler(marked, no_files)
    filler.text(template + "} " + "".join(f"${{{name}}}" for name in marked) + "${none such}", "x")
    assert not any("hidden-" in str(problem) for problem in filler.problems)
    assert filler.taken >= set(marked.values())


@given(st.text())
def test_text_without_references_is_left_alone(text: str) -> None:
    """Filling what is filled already must change nothing."""
    if not has_references(text) and "$${" not in text:
        assert filled(text) == text


def test_public_variables_are_not_remembered_as_secrets() -> None:
    """Blanking a home folder's name in every log would hide more than it protects."""
    filler = Filler({"HOME": "/home/me", "KEY": "abcd"}, no_files, public=frozenset({"HOME"}))
    filler.text("${HOME}/${KEY}/${NONE:-default}", "x")
    assert filler.taken == {"abcd"}


def test_what_comes_from_a_variable_can_be_left_out() -> None:
    """What goes over the wire holds nothing of the environment."""
    tree = {"a": "${X}", "b": ["y ${X}", "z", "$${lit}"], "c": {"d": "${file:k}", "e": 1}}
    assert without_references(tree) == {"b": ["z", "${lit}"], "c": {"e": 1}}


def test_an_env_file_is_read_as_shells_and_editors_write_it() -> None:
    """People already have these files."""
    text = """# comment

A=1
export B='two # 2'
C="a\\nb" # c
D=x y # z
E=
 F = f
G=a#b
H="q\\"q"
"""
    assert dict(parse_env_file(text)) == {
        "A": "1", "B": "two # 2", "C": "a\nb", "D": "x y", "E": "", "F": "f", "G": "a#b", "H": 'q"q',
    }  # fmt: skip


def test_a_broken_line_of_an_env_file_is_named_by_number_alone() -> None:
    """The line itself may be the secret."""
    with pytest.raises(ValueError, match=r"^line 2 is not NAME=value$"):
        dict(parse_env_file("A=1\nghp_secret\n"))


def test_paths_are_written_as_people_read_them() -> None:
    """A server's name may hold dots."""
    assert join_path("", "tools", "mcp_servers", "a.b", "args", 2) == "tools.mcp_servers['a.b'].args[2]"
