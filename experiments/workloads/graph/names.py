"""Workloads by name: presets, patterns, and files, which are told by suffix or contents."""

from __future__ import annotations

import os
import re
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
from ringleaf.hosts.workload.llm.presets import PRESETS

LLM, TRACE, FLOWS = WORKLOADS = ("llm", "trace", "flows")

NAMES = (*WORKLOADS, *PRESETS, *PATTERNS)
"""Kinds of workloads, and the names of some."""

FILES = (
    "NAME.goal, Chakra's 'NAME.*.et' and 'NAME.*.json', ASTRA-sim 1.0's and SimAI's text; flows: "
    "NAME.csv, HPCC's flow.txt, htsim's NAME.cm"
)
"""The files that are workloads, for messages."""

_OF_A_RANK = re.compile(r"(.+)\.\d+(\.(?:et|json)(?:\.\w+)?)", re.ASCII)


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
    if _is_prefix(name) or _traces_in(name):
        return TRACE
    return FLOWS if kind in (HTSIM, NS3_FLOWS) else None


def _is_prefix(name: str) -> bool:
    """Return whether Chakra's files are called NAME.0.et and so on, as ASTRA-sim is told them."""
    return name not in NAMES and os.path.isfile(f"{name}.0.et")


def _traces_in(name: str) -> list[str]:
    """Return the patterns of the traces of Chakra that a folder holds."""
    if name in NAMES or not os.path.isdir(name) or not os.access(name, os.R_OK):
        return []
    names = (_OF_A_RANK.fullmatch(file) for file in os.listdir(name))
    return sorted({str(Path(name, f"{match[1]}.*{match[2]}")) for match in names if match})


def _files_of(name: str, where: str) -> str:
    """Return the files that a name stands for; they are a workload."""
    if _is_prefix(name):
        return f"{name}.*.et"
    traces = _traces_in(name)
    if len(traces) > 1:
        raise ConfigError(
            f"{where}workload: must be one trace, got the folder {name!r} with "
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
