"""Reads a page as a parser does: which elements there are, and which text."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset({"area", "br", "col", "hr", "img", "input", "link", "meta", "wbr", "path", "line", "rect"})


@dataclass
class Element:
    """One element: its name, its attributes, the text inside."""

    tag: str
    attributes: dict[str, str]
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(self.parts).split())


_INLINE = frozenset({"a", "b", "code", "em", "mark", "small", "span", "strong", "time", "use", "wbr"})


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self._open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        self._part(tag)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        self._part(tag)
        if tag in {element.tag for element in self._open}:
            while self._open.pop().tag != tag:
                pass

    def _part(self, tag: str) -> None:
        """What stands in boxes of its own is not one word."""
        if tag not in _INLINE:
            self.handle_data(" ")

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.parts.append(data)


def elements(page: str, tag: str | None = None, **attributes: str) -> list[Element]:
    """All elements of a page, or those of one name with these attributes (`_` for `-`)."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    return [
        element
        for element in reader.elements
        if tag in (None, element.tag) and all(element.attributes.get(name) == value for name, value in wanted.items())
    ]


def csrf_of(page: str) -> str:
    """The word that the forms of a page carry."""
    found = {element.attributes["value"] for element in elements(page, "input", name="csrf")}
    assert len(found) == 1, found
    return found.pop()


def text_of(page: str) -> str:
    """All words of a page's body."""
    return elements(page, "body")[0].text


def check_inert(page: str, path: str) -> None:
    """A page of the dashboard has the elements of its template and no other, and nothing in it is hidden."""
    found = elements(page)
    tags = [element.tag for element in found]
    assert [e.attributes.get("src", "")[:8] for e in found if e.tag == "script"] == ["/static/"], path
    assert not {"iframe", "style", "base", "object", "embed"} & set(tags), path
    assert (tags.count("meta"), tags.count("link")) == (4, 2), path
    for element in found:
        assert not [name for name in element.attributes if name.startswith("on")], (path, element)
        for name in ("href", "src", "action", "formaction"):
            target = element.attributes.get(name, "/")
            assert target.startswith(("/", "#", "?", "data:image/")), (path, target)
            assert not target.startswith("//"), (path, target)
    # Values of fields are exempt: they come back as they are, and nobody reads them.
    whole = next(element for element in found if element.tag == "html")
    seen = "".join(whole.parts) + "".join(element.attributes.get("title", "") for element in found)
    assert not set(seen) & set("\x00\x07\x1b\x7f\x85\x9b\u200b\u202e\u2066\u2028\ufeff\U000e0041"), path
