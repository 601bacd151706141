"""The kinds of text that a tool takes, each refused in words if git could take it for something else."""

from typing import Annotated

from pydantic import AfterValidator, Field


def _text(text: str) -> str:
    if any(ord(character) < 32 and character not in "\n\t" for character in text) or "\x7f" in text:
        raise ValueError("control characters cannot be used here")
    return text


def _line(text: str) -> str:
    if "\n" in text or "\t" in text:
        raise ValueError("one line is wanted, without tabs")
    return _text(text)


def _no_option(text: str) -> str:
    if text.startswith("-"):
        raise ValueError(f"{text!r} begins with '-': the name of a branch, tag, commit or remote is wanted, no option")
    return _line(text)


def _inside(path: str) -> str:
    if path.startswith("/"):
        raise ValueError(f"{path!r} is absolute: paths start at the root of the repository, such as 'docs/plan.md'")
    if ".." in path.split("/"):
        raise ValueError(f"{path!r} may not contain '..': paths start at the root of the repository")
    return _text(path)


def _spoken(text: str) -> str:
    if not text.strip():
        raise ValueError("say in words what the commit does")
    return _text(text.replace("\r\n", "\n"))


def _person(text: str) -> str:
    if not text.strip() or set("<>") & set(text):
        raise ValueError("a name or an address is wanted, without '<' and '>'")
    return _line(text)


Repository = Annotated[
    str | None,
    Field(max_length=4096, description="Name or path of the repository; needed only if this server has several."),
]
Name = Annotated[str, Field(min_length=1, max_length=250), AfterValidator(_no_option)]
Path = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_inside)]
Paths = Annotated[list[Path], Field(max_length=1_000)]
Words = Annotated[str, Field(min_length=1, max_length=250), AfterValidator(_line)]
Message = Annotated[str, Field(min_length=1, max_length=20_000), AfterValidator(_spoken)]
Person = Annotated[str, Field(max_length=250), AfterValidator(_person)]
