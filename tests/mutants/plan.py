"""The committed list of one-line changes that tests must notice: `mutants.yaml`, checked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ringleaf.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("mutants.yaml")
MEMBERS = Path(__file__).with_name("members.yaml")

KEYS = {"name", "file", "from", "to", "tests", "compiled"}


class PlanError(ConfigError):
    """An entry of the list that does not fit the sources."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change, and the tests that must fail with it.

    Attributes:
        name: What the change breaks, in words; unique.
        file: The changed file, relative to the repository. Of a compiled P4 program it is the JSON,
            as p4c may be missing.
        pointer: A place in that JSON (RFC 6901); empty for other files.
        old: Text that occurs once in the file, within one line; or the value at the pointer.
        new: Replacement of that.
        tests: Arguments of pytest that select the tests.
        compiled: Whether the tests run compiled. Uncompiled ones start sooner when the change is
            in code that would be compiled anew.
        line: The number of the changed line, if the text is all of it and may be there again; 0
            for others.
    """

    name: str
    file: str
    pointer: str
    old: str
    new: str
    tests: tuple[str, ...]
    compiled: bool
    line: int = 0

    @property
    def suite(self) -> Suite:
        """The tests and how they run, which several mutants may share."""
        return Suite(self.tests, self.compiled)

    def apply(self, tree: Path) -> None:
        """Make the change in a copy of the repository.

        Raises:
            PlanError: If the old text is not in the file exactly once, or is more than a line.
        """
        path = tree / self.file
        text = path.read_text()
        if self.pointer:
            path.write_text(self._change_value(json.loads(text)))
            return
        if self.line:
            path.write_text(self._change_line(text))
            return
        count = text.count(self.old)
        if count != 1:
            raise PlanError(
                f"{self.name}: the text must be in {self.file} once, got {count} times; "
                f"mend mutants.yaml: {self.old!r}"
            )
        if "\n" in self.old or self.old == self.new:
            raise PlanError(f"{self.name}: must change one line, got {self.old!r} -> {self.new!r}")
        path.write_text(text.replace(self.old, self.new))

    def _change_line(self, text: str) -> str:
        """Return the text with another line."""
        lines = text.splitlines()
        if lines[self.line - 1] != self.old:
            raise PlanError(f"{self.name}: line {self.line} must be {self.old!r}; draw again")
        lines[self.line - 1] = self.new
        return "\n".join(lines) + "\n"

    def _change_value(self, data: Any) -> str:
        """Return JSON with another value at the pointer."""
        *steps, last = [_key(step) for step in self.pointer.split("/")[1:]]
        place = data
        try:
            for step in steps:
                place = place[step]
            found = place[last]
        except (KeyError, IndexError, TypeError):
            found = None
        if found != self.old or self.old == self.new:
            raise PlanError(
                f"{self.name}: {self.file}{self.pointer} must be {self.old!r}, got {found!r}"
            )
        place[last] = self.new
        return json.dumps(data)


def _key(step: str) -> int | str:
    return int(step) if step.isdecimal() else step.replace("~1", "/").replace("~0", "~")


@dataclass(frozen=True, slots=True)
class Suite:
    """A selection of tests."""

    tests: tuple[str, ...]
    compiled: bool


def read_list(path: Path = LIST) -> list[Mutant]:
    """Read the list.

    Raises:
        PlanError: If an entry has a key that is not known, or lacks one, or a name comes twice.
    """
    mutants = [_read_entry(entry) for entry in yaml.safe_load(path.read_text())]
    names = [mutant.name for mutant in mutants]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PlanError(f"mutants: names must be unique, got {', '.join(twice)} twice")
    return mutants


def read_members(path: Path = MEMBERS) -> list[Mutant]:
    """Read the changes of registries' members, each with its member's golden test.

    Raises:
        PlanError: If an entry is none.
    """
    return [
        mutant
        for family, members in yaml.safe_load(path.read_text()).items()
        for member, entry in members.items()
        for mutant in _of_member(family, member, entry)
    ]


def _of_member(family: str, member: str, entry: Sequence[object]) -> list[Mutant]:
    test, *changes = entry
    found = []
    for change in changes:
        if not isinstance(change, dict) or set(change) != {"file", "from", "to", "name"}:
            raise PlanError(f"{family}: {member}: needs name, file, from and to, got {change!r}")
        file, _, pointer = str(change["file"]).partition("#")
        name = f"{family}, {member}: {change['name']}"
        texts = str(change["from"]), str(change["to"])
        found.append(Mutant(name, file, pointer, *texts, tuple(str(test).split()), False))
    return found


def _read_entry(entry: dict[str, object]) -> Mutant:
    name = entry.get("name", "?")
    unknown, missing = set(entry) - KEYS, KEYS - {"compiled"} - set(entry)
    if unknown or missing:
        raise PlanError(
            f"{name}: keys must be {', '.join(sorted(KEYS))}, got {', '.join(sorted(entry))}"
        )
    return Mutant(
        str(name),
        *str(entry["file"]).partition("#")[::2],
        str(entry["from"]),
        str(entry["to"]),
        tuple(str(entry["tests"]).split()),
        bool(entry.get("compiled", False)),
    )


def select(mutants: Sequence[Mutant], words: Sequence[str]) -> list[Mutant]:
    """Return the mutants whose name or file has one of the words; all if there are no words."""
    if not words:
        return list(mutants)
    return [m for m in mutants if any(word in m.name or word in m.file for word in words)]
