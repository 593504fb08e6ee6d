"""Sparse allreduces as algorithms: `oktopk`, or `oktopk:0.1%,balanced=no`."""

from __future__ import annotations

from functools import cache
from typing import NoReturn

from ringleaf.collectives.algorithm import Algorithm, Request
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.sparse.registry import SPARSE, parse_sparse
from ringleaf.errors import ScheduleError

SHARE = "1%"
"""The share that is sent if the name says none; papers have 0.1 to 2 %."""


def names_sparse(name: str) -> bool:
    """Return whether this names a sparse allreduce, with or without settings."""
    return name.partition(":")[0] in SPARSE


@cache
def sparse_algorithm(name: str) -> Algorithm:
    """Return the algorithm of a name for which `names_sparse` holds.

    Raises:
        ConfigError: If the text behind the colon is wrong.
    """
    first, _, text = name.partition(":")
    if not text.partition(",")[0] or "=" in text.partition(",")[0]:
        text = ",".join(filter(None, (SHARE, text.strip(","))))
    member = SPARSE[first]

    def refuse(_: Request) -> NoReturn:
        raise ScheduleError(
            f"{name}: has no schedule, as its messages depend on the data, got a request for one; "
            "ringleaf run carries it"
        )

    return Algorithm(
        name,
        Collective.ALLREDUCE,
        member.title,
        refuse,
        refuse,
        look=member.look,
        sparse=True,
        method=parse_sparse(f"{first}:{text}", "algo"),
    )
