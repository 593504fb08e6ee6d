"""The soak's cases of NICs: they follow from their numbers, and what is wrong is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.soak.__main__ import follow, shrink
from bench.soak.any_case import AnyCase
from bench.soak.cases import Disturbances
from bench.soak.nic_cases import NicCase, draw_nics
from bench.soak.nic_trial import try_nics
from ringleaf.core.arena import Arena
from ringleaf.experiments.workloads.nic.reference import Floats, Indices
from ringleaf.experiments.workloads.nic.workload import workload_of
from ringleaf.topologies.registry import count

SMALL = NicCase(
    1,
    "guo",
    {
        "topo": "leafspine,leaves=1,spines=1,hosts=3",
        **{"rows": "20", "dim": "2", "bags": "2", "per_bag": "2", "cache": "4", "policy": "lru"},
        **{"pool": "no", "iterations": "1", "warm_up": "0", "seed": "1"},
    },
    Disturbances(outages=1, restarts=1),
)


@given(st.integers(0, 9), st.integers(0, 10_000))
def test_every_case_can_run_and_follows_from_its_number(seed: int, number: int) -> None:
    case = draw_nics(seed, number)
    assert case == draw_nics(seed, number)
    workload = workload_of(case.offload)
    workload.check(workload.spec.read(case.given), count(case.given["topo"]).hosts)


def test_exchanges_and_pipelines_survive_trouble() -> None:
    pipeline = draw_nics(1, next(n for n in range(99) if draw_nics(1, n).offload == "fcsn"))
    small = {**pipeline.given, "topo": SMALL.given["topo"], "samples": "9", "tile": "2"}
    for case in (SMALL, replace(pipeline, given=small, trouble=SMALL.trouble)):
        assert {each.what for each in try_nics(case)} == {"ok"}


def test_a_wrong_table_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients that the reference forgets."""
    reference = "ringleaf.experiments.workloads.nic.reference.Reference.apply"
    monkeypatch.setattr(reference, lambda self, lookups, gradients: None)
    assert [each.what for each in try_nics(SMALL)] == ["wrong", "wrong"]


def test_a_wrong_copy_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are right, and a copy in a cache is not."""
    from ringleaf.hosts.nic.embedding import state

    right = state.cached_rows

    def spoilt(arena: Arena, at: int) -> tuple[Indices, Floats]:
        rows, vectors = right(arena, at)
        return rows, np.asarray(vectors + 1)

    monkeypatch.setattr(state, "cached_rows", spoilt)
    assert [each.what for each in try_nics(SMALL)] == ["ok", "wrong"]


def test_a_failing_case_is_made_smaller() -> None:
    def fails(case: AnyCase) -> bool:
        return isinstance(case, NicCase) and case.given.get("pool") == "no"

    smallest = follow(SMALL, shrink(SMALL, fails))
    assert isinstance(smallest, NicCase)
    assert smallest.trouble == Disturbances()
    assert set(smallest.given) == {"topo", "seed", "rows", "pool"}
    assert smallest.command.startswith("ringleaf nic guo --topo leafspine,")
