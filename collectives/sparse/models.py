"""The papers' cost formulas of sparse allreduces: the alpha-beta model, headers left out.

n ranks have S bytes each, of which a share d is not zero: k = d S / v elements of v bytes, whose
pairs of index and value take v + 4 each, if that is less than S together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log2

from ringleaf.collectives.sparse.stream import INDEX_BYTES
from ringleaf.core.units import PS_PER_S


@dataclass(frozen=True, slots=True)
class Setting:
    """The parameters of the models.

    `blocks` is the share of OmniReduce's blocks that are not all zero.
    """

    ranks: int
    size_bytes: int
    density: float
    blocks: float
    rate_bps: int
    alpha_ps: int
    item_bytes: int = 4

    def bytes_ps(self, count: float) -> float:
        """Return the time that `count` bytes take."""
        return count * 8 * PS_PER_S / self.rate_bps

    @property
    def pairs_ps(self) -> float:
        """The time of one rank's pairs, or of all its values if that is less."""
        share = self.density * (self.item_bytes + INDEX_BYTES) / self.item_bytes
        return self.bytes_ps(min(share, 1.0) * self.size_bytes)

    @property
    def steps(self) -> int:
        """The number of steps of recursive doubling."""
        return ceil(log2(self.ranks))


def ring_ps(s: Setting) -> float:
    """Return the time of a ring, which does not depend on the zeros."""
    return 2 * (s.ranks - 1) * (s.alpha_ps + s.bytes_ps(s.size_bytes / s.ranks))


def recursive_doubling_ps(s: Setting) -> float:
    """Return SSAR_Recursive_double's least time: all ranks' positions agree (SparCML, 5.3.1)."""
    return s.steps * (s.alpha_ps + s.pairs_ps)


def split_allgather_ps(s: Setting) -> float:
    """Return SSAR_Split_allgather's least time, likewise (5.3.2); its split counts one latency."""
    return (1 + s.steps) * s.alpha_ps + 2 * (s.ranks - 1) / s.ranks * s.pairs_ps


def dense_split_allgather_ps(s: Setting) -> float:
    """Return DSAR_Split_allgather's least time (5.3.3): a nearly free split, and a dense rest."""
    dense_ps = s.bytes_ps((s.ranks - 1) / s.ranks * s.size_bytes)
    return (1 + s.steps) * s.alpha_ps + dense_ps


def omnireduce_ps(s: Setting) -> float:
    """Return the time to stream the non-zero blocks, with as many aggregators as workers.

    Fei et al., SIGCOMM '21, section 3.4: alpha + D S / B; here alpha is there and back. A ring
    takes 2 (n - 1) / (n D) times as long.
    """
    return 2 * s.alpha_ps + s.blocks * s.bytes_ps(s.size_bytes)


BEST_PS: dict[str, Callable[[Setting], float]] = {
    "omnireduce": omnireduce_ps,
    "ssar-double": recursive_doubling_ps,
    "ssar-split": split_allgather_ps,
    "dsar-split": dense_split_allgather_ps,
}
"""The published formula of the least time, by algorithm."""
