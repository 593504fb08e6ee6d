"""The rows of a sweep, sorted for its figure: what they have in common, and where each belongs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from ringleaf.core.units import format_size, parse_fraction, parse_rate, parse_size, parse_time
from ringleaf.errors import ConfigError

MOST_PANELS = 12

Line = Mapping[str, object]

_READERS: tuple[Callable[[str], float], ...] = (
    float,
    parse_fraction,
    parse_time,
    parse_rate,
    parse_size,
)


def of_jobs(lines: Sequence[Line]) -> bool:
    """Return whether rows are of training jobs."""
    return "jct_ps" in lines[0]


def told_apart(lines: Sequence[Line], names: Sequence[str]) -> list[str]:
    """Return the options that tell rows apart, besides algorithm, scheduler and size."""
    if not of_jobs(lines):
        return [name for name in names if name not in ("algo", "size")]
    inside = [name for name in ("jobs", "entries") if len({line[name] for line in lines}) > 1]
    listed = ("algo", "scheduler", "counts", "entries", "jobs")
    return [*(name for name in names if name not in listed), *inside]


def with_workloads(lines: Sequence[Line]) -> list[Line]:
    """Return the rows of jobs; if more than their number differs, `jobs` says which jobs ran.

    Rows of jobs that ran beside each other follow one another, in the order of their numbers.
    """
    cases: list[list[Line]] = []
    for line in lines:
        if int(str(line["job"])) == 1:
            cases.append([])
        cases[-1].append(line)
    texts = [_workload(case) for case in cases]
    if len(set(texts)) == len({str(line["jobs"]) for line in lines}):
        return list(lines)
    return [
        {**line, "jobs": text} for case, text in zip(cases, texts, strict=True) for line in case
    ]


def _workload(case: Sequence[Line]) -> str:
    kinds = Counter(f"{line['model']} on {line['ranks']}" for line in case)
    return " + ".join(f"{count} x {kind}" for kind, count in kinds.items())


def labeller(lines: Sequence[Line]) -> Callable[[Line], str]:
    """Return a function that names the way to run a row: its algorithm, scheduler, or both.

    A part that all rows have in common is left out, unless nothing is left.
    """
    if not of_jobs(lines):
        return lambda line: str(line["algo"])
    parts = [name for name in ("algo", "scheduler") if len({line[name] for line in lines}) > 1]
    return lambda line: ", ".join(str(line[name]) for name in parts or ("algo", "scheduler"))


def axis_of(lines: Sequence[Line], names: Sequence[str]) -> str:
    """Return the option of the x axis: the first of those with most values.

    It is not `jobs` if they differ in more than their number, unless there is no other.
    """
    values = {name: {line[name] for line in lines} for name in names}
    worded = {name for name in names if name == "jobs" and quantities(map(str, values[name])) == []}
    return max(names or ["algo"], key=lambda name: (name not in worded, len(values.get(name, ()))))


def quantities(texts: Iterator[str] | Sequence[str]) -> list[float]:
    """Return the numbers that texts stand for (rates, sizes, times); [] if one is none."""
    words = list(texts)
    for read in _READERS:
        try:
            return [read(text) for text in words]
        except (ConfigError, ValueError):
            continue
    return []


def ordered(lines: Sequence[Line], name: str) -> tuple[list[str], bool]:
    """Return an option's values, ascending if they are quantities, and whether they are."""
    values = list(dict.fromkeys(str(line[name]) for line in lines))
    numbers = quantities(values)
    if not numbers:
        return values, False
    return [value for _, value in sorted(zip(numbers, values, strict=True))], True


def panels_of(lines: Sequence[Line], names: Sequence[str]) -> dict[str, list[Line]]:
    """Return the rows by the values that a panel's have in common; if many sizes, the largest."""
    return dict(list(groups_of(lines, names).items())[:MOST_PANELS])


def groups_of(lines: Sequence[Line], names: Sequence[str]) -> dict[str, list[Line]]:
    """Return the rows by the values that they have in common; if many sizes, the largest."""
    groups = _grouped(lines, names)
    if len(groups) > MOST_PANELS and not of_jobs(lines):
        most = max(int(str(line["size_bytes"])) for line in lines)
        groups = _grouped([line for line in lines if line["size_bytes"] == most], names)
    return groups


def _grouped(lines: Sequence[Line], names: Sequence[str]) -> dict[str, list[Line]]:
    groups: dict[str, list[Line]] = {}
    for line in lines:
        parts = [_describe(line, name) for name in names]
        if not of_jobs(lines):
            parts.append(format_size(int(str(line["size_bytes"]))))
        groups.setdefault(", ".join(parts), []).append(line)
    return groups


def _describe(line: Line, name: str) -> str:
    return f"{name} {'default' if line[name] == '' else line[name]}"


def usual(lines: Sequence[Line], names: Sequence[str]) -> dict[str, object]:
    """Return the value that most conditions have, of each option."""
    conditions = list(dict.fromkeys(tuple(line[name] for name in names) for line in lines))
    columns = zip(*conditions, strict=True)
    return {
        name: Counter(column).most_common(1)[0][0]
        for name, column in zip(names, columns, strict=True)
    }


def conditions_of(lines: Sequence[Line], names: Sequence[str]) -> dict[str, list[Line]]:
    """Return the rows by the options that they have, each named by those that are not the usual."""
    common = usual(lines, names)
    conditions: dict[str, list[Line]] = {}
    for line in lines:
        unlike = [_describe(line, name) for name in names if line[name] != common[name]]
        if not of_jobs(lines):
            unlike.append(format_size(int(str(line["size_bytes"]))))
        conditions.setdefault(", ".join(unlike) or "as usual", []).append(line)
    return conditions


def in_words(common: Mapping[str, object]) -> str:
    """Return options and values as a line of text."""
    return ", ".join(_describe(common, name) for name in common)
