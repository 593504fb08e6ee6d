"""Graphs of work by their spec: traces are read once, however often somebody asks."""

from __future__ import annotations

from functools import lru_cache

from ringleaf.experiments.spec.workload import LLM, WorkloadSpec
from ringleaf.hosts.workload.graph import Graph
from ringleaf.hosts.workload.llm.generate import generate
from ringleaf.hosts.workload.llm.sizes import Sizes, Split
from ringleaf.hosts.workload.meetings import Matched, match


def load(spec: WorkloadSpec) -> Matched:
    """Return the graph of a spec, matched.

    Raises:
        ConfigError: If its files can't be read or don't make sense, or it could wait forever.
    """
    if spec.workload == LLM:
        return _make(spec.preset or "llm", *spec.model_sizes())
    return _read(spec.files)


@lru_cache(maxsize=1)
def _make(name: str, sizes: Sizes, split: Split) -> Matched:
    return match(generate(name, sizes, split))


@lru_cache(maxsize=1)
def _read(files: str) -> Matched:
    return match(read_files(files))


def read_files(files: str) -> Graph:
    """Return the graph of a trace's files."""
    raise NotImplementedError
