"""Specs that compare a whole family name each of its members."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ringleaf.hosts.scheduling.registry import SCHEDULERS
from ringleaf.ina.registry import SYSTEMS

SPECS = Path(__file__).resolve().parents[3] / "experiments" / "specs"


def read(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = yaml.safe_load((SPECS / name).read_text())
    return spec


def test_every_scheduler_runs_on_the_same_four_jobs_in_two_placements() -> None:
    spec = read("schedulers.yaml")

    assert sorted(spec["order"]) == sorted(SCHEDULERS)
    assert len(spec["jobs"]) == 4
    assert len({job["model"] for job in spec["jobs"]}) == 2
    assert spec["placement"] == ["spread", "packed"]


def test_every_aggregation_system_runs_at_shrinking_memory() -> None:
    spec = read("switch_memory.yaml")

    assert sorted(spec["algo"]) == sorted([*SYSTEMS, "ps"])
    assert len(spec["entries"]) >= 4
    assert spec["entries"][-1] >= 16 * spec["entries"][0]
