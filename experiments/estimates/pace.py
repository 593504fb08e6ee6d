"""The pace of this machine: what its last runs took beside what constants foretell.

Constants were fitted to one machine. Each run notes the seconds that they foretold and that it
took, for setup and for packets, and the last of these correct what is foretold next. They are in a
file of the cache, and change no more than what a run says of its time: threads and results follow
from the constants alone. A file that is damaged, or holds anything else, counts as none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path

from ringleaf.core.private import cache_folder
from ringleaf.core.sealed import read_sealed, write_sealed
from ringleaf.errors import ConfigError

FILE = "pace.json"
ABOUT = "seconds foretold and taken, 1"
MOST_RUNS = 16
"""The runs of each sort that are kept."""
MOST_SORTS = 256
DECAY = 0.8
"""The weight of a run by that of the next one."""
PRIOR_S = 0.5
"""Seconds added to both, as what takes milliseconds says little of what takes minutes."""
MOST_FACTOR = 50.0
START, SETUP, PACKETS = "start", "setup", "packets"
"""Parts of a run: imports, loading and figures; a row without its packets; these."""
ALL = "all"
"""The program of what runs have once, whatever they run."""

Pair = tuple[float, float]
"""The seconds foretold, and those that it took."""


@dataclass(frozen=True, slots=True)
class Sort:
    """Runs that are alike.

    Attributes:
        kind: `collective`, `jobs` or `workload`.
        program: The algorithm, or `all`.
        net: The network.
    """

    kind: str
    program: str
    net: str

    def key(self, part: str) -> str:
        """Return the name in the file: `collective ring virtual packets`."""
        return f"{self.kind} {self.program} {self.net} {part}"


class RunPaces:
    """The measures of the last runs, by sort and part."""

    def __init__(self, runs: Mapping[str, Iterable[Pair]] = {}) -> None:
        self._runs = {key: list(pairs)[-MOST_RUNS:] for key, pairs in runs.items()}
        self._noted: list[tuple[str, Pair]] = []

    def factor(self, sort: Sort, part: str) -> float:
        """Return the seconds that a part takes for each that constants foretell.

        Without runs of this sort, it is that of all of the kind on this network.
        """
        own = self._runs.get(sort.key(part))
        if own:
            return _median(own)
        start, end = f"{sort.kind} ", f" {sort.net} {part}"
        like = [_median(pairs) for key, pairs in self._runs.items() if _is_like(key, start, end)]
        return sorted(like)[len(like) // 2] if like else 1.0

    def note(self, sort: Sort, part: str, foretold_s: float, taken_s: float) -> None:
        """Take note of what a run took."""
        pair = (round(foretold_s, 4), round(max(taken_s, 0.0), 4))
        self._noted.append((sort.key(part), pair))

    def note_whole(self, sort: Sort, foretold_s: float, taken_s: float) -> None:
        """Take note of a run whose packets and all else go on at the same time."""
        for part in (SETUP, PACKETS):
            self.note(sort, part, foretold_s, taken_s)

    def keep(self) -> None:
        """Add what was noted to the file, if it can be written.

        The file is read again, as other runs may have added to it.
        """
        if not self._noted:
            return
        runs = read_paces()._runs
        for key, pair in self._noted:
            pairs = runs.pop(key, [])  # the last that were used are last
            runs[key] = [*pairs, pair][-MOST_RUNS:]
        self._noted = []
        text = json.dumps(dict(list(runs.items())[-MOST_SORTS:]))
        with suppress(OSError, ConfigError):
            write_sealed(_path(), text.encode(), ABOUT)


def read_paces() -> RunPaces:
    """Return what the last runs of this machine took; nothing, if there is no whole file."""
    with suppress(OSError, ConfigError):
        if (data := read_sealed(_path(), ABOUT)) is not None:
            with suppress(ValueError, TypeError, AttributeError):
                return RunPaces(_checked(json.loads(data)))
    return RunPaces()


def _path() -> Path:
    return cache_folder() / FILE


def _is_like(key: str, start: str, end: str) -> bool:
    return key.startswith(start) and key.endswith(end)


def _checked(entries: Mapping[str, list[list[float]]]) -> dict[str, list[Pair]]:
    """Return runs as they were written.

    Raises:
        ValueError, TypeError, AttributeError: If they are anything else.
    """
    runs = {str(key): [_pair(*each) for each in pairs] for key, pairs in entries.items()}
    return {key: pairs for key, pairs in runs.items() if pairs}


def _pair(foretold_s: float, taken_s: float) -> Pair:
    pair = (float(foretold_s), float(taken_s))
    if not (0 <= pair[0] < inf and 0 <= pair[1] < inf):
        raise ValueError(f"seconds: must be numbers from 0, got {pair}")
    return pair


def _median(pairs: list[Pair]) -> float:
    """Return the median of the factors, each with a weight of its seconds and its age."""
    weighed = sorted(
        (
            min(max((taken + PRIOR_S) / (foretold + PRIOR_S), 1 / MOST_FACTOR), MOST_FACTOR),
            (foretold + taken + PRIOR_S) * DECAY**age,
        )
        for age, (foretold, taken) in enumerate(reversed(pairs))
    )
    left = sum(weight for _, weight in weighed) / 2
    for factor, weight in weighed:
        left -= weight
        if left <= 0:
            return factor
    return weighed[-1][0]
