"""XML as a tree with line numbers, without document types and thus without entities of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from ringleaf.errors import ConfigError

DEEPEST = 50


@dataclass(slots=True)
class Element:
    """An element: its name without namespace, attributes, line, children, and the text inside."""

    name: str
    line: int
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def all(self, *names: str) -> Iterator[Element]:
        """Yield the children of these names, in order."""
        return (child for child in self.children if child.name in names)


def read_xml(text: str, where: str) -> Element:
    """Return the root of a document.

    Raises:
        ConfigError: If it is not XML, has a document type, or is too deep.
    """
    builder = _Builder(where)
    try:
        return builder.read(text)
    except expat.ExpatError as error:
        problem = expat.ErrorString(error.code)
        raise ConfigError(f"{where} line {error.lineno}: not XML: {problem}") from error


def needed(element: Element, name: str, where: str) -> str:
    """Return an attribute that an element must have; `where` is how a message begins.

    Raises:
        ConfigError: If it has none.
    """
    if name not in element.attributes:
        raise ConfigError(f"{where} line {element.line}: <{element.name}> must have {name}=")
    return element.attributes[name]


class _Builder:
    def __init__(self, where: str) -> None:
        self._where = where
        self._open: list[Element] = [Element("", 0, {})]
        self._parser = expat.ParserCreate("utf-8", " ")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._add_text
        self._parser.StartDoctypeDeclHandler = self._refuse

    def read(self, text: str) -> Element:
        """Return the root of the tree."""
        self._parser.Parse(text.encode(), True)
        return self._open[0].children[0]

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) > DEEPEST:
            raise ConfigError(f"{self._place()}: at most {DEEPEST} elements deep, got more")
        names = {key.rpartition(" ")[2]: value for key, value in attributes.items()}
        element = Element(name.rpartition(" ")[2], self._parser.CurrentLineNumber, names)
        self._open[-1].children.append(element)
        self._open.append(element)

    def _end(self, name: str) -> None:
        del name
        self._open.pop()

    def _add_text(self, text: str) -> None:
        self._open[-1].text += text

    def _refuse(self, name: str, *others: object) -> None:
        del others
        raise ConfigError(
            f"{self._place()}: must have no document type, got <!DOCTYPE {name}; remove it"
        )

    def _place(self) -> str:
        return f"{self._where} line {self._parser.CurrentLineNumber}"


def quoted(value: str) -> str:
    """Return a text as the value of an attribute, in quotes."""
    for letter, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        value = value.replace(letter, entity)
    return f'"{value}"'
