"""Compare two runs, or sweeps, row by row: find rows now slower, faster, missing or wrong.

Virtual time is exact, so two runs of equal code are equal to the picosecond, and a threshold of
0.1 % is a gate that never flakes.
"""

from __future__ import annotations

import csv
import io
import os.path
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Any

from ringleaf.core.files import separator
from ringleaf.core.inputs import decode
from ringleaf.core.units import PS_PER_US, format_count
from ringleaf.errors import ConfigError, RingleafError
from ringleaf.experiments.records.config import done_places, read_json
from ringleaf.experiments.records.folder import CONFIG, PLAN, ROWS, SUMMARY, SWEPT_ROWS
from ringleaf.experiments.runs.kind import Measure
from ringleaf.experiments.runs.registry import WORKLOADS
from ringleaf.experiments.runs.request import kind_named
from ringleaf.experiments.spec.kinds import ValueReader
from ringleaf.experiments.spec.options import ASIDE
from ringleaf.experiments.spec.renamed import RENAMED
from ringleaf.topologies.registry import full_name

FILES = (SWEPT_ROWS, ROWS)
TIME = "time"
"""The column that says which of a row's times is compared, where there are several."""

Key = tuple[str, ...]


class Change(StrEnum):
    """The way in which a row has changed."""

    EQUAL = "equal"
    NEAR = "near"  # within the threshold
    SLOWER = "slower"
    FASTER = "faster"
    MISSING = "missing"  # only the first has it
    NEW = "new"
    WRONG = "wrong"  # the second's values are


@dataclass(frozen=True, slots=True)
class MeasuredRows:
    """The times and the numbers of wrong values of a run's or sweep's rows, by their keys."""

    names: Key
    times_ps: dict[Key, int]
    wrong: dict[Key, int]
    readers: Mapping[str, ValueReader] = field(default_factory=dict)  # of columns that are options
    whole: Key | None = None  # of the time that is a whole run's, if it is known

    def take(self, key: Key, time: object, wrong: object) -> None:
        """Keep a time, and the number of wrong values.

        Raises:
            TypeError, ValueError: If one is no number.
        """
        self.times_ps[key], self.wrong[key] = int(str(time)), int(str(wrong or 0))

    def meaning(self, key: Key) -> tuple[str, ...]:
        """Return what a row's key means, however its options are written: 0.3% is 0.003."""
        cells = zip(self.names, key, strict=True)
        return tuple(_meaning(self.readers.get(name), name, text) for name, text in cells)

    def by_keys_of(self, other: MeasuredRows) -> MeasuredRows:
        """Return these rows by the other run's keys, where they mean the same."""
        known = {other.meaning(key): key for key in other.times_ps}
        keys = {
            key: key if key in other.times_ps else known.get(self.meaning(key), key)
            for key in self.times_ps
        }
        if len({*keys.values()}) < len(keys):
            return self  # several of them mean the same
        times_ps, wrong = (
            {keys[key]: value for key, value in values.items()}
            for values in (self.times_ps, self.wrong)
        )
        return replace(self, times_ps=times_ps, wrong=wrong)


def _meaning(reader: ValueReader | None, name: str, text: str) -> str:
    with suppress(RingleafError):  # such as a file that is gone
        return text if reader is None else repr(reader.read(text, name))
    return text


@dataclass(frozen=True, slots=True)
class Difference:
    """One row, compared between both runs."""

    key: Key
    before_ps: int | None
    after_ps: int | None
    change: Change

    @property
    def percent(self) -> float | None:
        """The increase of its time in percent; None if one of the two has no such row."""
        if self.before_ps is None or self.after_ps is None:
            return None
        return 100 * (self.after_ps - self.before_ps) / max(self.before_ps, 1)


def read(folder: Path) -> MeasuredRows:
    """Load the rows of a run directory, or of a sweep's.

    Raises:
        ConfigError: If the folder is neither, or its rows can't be told apart.
    """
    path = next((folder / name for name in FILES if os.path.isfile(folder / name)), None)
    if path is None:
        raise ConfigError(
            f"compare: no {' or '.join(FILES)} there, got {str(folder)!r}; name a folder that a "
            "run or a sweep has written, or a commit"
        )
    rows = _rows_in(path)
    if not rows:
        raise ConfigError(f"compare: nothing was measured, got {str(path)!r}; run it again")
    if "order" in rows[0]:  # written before options were renamed
        rows = [{RENAMED.get(name, name): row[name] for name in row} for row in rows]
    columns = list(rows[0])
    measure = _measure_of(columns)
    if measure is None:
        raise ConfigError(f"compare: no times in it, got {str(path)!r}; run it again")
    names, readers = measure.keys, dict[str, ValueReader]()
    if path.name == FILES[0]:
        names = (*_options_before(columns, measure), *names)
        readers = _readers(measure)
    measured = MeasuredRows((*names, *([TIME] if measure.more else [])), {}, {}, readers)
    for row, time in product(rows, measure.times):
        key = tuple(row[name] for name in names)
        key += (_plain(time),) if measure.more else ()
        if key in measured.times_ps:
            raise ConfigError(f"compare: {path} has two rows of {', '.join(key)}; run it again")
        try:
            measured.take(key, row[time], row.get("wrong"))
        except ValueError as error:
            raise ConfigError(f"compare: {path}: {error}; run it again") from error
    return _with_whole(measured, measure, folder) if path.name == ROWS else measured


def _with_whole(measured: MeasuredRows, measure: Measure, folder: Path) -> MeasuredRows:
    """Return rows with that of the whole run, if its summary tells its time."""
    summary = _json(folder / SUMMARY)
    if not measure.whole or not isinstance(summary.get(measure.whole), int):
        return measured
    key = (_plain(measure.whole), *("" for _ in measured.names[1:]))
    with suppress(ValueError):  # a summary that somebody has edited
        measured.take(key, summary[measure.whole], summary.get("wrong"))
    return replace(measured, whole=key)


def _plain(column: str) -> str:
    return column.removesuffix("_ps")


def _rows_in(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file, as runs write it or a spreadsheet has saved it."""
    try:
        text = decode(path.read_bytes())
    except UnicodeDecodeError as error:
        raise ConfigError(f"compare: {path}: not text in UTF-8: {error}; run it again") from error
    lines = io.StringIO(text, newline="")
    rows = list(csv.DictReader(lines, delimiter=separator(text.partition("\n")[0])))
    for number, row in enumerate(rows, start=1):
        cells = sum(value is not None for value in row.values())
        if cells < len(row):
            raise ConfigError(
                f"compare: {path}: row {number} must have {format_count(len(row), 'cell')}, got "
                f"{cells}, as the file was cut; copy or run it again"
            )
    return rows


def _measure_of(columns: Sequence[str]) -> Measure | None:
    """Return how rows of these columns are compared: by the most keys that all are columns."""
    known = [
        each
        for kind in WORKLOADS.values()
        for each in kind.measures
        if {*each.keys, *each.times} <= set(columns)
    ]
    return max(known, key=lambda each: len(each.keys), default=None)


def _options_before(columns: Sequence[str], measure: Measure) -> list[str]:
    """Return the options of a sweep, which are before all columns of its runs' own results."""
    results = {*measure.keys, *measure.times, "clock"} - {"algo"}
    first = next(i for i, name in enumerate(columns) if name in results)
    return [name for name in columns[:first] if name not in measure.keys]


def _readers(measure: Measure) -> dict[str, ValueReader]:
    """Return how the options of the runs that have such a measure are read."""
    kind = next(each for each in WORKLOADS.values() if measure in each.measures)
    spec = kind.spec
    fields = {
        kind.column_of(name): spec.model_fields[own].metadata for own, name in spec.names().items()
    }
    return {
        name: each
        for name, known in fields.items()
        for each in known
        if isinstance(each, ValueReader)
    }


def options_of(folder: Path) -> dict[str, str]:
    """Return the options of a run as text; of a sweep, those that are the same in all its runs.

    A folder without a readable `config.json` has none.
    """
    places = done_places({"runs": ["."], **_json(folder / PLAN)})
    runs = [_options(_json(folder / place / CONFIG)) for place in places]
    first, *others = runs or [{}]
    return {
        name: value
        for name, value in first.items()
        if all(other.get(name) == value for other in others)
    }


def _json(path: Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except ConfigError:
        return {}


def _options(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the options on which a run's results depend, resolved if its configuration has them.

    Those of collectives are apart there; of other kinds they are among what else is known.
    """
    options = config.get("options") or _resolved(config) or config.get("given", {})
    return {name: str(value) for name, value in options.items() if name not in ASIDE}


def _resolved(config: Mapping[str, Any]) -> dict[str, Any]:
    try:
        names = kind_named(config.get("kind", "")).spec.model_fields
    except ConfigError:
        return {}  # of another version, or a package that is not installed
    return {name: config[name] for name in names if name in config}


def changed_options(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each option that differs; one line, if those of either run are unknown."""
    if bool(before) != bool(after):
        yield f"options {'after' if before else 'before'} are not known, as there is no {CONFIG}"
        return
    for name in dict.fromkeys([*before, *after]):
        was, now = (options.get(name, "not given") for options in (before, after))
        if was != now and not (name == "topo" and _network(before) == _network(after)):
            yield f"option {name} differs: {was} before, {now} after"


def _network(options: Mapping[str, str]) -> str:
    """Return the topology's name with all sizes and links, or as it is where these are not known.

    `leafspine` is `leafspine,hosts=4`; but a file, or a family that there was once, may be gone.
    """
    text = options.get("topo", "")  # a recorded run of another version may have none
    try:
        links = float(options["rate_bps"]), int(options["delay_ps"])
        return full_name(text, *links, hosts=_whole(options.get("hosts")))
    except (RingleafError, LookupError, ValueError):
        return text


def _whole(text: str | None) -> int | None:
    return None if text in (None, str(None)) else int(text)


def compare(before: MeasuredRows, after: MeasuredRows, threshold: float) -> list[Difference]:
    """Return how each row has changed, in the order of the first run, and then the new rows.

    Args:
        before: The first run's rows.
        after: The second run's rows.
        threshold: Change, as a share of a row's time, up to which it is near: 0.001.

    Raises:
        ConfigError: If the runs are of different kinds.
    """
    if before.names != after.names:
        raise ConfigError(
            f"compare: rows must be identified by the same columns, got "
            f"{', '.join(before.names)} and {', '.join(after.names)}; compare runs of one spec"
        )
    after = after.by_keys_of(before)
    keys = dict.fromkeys([*before.times_ps, *after.times_ps])
    if before.whole != after.whole:  # one has no summary, as baselines often don't
        lone = {before.whole, after.whole}
        keys = dict.fromkeys(key for key in keys if key not in lone or after.wrong.get(key))
    return [_difference(key, before, after, threshold) for key in keys]


def _difference(
    key: Key, before: MeasuredRows, after: MeasuredRows, threshold: float
) -> Difference:
    was, now = before.times_ps.get(key), after.times_ps.get(key)
    if now is None:
        change = Change.MISSING
    elif after.wrong[key]:
        change = Change.WRONG
    elif was is None:
        change = Change.NEW
    elif was == now:
        change = Change.EQUAL
    elif abs(now - was) <= threshold * was:
        change = Change.NEAR
    else:
        change = Change.SLOWER if now > was else Change.FASTER
    return Difference(key, was, now, change)


def failed(differences: Sequence[Difference], *, both_ways: bool = False) -> bool:
    """Return whether a gate must close: a row is slower, missing or wrong.

    With `both_ways`, a row that is faster or new closes it, too.
    """
    bad = {Change.SLOWER, Change.MISSING, Change.WRONG}
    if both_ways:
        bad |= {Change.FASTER, Change.NEW}
    return any(each.change in bad for each in differences)


def table(
    names: Key, differences: Sequence[Difference], *, markdown: bool = False
) -> Iterator[str]:
    """Yield the rows that differ, as text or Markdown, and then the count of each change."""
    shown = [each for each in differences if each.change is not Change.EQUAL]
    head = (*names, "before (us)", "after (us)", "change (%)", "")
    lines = [head, *(_cells(each) for each in shown)]
    if shown:
        yield from _markdown(lines) if markdown else _text(lines)
    counts = {change: sum(each.change is change for each in differences) for change in Change}
    summary = ", ".join(f"{count} {change}" for change, count in counts.items() if count)
    yield f"{'' if markdown else '# '}{format_count(len(differences), 'row')}: {summary}"


def _cells(each: Difference) -> tuple[str, ...]:
    times = ("-" if t is None else f"{t / PS_PER_US:.3f}" for t in (each.before_ps, each.after_ps))
    percent = "" if each.percent is None else f"{each.percent:+.3f}"
    return (*(part or "-" for part in each.key), *times, percent, each.change)


def _text(lines: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  ".join(f"{c:>{w}}" for c, w in zip(line, widths, strict=True)).rstrip()


def _markdown(lines: Sequence[tuple[str, ...]]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |"
        if not number:
            yield f"|{'---|' * len(line)}"
    yield ""  # or what follows would be a row, too
