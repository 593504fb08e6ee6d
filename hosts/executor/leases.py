"""When a node needs memory for which of its chunks, worked out from its plan.

A chunk holds nothing that has to be there until it is read, added to or overwritten for the first
time. After the last read before it is overwritten, it holds nothing again; and after the last read
or write of all, it holds a result, which need not be there, either, if the same is elsewhere.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import ringleaf.hosts.executor.layout as x
from ringleaf.collectives.rows import REDUCE
from ringleaf.hosts.plan import Plans
from ringleaf.hosts.rc.landing import CHOOSE

Rows = npt.NDArray[np.int64]


def leases(plans: Plans, share: int) -> Rows:
    """Return the leases of all chunks, (nodes * chunks, LEASE_WORDS), as they are at the start.

    Args:
        plans: Plans without scratch memory.
        share: The handler of claims of results; where a message brings several chunks, which must
            lie side by side, none is used.
    """
    assert not plans.scratch
    size = plans.stop - plans.start
    part = np.repeat(np.arange(len(size)), size)
    within = np.arange(len(part)) - np.repeat(np.cumsum(size) - size, size)
    place = plans.node[part] * plans.chunks + plans.start[part] + within
    reads = plans.reads[part]
    nodes = 1 if plans.is_turned else plans.nodes
    rows = np.zeros((nodes * plans.chunks, x.LEASE_WORDS), np.int64)
    rows[:, x.LAST_APPLIED] = np.bincount(place[~reads], minlength=len(rows))
    rows[:, x.LAST_ACKED] = np.bincount(place[reads], minlength=len(rows))
    rows[:, [x.DROP_APPLIED, x.DROP_ACKED]] = -1
    rows[:, x.SHARED + CHOOSE] = share if (size == 1).all() else 0
    at = plans.after_at[part] + within
    copies = np.flatnonzero(~reads & (plans.op[part] != REDUCE))
    counts = np.stack((plans.after[at[copies]], plans.after[at[copies] + size[part[copies]]]), 1)
    used = counts.any(axis=1)  # before that, there was something to drop
    first = np.lexsort((counts[used, 1], counts[used, 0]))[::-1]  # the first one is written last
    rows[place[copies[used]][first], x.DROP_APPLIED : x.DROP_ACKED + 1] = counts[used][first]
    if plans.is_turned:
        turns = (np.roll(rows, node, axis=0) for node in range(plans.nodes))
        return np.concatenate(list(turns))
    return rows
