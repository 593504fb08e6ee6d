"""Workloads by name: presets, patterns, and files, which are told by suffix or contents."""

from __future__ import annotations

import os
from pathlib import Path

from ringleaf.core.files import (
    ASTRA_WORKLOAD,
    CHAKRA_JSON,
    CHAKRA_PRINTED,
    GOAL_TEXT,
    HTSIM,
    NS3_FLOWS,
    find_file,
    kind_of,
)
from ringleaf.core.packing import without_packing
from ringleaf.errors import ConfigError, choose
from ringleaf.hosts.workload.flows import PATTERNS
from ringleaf.hosts.workload.formats.rank_names import begins, pattern_of
from ringleaf.hosts.workload.llm.presets import PRESETS

LLM, TRACE, FLOWS = WORKLOADS = ("llm", "trace", "flows")

NAMES = (*WORKLOADS, *PRESETS, *PATTERNS)
"""Kinds of workloads, and the names of some."""

FILES = (
    "NAME.goal, Chakra's 'NAME.*.et' and 'NAME.*.json', ASTRA-sim 1.0's and SimAI's text; flows: "
    "NAME.csv, HPCC's flow.txt, htsim's NAME.cm"
)
"""The files that are workloads, for messages."""


def kind_of_workload(name: str) -> str | None:
    """Return the kind of workload of a file, by its suffix or contents; None: it is none."""
    plain = without_packing(name)
    if plain.endswith((".et", ".goal")):
        return TRACE
    if plain.endswith(".csv"):
        return FLOWS
    path = find_file(name)
    kind = kind_of(path) if path else ""
    if kind in (GOAL_TEXT, ASTRA_WORKLOAD, CHAKRA_JSON, CHAKRA_PRINTED):
        return TRACE
    if _traces_of(name):
        return TRACE
    return FLOWS if kind in (HTSIM, NS3_FLOWS) else None


def _traces_of(name: str) -> list[str]:
    """Return the traces that a name means: the beginning of Chakra's patterns, or a folder.

    As ASTRA-sim has it, NAME means NAME.0.et and so on, if there are such.
    """
    if name in NAMES:
        return []
    folder, own = os.path.split(name)
    begun = [each for each in _traces_in(folder or ".") if own and begins(each, own)]
    if f"{own}.*.et" in begun:
        return [f"{name}.*.et"]
    return [str(Path(folder, each)) for each in begun] or [
        str(Path(name, each)) for each in (*_traces_in(name), *_goals_in(name))
    ]


def _traces_in(folder: str) -> list[str]:
    """Return the patterns of the traces of Chakra that a folder holds."""
    return sorted({*map(pattern_of, _listed(folder))} - {""})


def _goals_in(folder: str) -> list[str]:
    """Return the GOAL files that a folder holds, as `workload export` writes them."""
    return sorted(each for each in _listed(folder) if without_packing(each).endswith(".goal"))


def _listed(folder: str) -> list[str]:
    """Return the names in a folder; none, if it can't be read."""
    if not os.path.isdir(folder) or not os.access(folder, os.R_OK):
        return []
    return os.listdir(folder)


def _files_of(name: str, where: str) -> str:
    """Return the files that a name stands for; they are a workload."""
    traces = [] if os.path.isfile(name) else _traces_of(name)
    if len(traces) > 1:
        what = "the folder " if os.path.isdir(name) else ""
        raise ConfigError(
            f"{where}workload: must be one trace, got {what}{name!r} with "
            f"{', '.join(traces)}; name one of them"
        )
    return traces[0] if traces else name


def named(name: str, where: str = "") -> dict[str, str]:
    """Return the options that a workload's name, or its file, stands for.

    Raises:
        ConfigError: If there is no such workload.
    """
    if kind := kind_of_workload(name):
        return {"workload": kind, "files": _files_of(name, where)}
    choose(f"{where}workload", "workload", name, NAMES, FILES)
    if name in WORKLOADS:
        return {"workload": name}
    is_pattern = name in PATTERNS
    return {"workload": FLOWS if is_pattern else LLM, "pattern" if is_pattern else "preset": name}


def are_flows(name: str) -> bool:
    """Return whether the workload of a name, or of a file, is flows."""
    return named(name)["workload"] == FLOWS
