"""Options in a YAML file, and the sweeps that it may ask for.

topo: fattree
algo: [ring, switchml]      # as typed: ring,switchml
loss: [0, 0.1%]             # a run for each
cases:                      # a run for each, times the runs above
  - {hosts: 8}
  - {hosts: 16, servers: 8}

Some options make an experiment one of another kind (`ringleaf.experiments.workloads`): a list
`jobs`, of training jobs; a `workload`, of a graph of work.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from ringleaf.core.yaml_file import read_yaml
from ringleaf.errors import ConfigError
from ringleaf.experiments.records.folder import SPEC
from ringleaf.experiments.runs.request import kind_of, options_for
from ringleaf.experiments.spec.network import LOOKS
from ringleaf.experiments.spec.renamed import choose_option

CASES = "cases"

ALIKE = ("out", *LOOKS)
"""Options that all runs of a sweep have alike: they change no results."""

MOST_RUNS = 10_000

Case = dict[str, Any]
"""The options of one run, as if typed; those of jobs may be lists."""


def read_cases(path: Path, typed: Mapping[str, str] | None = None) -> list[Case]:
    """Return the options of each run that a file asks for, as if typed.

    Args:
        path: The file.
        typed: Options that override those of the file, and its sweeps.

    Raises:
        ConfigError: If the file can't be read, is not YAML, or has a key that is no option.
    """
    data = _load(path)
    cases = data.pop(CASES, [{}])
    if (
        not isinstance(cases, list)
        or not all(isinstance(case, dict) for case in cases)
        or not cases
    ):
        raise ConfigError(f"spec {path}: {CASES} must be a list of mappings, got {cases!r:.80}")
    valid = [*options_for(data | dict(typed or {})), CASES]
    for key in (key for each in (data, *cases) for key in each):
        choose_option(f"spec {path}", str(key), valid)
    whole = [data | case | dict(typed or {}) for case in cases]
    for options in whole:
        _check_lists(options, f"spec {path}: ")
    count = sum(map(_count, whole))
    if count > MOST_RUNS:
        raise ConfigError(f"spec {path}: at most {MOST_RUNS} runs, got {count}; split it")
    distinct_cases: list[Case] = []
    for case in (chosen for options in whole for chosen in expand(options)):
        if case not in distinct_cases:  # typed options may override those that cases differ by
            distinct_cases.append(case)
    for name in swept(distinct_cases):
        if name in ALIKE:
            values = ", ".join(dict.fromkeys(case.get(name, "none") for case in distinct_cases))
            raise ConfigError(
                f"spec {path}: {name}: all runs of a sweep have one, got {values:.80}; give one"
            )
    return distinct_cases


def swept(cases: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the options that differ between cases, in the order of options."""
    names = options_for({name: case[name] for case in cases for name in case})
    return [
        name for name in names if any(case.get(name) != cases[0].get(name) for case in cases[1:])
    ]


def _load(path: Path) -> dict[str, Any]:
    data = read_yaml(path, "spec")
    if not isinstance(data, dict):
        raise ConfigError(
            f"spec {path}: must be a mapping like 'topo: fattree', got {type(data).__name__}"
        )
    if "schema_version" in data:
        raise ConfigError(
            f"spec {path}: must have options as typed, got what a run has recorded; take the "
            f"{SPEC} beside it"
        )
    return data


def _lists_of(options: Mapping[str, Any]) -> Collection[str]:
    """Return those options that are lists by themselves."""
    kind = kind_of(options)
    return kind.lists_of(kind.spec_for(options))


def _count(options: Mapping[str, Any]) -> int:
    """Return the number of runs that these options make."""
    own = _lists_of(options)
    return prod(len(v) for name, v in options.items() if isinstance(v, list) and name not in own)


def _check_lists(options: Mapping[str, Any], where: str = "") -> None:
    """Check that a list has a value: with none, it would ask for no run, or for the default."""
    own = kind_of(options).key  # which has words of its own for it
    empty = next((name for name, value in options.items() if value == [] and name != own), None)
    if empty is not None:
        raise ConfigError(f"{where}{empty}: must have a value, got []; leave it out, or name one")


def expand(options: Mapping[str, Any]) -> Iterator[Case]:
    """Yield options with a value each, for every combination of the listed ones.

    Raises:
        ConfigError: If a list is empty.
    """
    _check_lists(options)
    kind = kind_of(options)
    own = _lists_of(options)
    choices = [
        value if isinstance(value, list) and name not in own else [value]
        for name, value in options.items()
    ]
    for values in product(*choices):
        yield {
            name: value if name == kind.key else _as_typed(value)
            for name, value in zip(options, values, strict=True)
        }


def _as_typed(value: Any) -> str:
    if value is None:
        return ""
    return ",".join(str(v) for v in value) if isinstance(value, list) else str(value)
