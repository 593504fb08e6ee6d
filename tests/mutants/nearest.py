"""Which tests are nearest to a source file: by imports, and by what they name."""

from __future__ import annotations

import ast
import re
from collections import Counter, deque
from functools import cached_property
from pathlib import Path

from draw import sources
from plan import ROOT

MOST = 6
"""Files of tests that are tried with one change."""
FAR = 4  # imports between a test and a file, beyond which the test says little of it
AROUND = 8  # lines before and behind a changed one, whose words its tests may share
OF_NUMBERS = "tests/test_layouts.py", "tests/test_wire_numbers.py"
"""Tests of all files' numbered names, tried first where one of those changes."""
FIRST = {
    "ringleaf/core/views.py": ("tests/test_native.py",),
    "ringleaf/core/compiler/arenas.py": ("tests/test_native.py",),
    "ringleaf/core/compiled.py": ("tests/test_native.py",),
    "hosts/rc/": (
        "tests/hosts/test_rc_requests.py",
        "tests/hosts/test_rc_answers.py",
        "tests/hosts/test_rc_receivers.py",
        "tests/hosts/test_rc_controllers.py",
        "tests/hosts/test_rc_cut_packets.py",
    ),
    "hosts/rc/layers.py": ("tests/test_wire_numbers.py",),
    "ina/switchml/scaling.py": ("tests/ina/test_switchml_scaling.py",),
    "ina/atp/": ("tests/ina/test_atp_steps.py", "tests/ina/test_tables_apart.py"),
    "ina/flight.py": ("tests/ina/test_flight_steps.py",),
    "ina/holdings.py": ("tests/ina/test_job_sizes.py",),
    "ina/netreduce/": ("tests/ina/test_netreduce_steps.py", "tests/ina/test_tables_apart.py"),
    "ina/omnireduce/": ("tests/ina/test_omnireduce_steps.py", "tests/ina/test_tables_apart.py"),
    "ina/omnireduce_switch/": (
        "tests/ina/test_switchml_steps.py",
        "tests/ina/test_tables_apart.py",
    ),
    "ina/panama/": ("tests/ina/test_panama_steps.py", "tests/ina/test_tables_apart.py"),
    "ina/switchml/": (
        "tests/ina/test_switchml_steps.py",
        "tests/ina/test_switchml_worker.py",
        "tests/ina/test_tables_apart.py",
    ),
    "ina/tern/": ("tests/ina/test_switchml_steps.py",),
    "ina/vote/": ("tests/ina/test_switchml_steps.py",),
    "switches/generate/psa.py": (
        "tests/switches/test_psa_ways.py",
        "tests/switches/test_psa_externs.py",
    ),
    "switches/generate/": (
        "tests/switches/test_generated_text.py",
        "tests/switches/test_traces.py",
        "tests/switches/test_generate_parts.py",
    ),
    "switches/generate/select.py": ("tests/switches/test_observing.py",),
    "switches/generate/statements.py": ("tests/switches/test_observing.py",),
    "networks/virtual/": (
        "tests/networks/test_loop_links.py",
        "tests/networks/test_loop_hosts.py",
        "tests/networks/test_loop_switches.py",
        "tests/networks/test_loop_events.py",
        "tests/networks/test_virtual_tiny.py",
    ),
}
"""Tests that reach much of a folder, or a file, in a few seconds; they are tried first."""
FIRST_OF_SYSTEMS = {
    "control": ("tests/ina/test_job_sizes.py",),
    "job": ("tests/ina/test_job_sizes.py",),
    "system": ("tests/ina/test_systems.py",),
    "systems": ("tests/ina/test_systems.py",),
    "samples": ("tests/ina/test_samples.py",),
    "layers": ("tests/test_wire_numbers.py",),
    "loads": ("tests/ina/test_loads_by_hand.py",),
    "reading": ("tests/ina/test_readers.py", "tests/ina/test_occupancy.py"),
}
"""Tests of files that each aggregation system may have, by their name; tried first, too."""
_NUMBERED = re.compile(r"[A-Z][A-Z0-9_]* = ")
_WORD = re.compile(r"[A-Za-z_]\w{3,}")
ENOUGH = 3  # tests that import a file; with fewer, those that name it are tried, too


class Imports:
    """The imports of all files, by their text.

    Args:
        root: The work tree.
    """

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root

    def tests_of(self, file: str, line: int = 0) -> list[str]:
        """Return the tests nearest to a line of a file, nearest first, `MOST` at most.

        Nearest are those that import the file, or have its name or its folder's in theirs; of a
        name that several files have, such as `worker`, the folder's counts. Where few import it, as
        nobody imports members of registries, those follow that have its name in their text. Of
        tests as near, those go first that share rare words with the line and those around it.
        """
        names, folder = _word(Path(file).stem), _word(Path(file).parent.name)
        if Path(file).stem in self._shared:
            names = folder
        distances = self._steps_to(file)
        is_known = sum(steps <= 2 for steps in distances.values()) >= ENOUGH
        for test, text in self._tests.items():
            title = Path(test).stem.removeprefix("test_").replace("_", "-")
            if names.search(title):
                distances[test] = 1
            elif folder.search(title):
                distances[test] = min(distances.get(test, FAR), 2)
            elif not is_known and names.search(text):
                distances[test] = min(distances.get(test, FAR), 3)
        if not distances:  # a member of a registry that no test names
            distances = {test: FAR for test in self._tests if file.partition("/")[0] in test}
        lines = (self._root / file).read_text().splitlines()
        around = "\n".join(lines[max(line - AROUND, 0) : line + AROUND])
        words = {word.lower() for word in _WORD.findall(around)}
        found = sorted(distances, key=lambda test: self._rank(test, distances[test], file, words))
        is_numbered = bool(line and _NUMBERED.match(lines[line - 1]))
        first = [each for folder in FIRST if file.startswith(folder) for each in FIRST[folder]]
        if file.startswith("ina/") and Path(file).stem in FIRST_OF_SYSTEMS:
            first = [*FIRST_OF_SYSTEMS[Path(file).stem]]
        if is_numbered:
            first = [*OF_NUMBERS, *first]
        first = [each for each in first if each in self._tests]
        return first + [each for each in found[:MOST] if each not in first]

    def _rank(
        self, test: str, distance: int, file: str, words: set[str]
    ) -> tuple[bool, int, bool, float, str]:
        """Order by distance; then tests of the same package, and those with the same words.

        Live networks are slow to start, so their tests are last, but for files of theirs.
        """
        is_live = "live" in test and not re.search("live|mininet|nic", file)
        is_away = file.partition("/")[0] not in test
        shared = sum(1 / self._frequency[word] for word in words & self._words[test])
        return is_live, distance, is_away, -shared, test

    @cached_property
    def _words(self) -> dict[str, set[str]]:
        """The words of each file of tests."""
        return {
            test: {w.lower() for w in _WORD.findall(text)} for test, text in self._tests.items()
        }

    @cached_property
    def _frequency(self) -> Counter[str]:
        """How many files of tests have a word."""
        return Counter(word for words in self._words.values() for word in words)

    def _steps_to(self, file: str) -> dict[str, int]:
        steps, waiting = {file: 0}, deque([file])
        while waiting:
            at = waiting.popleft()
            if steps[at] < FAR:
                for user in self._users.get(at, ()):
                    if user not in steps:
                        steps[user] = steps[at] + 1
                        waiting.append(user)
        return {user: found for user, found in steps.items() if _is_test(user)}

    @cached_property
    def _tests(self) -> dict[str, str]:
        """The text of each file of tests."""
        paths = sorted((self._root / "tests").rglob("test_*.py"))
        return {path.relative_to(self._root).as_posix(): path.read_text() for path in paths}

    @cached_property
    def _shared(self) -> set[str]:
        """The names that several files have."""
        names = Counter(Path(file).stem for file in sources(self._root))
        return {name for name, count in names.items() if count > 1}

    @cached_property
    def _direct(self) -> dict[str, set[str]]:
        """The imports that stand in each file itself."""
        known = {_module(file): file for file in sources(self._root)}
        helpers = sorted((self._root / "tests").rglob("*.py"))
        known |= {p.stem: p.relative_to(self._root).as_posix() for p in helpers}
        files = [*known.values(), *self._tests]
        return {file: set(_imported((self._root / file).read_text(), known)) for file in files}

    @cached_property
    def _users(self) -> dict[str, set[str]]:
        users: dict[str, set[str]] = {}
        for file, imported in self._direct.items():
            for name in imported:
                users.setdefault(name, set()).add(file)
        return users


def _word(name: str) -> re.Pattern[str]:
    """Return a pattern for a module's name, or the same with dashes."""
    return re.compile(
        rf"(?<![a-zA-Z0-9]){'[-_]'.join(map(re.escape, name.split('_')))}(?![a-zA-Z0-9])"
    )


def _is_test(file: str) -> bool:
    return Path(file).name.startswith("test_")


def _module(file: str) -> str:
    name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return name if name.startswith("ringleaf.") else f"ringleaf.{name}"


def _imported(text: str, known: dict[str, str]) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {known[name] for name in found if name in known}
