"""The P4 files of a program, where they are at hand, and the places of the parser's parts in them.

p4c's JSON gives the places of statements and tables, but not those of parser states.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ringleaf.switches.source import ProgramSource, Where
from ringleaf.switches.walk.steps import SourceLine

_INCLUDE = re.compile(r'^\s*#include\s+"([^"]+)"', re.MULTILINE)


class Sources:
    """Lines of a program's P4 files, by their names in the JSON."""

    def __init__(self, source: ProgramSource) -> None:
        self.lines: dict[str, tuple[str, ...]] = {}
        names = dict.fromkeys(where.file for where in _places(source))
        for name in names:
            self._read(name, source.path)

    @property
    def text(self) -> str:
        """Return all lines of all files, one after the other."""
        return "\n".join(line for lines in self.lines.values() for line in lines)

    def place(self, where: str) -> SourceLine | None:
        """Return the place that the JSON gives; None if it gives none."""
        if not isinstance(where, Where):
            return None
        return SourceLine(where.file, where.line, where.column, where.fragment)

    def state(self, name: str) -> SourceLine | None:
        """Return the place of a parser state's definition; None if it is not found."""
        return self._find(rf"\bstate\s+{re.escape(name)}\b")

    def extract(self, state: str, header: str) -> SourceLine | None:
        """Return the place in a state where a header is extracted; None if it is not found."""
        return self._find_in_state(
            state, rf"\bextract\s*\([^)]*\b{re.escape(header.split('[')[0])}\b"
        )

    def select(self, state: str) -> SourceLine | None:
        """Return the place of a state's transition; None if it is not found."""
        return self._find_in_state(state, r"\btransition\b")

    def is_definition(self, place: SourceLine) -> bool:
        """Return whether a place defines a constant: p4c gives that place where one is used."""
        lines = self.lines.get(place.file, ())
        line = lines[place.line - 1] if place.line <= len(lines) else ""
        return re.match(r"\s*(const|enum|#define)\b", line) is not None

    def assignment(self, target: str, near: SourceLine) -> SourceLine | None:
        """Return the assignment to a variable that is nearest to a place."""
        pattern = re.compile(rf"(?<![\w.]){re.escape(target)}\s*=[^=]")
        places = [
            SourceLine(near.file, number, match.start())
            for number, line in enumerate(self.lines.get(near.file, ()), 1)
            if (match := pattern.search(line))
        ]
        return min(places, key=lambda place: abs(place.line - near.line), default=None)

    def _find(
        self, pattern: str, file: str = "", first: int = 1, last: int = 0
    ) -> SourceLine | None:
        for name in [file] if file else self.lines:
            lines = self.lines[name][: last or None]
            for number, line in enumerate(lines[first - 1 :], first):
                match = re.search(pattern, line)
                if match:
                    return SourceLine(name, number, match.start())
        return None

    def _find_in_state(self, state: str, pattern: str) -> SourceLine | None:
        start = self.state(state)
        if start is None:
            return None
        following = self._find(r"\bstate\s+\w+", start.file, start.line + 1)
        return self._find(pattern, start.file, start.line, following.line if following else 0)

    def _read(self, name: str, beside: Path) -> None:
        path = _locate(name, beside)
        if path is None or name in self.lines:
            return
        text = path.read_text(errors="replace")
        self.lines[name] = tuple(text.splitlines())
        for included in _INCLUDE.findall(text):
            self._read(str(Path(name).parent / included), beside)


def _places(source: ProgramSource) -> Iterator[Where]:
    nodes = [*source.ingress.nodes.values(), *source.egress.nodes.values()]
    known: Iterable[str] = (
        *(side.deparser_where for side in source.sides()),
        *(getattr(node, "where", "") for node in nodes),
        *(item.where for item in source.primitives()),
        *(checksum.where for checksum in source.checksums),
    )
    return (where for where in known if isinstance(where, Where))


def _locate(name: str, beside: Path) -> Path | None:
    """Return the file of a name in the JSON, which is relative to the folder that p4c ran in.

    That folder is not known; None if the file is not found.
    """
    program = beside.resolve()
    for base in (Path.cwd(), *program.parents):
        if (base / name).is_file():
            return base / name
    return None
