"""Specs that compare a whole family name each of its members."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.experiments.runs.spec_file import read_cases
from ringleaf.hosts.schedulers.common.registry import SCHEDULERS
from ringleaf.ina.registry import SYSTEMS
from ringleaf.topologies.registry import TOPOLOGIES

SPECS = Path(__file__).resolve().parents[3] / "experiments" / "specs"


def read(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = yaml.safe_load((SPECS / name).read_text())
    return spec


def test_every_scheduler_runs_on_the_same_four_jobs_in_two_placements() -> None:
    spec = read("schedulers.yaml")

    assert sorted(spec["scheduler"]) == sorted(SCHEDULERS)
    assert len(spec["jobs"]) == 4
    assert len({job["model"] for job in spec["jobs"]}) == 2
    assert spec["placement"] == ["spread", "packed"]


def test_every_aggregation_system_runs_at_shrinking_memory() -> None:
    spec = read("switch_memory.yaml")

    assert sorted(spec["algo"]) == sorted([*SYSTEMS, "ps"])
    assert len(spec["entries"]) >= 4
    assert spec["entries"][-1] >= 16 * spec["entries"][0]


def test_every_algorithm_runs_on_every_topology_at_three_sizes() -> None:
    cases = read_cases(SPECS / "algorithms.yaml")
    runs = Counter((case["topo"], algo) for case in cases for algo in case["algo"].split(","))

    assert runs == dict.fromkeys(product(TOPOLOGIES, {*ALGORITHMS, *SYSTEMS}), 1)
    assert {case["size"] for case in cases} == {"4KiB,256KiB,4MiB"}
