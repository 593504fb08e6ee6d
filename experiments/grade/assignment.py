"""Assignments: YAML files of an instructor, with cases, limits and points.

title: Allreduce of four ranks
kind: schedule                 # or program
seconds: 60                    # of the clock, for each case
cases:
  - name: sums are right
    points: 4
    options: {topo: "leafspine,leaves=1,spines=0,hosts=4", size: 64K}
  - name: sends little
    points: 2
    options: {topo: "leafspine,leaves=1,spines=0,hosts=4", size: 64K, loss: 1%}
    collective: allreduce
    within: {time: 40us, steps: 6, bytes: 110K}
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.registry import find_algorithm
from ringleaf.core.units import parse_size, parse_time
from ringleaf.core.yaml_file import read_yaml
from ringleaf.errors import ConfigError, TopologyError, choose
from ringleaf.experiments.runs.checks import check_network
from ringleaf.experiments.spec.choices import VIRTUAL
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.experiments.workloads.collective.spec import CollectiveSpec

SCHEDULE, PROGRAM = KINDS = ("schedule", "program")
SECONDS = 60
"""The time of a case by the clock, unless the assignment says another."""

MOST_CASES = 1000
MOST_SECONDS = 86_400

_KEYS = ("title", "kind", "seconds", "cases")
_CASE_KEYS = ("name", "points", "options", "collective", "within")
LIMITS = ("time", "steps", "bytes")
_TAKEN = {SCHEDULE: ("algo",), PROGRAM: ("program",)}
_OF_SWITCHES = r"^[^=]+$|(?<==)[^,]+"
_FILES = {
    "topo": r"^[^,]+",
    "program": _OF_SWITCHES,
    "control": _OF_SWITCHES,
    "cross_traffic": r"^.+$",
}
"""Options that name files, and where in their texts: all of `a.txt`, parts of `s0=a.txt,s1=b.txt`,
the beginning of `net.gml,hosts=each`."""
_OTHERS = ("out", "pcap", "record", "explain", "min", "max", "factor")
"""Options that are of no use to a case, which has one size."""


@dataclass(frozen=True, slots=True)
class CaseLimits:
    """What a case allows; None: anything."""

    time_ps: int | None = None
    steps: int | None = None
    wire_bytes: int | None = None  # that the busiest rank sends


@dataclass(frozen=True, slots=True)
class AssignedCase:
    """One case.

    Attributes:
        name: Its name, which students see.
        points: Points for it.
        options: Options of the run, as typed.
        collective: The collective that a schedule must be of.
        limits: What it may take.
    """

    name: str
    points: float
    options: Mapping[str, str]
    collective: Collective
    limits: CaseLimits

    def check(self, where: str) -> None:
        """Check the case's own options and topology, which no student has to answer for.

        Raises:
            ConfigError: If one is wrong; the message names the case.
        """
        try:
            check_network(resolve(self.options))
            self._check_collective()
        except (ConfigError, TopologyError) as error:
            raise ConfigError(f"{where}: case {self.name!r}: {error}") from error

    def _check_collective(self) -> None:
        """Refuse a collective that the case's own algorithm never is."""
        if "algo" in self.options:
            own = find_algorithm(self.options["algo"]).collective
            if own is not self.collective:
                raise ConfigError(
                    f"collective must be {own.value}, as of {self.options['algo']}, got "
                    f"{self.collective.value}"
                )


@dataclass(frozen=True, slots=True)
class StudentAssignment:
    """An assignment; `kind` is SCHEDULE or PROGRAM."""

    title: str
    kind: str
    seconds: float
    cases: tuple[AssignedCase, ...]

    @property
    def points(self) -> float:
        """The points of all cases."""
        return sum(case.points for case in self.cases)

    def check(self, where: str) -> None:
        """Check what can be wrong with the assignment itself before a student's file is read.

        Raises:
            ConfigError: If a case's options or topology are wrong.
        """
        for case in self.cases:
            case.check(where)


def read_assignment(path: Path) -> StudentAssignment:
    """Return the assignment in a file.

    Raises:
        ConfigError: If it can't be read, or is wrong; the message names the place.
    """
    where = f"assignment {path}"
    data = _mapping(read_yaml(path, "assignment"), where, _KEYS)
    kind = str(data.get("kind", SCHEDULE))
    choose(where, "kind", kind, KINDS)
    seconds = _number(data.get("seconds", SECONDS), f"{where}: seconds")
    if not 0 < seconds <= MOST_SECONDS:
        raise ConfigError(f"{where}: seconds must be 0 to {MOST_SECONDS}, got {seconds:g}")
    entries = data.get("cases")
    if not isinstance(entries, list) or not 0 < len(entries) <= MOST_CASES:
        raise ConfigError(
            f"{where}: cases must be a list of 1 to {MOST_CASES}, got {entries!r:.80}"
        )
    cases = tuple(
        _case(each, f"{where}: case {number}", kind, path.parent)
        for number, each in enumerate(entries, start=1)
    )
    names = [case.name for case in cases]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{where}: names of cases must differ, got {name!r} twice")
    return StudentAssignment(str(data.get("title", path.stem)), kind, seconds, cases)


def _case(entry: Any, where: str, kind: str, folder: Path) -> AssignedCase:
    data = _mapping(entry, where, _CASE_KEYS)
    name = str(data.get("name", "")).strip()
    if not name.isprintable() or not name:
        raise ConfigError(f"{where}: name must be one line of text, got {name!r}")
    points = _number(data.get("points", 1), f"{where}: points")
    if not 0 <= points <= 1e6:
        raise ConfigError(f"{where}: points must be 0 to 1e6, got {points:g}")
    options = _options(data.get("options", {}), f"{where}: options", kind, folder)
    collective = str(data.get("collective", Collective.ALLREDUCE.value))
    known = [each.value for each in Collective]
    choose(where, "collective", collective, known)
    return AssignedCase(
        name,
        points,
        options,
        Collective(collective),
        _limits(data.get("within", {}), f"{where}: within", kind),
    )


def _options(entry: Any, where: str, kind: str, folder: Path) -> dict[str, str]:
    """Return the options of a case as typed; files lie beside the assignment."""
    valid = [name for name in CollectiveSpec.names().values() if name not in _TAKEN[kind]]
    valid = [name for name in valid if name not in _OTHERS]
    data = _mapping(entry, where, valid)
    options = {}
    for name, value in data.items():
        if isinstance(value, (list, dict)):
            raise ConfigError(f"{where}: {name} must be one value, got {value!r:.80}")
        options[name] = str(value)
    if options.get("net", VIRTUAL) != VIRTUAL:
        raise ConfigError(f"{where}: net must be {VIRTUAL}, got {options['net']!r}")
    if kind == PROGRAM and "," in options.get("algo", ""):
        raise ConfigError(f"{where}: algo must be one algorithm, got {options['algo']!r}")
    if kind == PROGRAM and "algo" not in options:
        raise ConfigError(f"{where}: algo is missing, got {sorted(options)}; say algo: switchml")
    for name in _FILES.keys() & options.keys():
        options[name] = _beside(name, options[name], folder)
    if "," in options.get("size", ""):
        raise ConfigError(f"{where}: size must be one size, got {options['size']!r}")
    return {"size": "64K", **options}


def _beside(name: str, text: str, folder: Path) -> str:
    """Return an option's text with the files that lie beside the assignment by their places.

    Files with entries (`control`) are looked for nowhere else.
    """

    def place(word: re.Match[str]) -> str:
        path = folder / word[0]
        return str(path) if name == "control" or os.path.isfile(path) else word[0]

    return re.sub(_FILES[name], place, text)


def _limits(entry: Any, where: str, kind: str) -> CaseLimits:
    data = _mapping(entry, where, LIMITS)
    if kind == PROGRAM and "steps" in data:
        raise ConfigError(
            f"{where}: steps are a schedule's, got a limit for a program; leave it out"
        )
    empty = next((name for name, value in data.items() if value is None), None)
    if empty is not None:
        raise ConfigError(f"{where}: {empty} must have a value, got none; leave it out, or say it")
    steps = data.get("steps")
    if steps is not None and (type(steps) is not int or steps < 0):
        raise ConfigError(f"{where}: steps must be a whole number >= 0, got {steps!r:.80}")
    time, size = data.get("time"), data.get("bytes")
    return CaseLimits(
        None if time is None else parse_time(str(time), f"{where}: time"),
        steps,
        None if size is None else parse_size(str(size), f"{where}: bytes"),
    )


def _mapping(entry: Any, where: str, valid: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise ConfigError(f"{where}: must be a mapping, got {entry!r:.80}")
    for key in entry:
        choose(where, "key", str(key), valid)
    return {str(key): value for key, value in entry.items()}


def _number(entry: Any, where: str) -> float:
    if isinstance(entry, bool) or not isinstance(entry, (int, float)):
        raise ConfigError(f"{where} must be a number, got {entry!r:.80}")
    return float(entry)
