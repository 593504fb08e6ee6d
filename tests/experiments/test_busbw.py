"""Factors of nccl-tests' doc/PERFORMANCE.md, for 8 ranks: in eighths."""

import pytest

from ringleaf.collectives.schedule import Collective
from ringleaf.experiments.bounds.busbw import busbw_factor, busbw_formula


@pytest.mark.parametrize(
    ("collective", "eighths", "formula"),
    [
        (Collective.ALLREDUCE, 14, "2(n-1)/n"),
        (Collective.REDUCE_SCATTER, 7, "(n-1)/n"),
        (Collective.ALL_GATHER, 7, "(n-1)/n"),
        (Collective.ALL_TO_ALL, 7, "(n-1)/n"),
        (Collective.REDUCE, 8, "1"),
        (Collective.BROADCAST, 8, "1"),
    ],
)
def test_factors_are_those_of_nccl_tests(
    collective: Collective, eighths: int, formula: str
) -> None:
    assert busbw_factor(collective, 8) == eighths / 8
    assert busbw_formula(collective) == formula
