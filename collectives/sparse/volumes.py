"""Published volumes of sparse allreduces: the words of 4 bytes that a rank sends, without headers.

n ranks each send k of d elements, as pairs of two words. Where ranks differ, it is the one that
sends most: ScaleCom's leader is the root of a binomial tree, over which its k indices go.

Source:
    Li and Hoefler, "Near-optimal sparse allreduce for distributed deep learning", PPoPP 2022, table
    1 and section 3 (TopkA, gTopk, Ok-Topk); Renggli et al., SparCML, SC '19, section 5.3; others
    follow from the algorithms' descriptions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log2

from ringleaf.collectives.sparse.bloom import filter_size


@dataclass(frozen=True, slots=True)
class Volume:
    """The parameters: ranks n, elements d, k of them sent; ranks of a node, bits of a level."""

    n: int
    d: int
    k: int
    node: int = 4
    bits: int = 4

    @property
    def far(self) -> float:
        """The share of a tensor that is not a rank's own."""
        return (self.n - 1) / self.n

    @property
    def union(self) -> int:
        """The most elements that a sum has."""
        return min(self.n * self.k, self.d)


def _hitopk(v: Volume) -> float:
    nodes, dense = v.n // v.node, 2 * (v.node - 1) / v.node * v.d
    return dense + (nodes - 1) * 2 * v.k / v.node


def _deepreduce(v: Volume) -> float:
    return (v.n - 1) * (v.k + filter_size(v.d, v.k)[0] / 32)


Bounds = tuple[float, float]
"""The least and the most words."""

WORDS: dict[str, Callable[[Volume], Bounds]] = {
    "topka": lambda v: (2 * v.k * (v.n - 1),) * 2,
    "gtopk": lambda v: (2 * v.k * log2(v.n),) * 2,
    "oktopk": lambda v: (2 * v.k * v.far, 6 * v.k * v.far),
    "scalecom": lambda v: (2 * v.far * v.k, v.k * log2(v.n) + 2 * v.far * v.k),
    "hitopk": lambda v: (_hitopk(v),) * 2,
    "deepreduce": lambda v: (_deepreduce(v),) * 2,
    "sparcml-q": lambda v: (0, v.far * (2 * v.k + v.d * v.bits / 32)),
    "ssar-double": lambda v: (
        min(2 * v.k, v.d) * log2(v.n),
        sum(min(2 * v.k * (1 << i), v.d) for i in range(int(log2(v.n)))),
    ),
    "ssar-split": lambda v: (
        2 * v.far * min(2 * v.k, v.d),
        v.far * (min(2 * v.k, v.d) + min(2 * v.union, v.d)),
    ),
    "dsar-split": lambda v: (v.far * v.d, v.far * (min(2 * v.k, v.d) + v.d)),
    "omnireduce": lambda v: (v.k, v.d),
}
"""By name; n is a power of two."""

HEADERS: dict[str, Callable[[Volume], float]] = {
    "topka": lambda v: v.n - 1,
    "gtopk": lambda v: log2(v.n),
    "oktopk": lambda v: 2 * (v.n - 1),
    "scalecom": lambda v: 0,
    "hitopk": lambda v: v.node + v.n / v.node,
    "deepreduce": lambda v: v.n - 1,
    "sparcml-q": lambda v: 2 * (v.n - 1),
    "ssar-double": lambda v: log2(v.n),
    "ssar-split": lambda v: 4 * v.n,
    "dsar-split": lambda v: v.n - 1,
    "omnireduce": lambda v: 0,
}
"""Words of headers and numbers beside the pairs of the rank that sends most.

A gathering passes on a header of each other rank; Ok-Topk gathers numbers, too. In ssar-split there
are 2 (n - 1), and the rest is for owners' parts, which are uneven.
"""
