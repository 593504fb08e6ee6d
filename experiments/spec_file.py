"""Options in a YAML file, and the sweeps that it may ask for.

topo: fattree
algo: [ring, switchml]      # as typed: ring,switchml
loss: [0, 0.1%]             # a run for each
cases:                      # a run for each, times the runs above
  - {hosts: 8}
  - {hosts: 16, servers: 8}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.options import OPTIONS
from ringleaf.yaml_file import read_yaml

LISTS = ("algo", "size")
"""Options that are lists by themselves: one run sees to all of them."""

CASES = "cases"

MOST_RUNS = 10_000


def read_cases(path: Path) -> list[dict[str, str]]:
    """Return the options of each run that a file asks for, as if typed.

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
        raise ConfigError(f"spec {path}: {CASES} must be a list of mappings, got {cases!r}")
    valid = [*OPTIONS, CASES]
    for key in (key for each in (data, *cases) for key in each):
        choose(f"spec {path}", "option", str(key), valid)
    count = sum(_count(data | case) for case in cases)
    if count > MOST_RUNS:
        raise ConfigError(f"spec {path}: at most {MOST_RUNS} runs, got {count}; split it")
    return [chosen for case in cases for chosen in _expand(data | case)]


def is_jobs(path: Path) -> bool:
    """Whether a spec is one of jobs."""
    try:
        data = read_yaml(path, "spec")
    except ConfigError:
        return False  # whoever reads it next says what is wrong
    return isinstance(data, dict) and "jobs" in data


def swept(cases: list[dict[str, str]]) -> list[str]:
    """The options that differ between cases, in the order of options."""
    return [name for name in OPTIONS if len({case.get(name) for case in cases}) > 1]


def _load(path: Path) -> dict[str, Any]:
    data = read_yaml(path, "spec")
    if not isinstance(data, dict):
        raise ConfigError(
            f"spec {path}: must be a mapping like 'topo: fattree', got {type(data).__name__}"
        )
    return data


def _count(options: Mapping[str, Any]) -> int:
    """Return how many runs these options are."""
    listed = (v for name, v in options.items() if isinstance(v, list) and name not in LISTS)
    return prod(len(values) for values in listed)


def _expand(options: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Options with a value each, for every combination of the listed ones."""
    choices = [
        value if isinstance(value, list) and name not in LISTS else [value]
        for name, value in options.items()
    ]
    for values in product(*choices):
        yield {name: _as_typed(value) for name, value in zip(options, values, strict=True)}


def _as_typed(value: Any) -> str:
    return ",".join(str(v) for v in value) if isinstance(value, list) else str(value)
