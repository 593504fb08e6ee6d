"""Bus bandwidth: algbw times a factor that makes it comparable to a link's rate.

Source:
    nccl-tests, doc/PERFORMANCE.md. The size is that of the whole tensor, which each rank holds
    before a reduce-scatter, and after an all-gather.
"""

from __future__ import annotations

from ringleaf.collectives.schedule import Collective

_FORMULAS = {
    Collective.ALLREDUCE: "2(n-1)/n",
    Collective.REDUCE_SCATTER: "(n-1)/n",
    Collective.ALL_GATHER: "(n-1)/n",
    Collective.ALL_TO_ALL: "(n-1)/n",
    Collective.REDUCE: "1",
    Collective.BROADCAST: "1",
}


def busbw_formula(collective: Collective) -> str:
    """Return the factor as a formula of n, the number of ranks."""
    return _FORMULAS[collective]


def busbw_factor(collective: Collective, ranks: int) -> float:
    """Return the factor, busbw / algbw."""
    share = (ranks - 1) / ranks
    if collective is Collective.ALLREDUCE:
        return 2 * share
    return 1.0 if collective in (Collective.BROADCAST, Collective.REDUCE) else share
