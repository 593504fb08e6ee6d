"""Faults of the network in a training: shifted to the iteration that they fall into."""

from __future__ import annotations

import pytest

from ringleaf.core.faults import parse_faults
from ringleaf.experiments.workloads.recovery.traffic import faults_within

MS = 10**9

FAULTS = parse_faults(
    "s0-s8 loss 10% at 2ms for 3ms, s1 rate 1G at 9ms, h1 slow 2 at 4ms for 1ms every 6ms times 2",
    "faults",
)


@pytest.mark.parametrize(
    ("start", "end", "left"),
    [
        (0, 2, []),
        (0, 3, ["s0-s8 loss 10% at 2ms for 3ms", "s1 rate 1G at 9ms", "h1 slow 2 at 4ms for 1ms",
                "h1 slow 2 at 10ms for 1ms"]),
        (4, 5, ["s0-s8 loss 10% at 0 for 1ms", "s1 rate 1G at 5ms", "h1 slow 2 at 0 for 1ms",
                "h1 slow 2 at 6ms for 1ms"]),
        (5, 9, []),
        (12, 13, ["s1 rate 1G at 0"]),
    ],
)  # fmt: skip
def test_faults_from_a_time_on(start: int, end: int, left: list[str]) -> None:
    faults = faults_within(FAULTS, start * MS, end * MS)
    assert [str(each) for each in faults] == left
