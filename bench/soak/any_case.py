"""Random cases of any kind, by their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from bench.soak.cases import SoakCase, draw, simpler
from bench.soak.job_cases import JOBS_SHARE, SoakJobs, draw_jobs, simpler_jobs
from bench.soak.nic_cases import NICS_SHARE, NicCase, draw_nics, simpler_nics
from bench.soak.recovery_cases import (
    RECOVERIES_SHARE,
    RecoveryCase,
    draw_recoveries,
    simpler_recoveries,
)
from bench.soak.workload_cases import (
    WORKLOADS_SHARE,
    WorkloadCase,
    draw_workloads,
    simpler_workloads,
)

AnyCase = SoakCase | SoakJobs | NicCase | RecoveryCase | WorkloadCase

_SHARES = (
    (JOBS_SHARE, draw_jobs),
    (RECOVERIES_SHARE, draw_recoveries),
    (WORKLOADS_SHARE, draw_workloads),
    (NICS_SHARE, draw_nics),
)
"""The shares of all cases; the others are collectives."""


def draw_any(seed: int, number: int) -> AnyCase:
    """Return case `number` of a soak, of whichever kind it is."""
    place = Random(f"{seed} {number} kind").random()
    for share, draw_case in _SHARES:
        if place < share:
            return draw_case(seed, number)
        place -= share
    return draw(seed, number)


def simpler_any(case: AnyCase) -> Sequence[AnyCase]:
    """Return cases of the same kind that are a little smaller."""
    if isinstance(case, SoakJobs):
        return simpler_jobs(case)
    if isinstance(case, WorkloadCase):
        return simpler_workloads(case)
    if isinstance(case, RecoveryCase):
        return simpler_recoveries(case)
    return simpler_nics(case) if isinstance(case, NicCase) else simpler(case)
