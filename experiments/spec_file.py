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
from pathlib import Path
from typing import Any

from experiments.options import OPTIONS
from ringleaf.errors import ConfigError, choose

LISTS = ("algo", "size")
"""Options that are lists by themselves: one run sees to all of them."""

CASES = "cases"


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
    return [chosen for case in cases for chosen in _expand(data | case)]


def swept(cases: list[dict[str, str]]) -> list[str]:
    """The options that differ between cases, in the order of options."""
    return [name for name in OPTIONS if len({case.get(name) for case in cases}) > 1]


def _load(path: Path) -> dict[str, Any]:
    import yaml

    try:
        data = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigError(f"spec: can't read, got {str(path)!r}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        problem = " ".join(str(error).split())
        raise ConfigError(f"spec {path}: not YAML: {problem}") from error
    if not isinstance(data, dict):
        raise ConfigError(
            f"spec {path}: must be a mapping like 'topo: fattree', got {type(data).__name__}"
        )
    return data


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
