"""Reads the Jira Query Language: from a text to a tree, with the place of what is wrong.

query  = [or] [ORDER BY field [ASC | DESC] {"," field [ASC | DESC]}]
or     = and {OR and}           and = not {AND not}       not = NOT not | "(" or ")" | clause
clause = field operator value   value = word | function "(" … ")" | "(" value {"," value} ")"
"""

import re
from dataclasses import dataclass, field
from typing import TypeAlias

OPERATORS = ("=", "!=", "~", "!~", "<", "<=", ">", ">=", "IN", "NOT IN", "IS", "IS NOT")
_MAX_DEPTH = 50
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<sign>!=|!~|<=|>=|&&|\|\||[=~<>(),!])|(?P<word>[^\s"'=~<>(),!|&]+))"""
)


class BadQuery(Exception):
    """Why a query cannot be understood, in Jira's words."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a query, and where it begins; text in quotes is never a keyword."""

    text: str
    place: int
    quoted: bool = False

    def is_word(self, *words: str) -> bool:
        return not self.quoted and self.text.upper() in words


@dataclass(frozen=True, slots=True)
class Function:
    """A call such as currentUser()."""

    name: str
    arguments: tuple[str, ...]


Value: TypeAlias = str | Function


@dataclass(frozen=True, slots=True)
class Clause:
    """One comparison."""

    field: str
    operator: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Both:
    """AND, or with `any` OR."""

    parts: tuple["Node", ...]
    any: bool


@dataclass(frozen=True, slots=True)
class Negation:
    """NOT."""

    part: "Node"


Node: TypeAlias = Clause | Both | Negation


@dataclass(frozen=True, slots=True)
class Query:
    """What to find, None for everything, and in which order: fields, each with whether it is descending."""

    where: Node | None = None
    order: tuple[tuple[str, bool], ...] = field(default=())


def parse(text: str) -> Query:
    """Raises BadQuery."""
    return _Parser(text).query()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._at = 0
        self._depth = 0

    def query(self) -> Query:
        where = None if self._ahead("ORDER") or self._is_done() else self._or()
        order = self._order() if self._take("ORDER") else ()
        if not self._is_done():
            raise self._expected("either 'OR' or 'AND'")
        return Query(where, order)

    def _or(self) -> Node:
        return self._joined("OR", "||")

    def _joined(self, *words: str) -> Node:
        inner = self._and if words[0] == "OR" else self._not
        parts = [inner()]
        while self._take(*words):
            parts.append(inner())
        return parts[0] if len(parts) == 1 else Both(tuple(parts), any=words[0] == "OR")

    def _and(self) -> Node:
        return self._joined("AND", "&&")

    def _not(self) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise BadQuery(f"Error in the JQL Query: more than {_MAX_DEPTH} levels.")
        try:
            if self._take("NOT", "!"):
                return Negation(self._not())
            if self._take("("):
                inside = self._or()
                self._close()
                return inside
            return self._clause()
        finally:
            self._depth -= 1

    def _clause(self) -> Clause:
        name = self._operand("a field name")
        operator = self._operator()
        if operator in {"IN", "NOT IN"}:
            return Clause(name, operator, self._list())
        return Clause(name, operator, (self._value(),))

    def _operator(self) -> str:
        token = self._next()
        word = token.text.upper() if token and not token.quoted else ""
        if word == "NOT" and self._take("IN"):
            return "NOT IN"
        if word == "IS" and self._take("NOT"):
            return "IS NOT"
        if word not in OPERATORS:
            self._at -= token is not None
            names = ", ".join(f"'{name}'" for name in OPERATORS)
            raise self._expected("operator", f" The valid operators are {names}.")
        return word

    def _list(self) -> tuple[Value, ...]:
        if not self._take("("):
            # A function may give several values: sprint in openSprints().
            value = self._value()
            if isinstance(value, Function):
                return (value,)
            self._at -= 1
            raise self._expected("'('")
        values = [self._value()]
        while self._take(","):
            values.append(self._value())
        self._close()
        return tuple(values)

    def _value(self) -> Value:
        word = self._operand("either a value, list or function")
        if not self._take("("):
            return word
        arguments: list[str] = []
        while not self._take(")"):
            arguments.append(self._operand("a value"))
            self._take(",")
        return Function(word, tuple(arguments))

    def _order(self) -> tuple[tuple[str, bool], ...]:
        if not self._take("BY"):
            raise self._expected("'BY'")
        fields: list[tuple[str, bool]] = []
        while not fields or self._take(","):
            name = self._operand("a field name")
            fields.append((name, self._take("DESC")))
            self._take("ASC")
        return tuple(fields)

    def _operand(self, what: str) -> str:
        token = self._next()
        if token is None or (not token.quoted and re.fullmatch(r"[=~<>(),!|&]+", token.text)):
            self._at -= token is not None
            raise self._expected(what)
        return token.text

    def _close(self) -> None:
        if not self._take(")"):
            raise self._expected("')'")

    def _take(self, *words: str) -> bool:
        found = self._ahead(*words)
        self._at += found
        return found

    def _ahead(self, *words: str) -> bool:
        return not self._is_done() and self._tokens[self._at].is_word(*words)

    def _next(self) -> Token | None:
        if self._is_done():
            return None
        self._at += 1
        return self._tokens[self._at - 1]

    def _is_done(self) -> bool:
        return self._at >= len(self._tokens)

    def _expected(self, what: str, more: str = "") -> BadQuery:
        if self._is_done():
            return BadQuery(f"Error in the JQL Query: Expecting {what} before the end of the query.{more}")
        token = self._tokens[self._at]
        before = self._text[: token.place]
        line, column = before.count("\n") + 1, token.place - before.rfind("\n")
        place = f"(line {line}, character {column})"
        return BadQuery(f"Error in the JQL Query: Expecting {what} but got '{token.text}'.{more} {place}")


def _tokens(text: str) -> list[Token]:
    tokens, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            place = at + len(text[at:]) - len(text[at:].lstrip())
            raise BadQuery(
                f"Error in the JQL Query: The character '{text[place]}' is out of place, or a quoted text has no end. "
                f"(character {place + 1})"
            )
        quoted = match["text"] is not None
        raw = match["text"] or match["sign"] or match["word"]
        inner = re.sub(r"\\(.)", r"\1", raw[1:-1]) if quoted else raw
        tokens.append(Token(inner, match.end() - len(raw), quoted))
        at = match.end()
    return tokens
