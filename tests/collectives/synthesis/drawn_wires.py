"""Networks for tests of synthesisers, with units spelled out."""

from __future__ import annotations

from itertools import product
from math import prod

from hypothesis import strategies as st

from ringleaf.collectives.wires import RankNetwork
from ringleaf.core.units import PS_PER_US

GIB_S = 8 << 30  # bit/s
GBPS = 10**9


def grid(
    sizes: tuple[int, ...], rates_gib_s: tuple[int, ...], delay_us: float, *, wrap: bool
) -> RankNetwork:
    """Return a mesh or torus; rates are by dimension, and dimensions of two have one link."""
    links = []
    for at in product(*map(range, sizes)):
        for axis, size in enumerate(sizes):
            step = at[axis] + 1
            if step == size and (not wrap or size == 2):
                continue
            to = (*at[:axis], step % size, *at[axis + 1 :])
            ends = _number(at, sizes), _number(to, sizes)
            delay_ps = round(delay_us * PS_PER_US)
            links += [(*pair, rates_gib_s[axis] * GIB_S, delay_ps) for pair in (ends, ends[::-1])]
    return RankNetwork.direct(prod(sizes), links)


def _number(at: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    number = 0
    for place, size in zip(at, sizes, strict=True):
        number = number * size + place
    return number


@st.composite
def connected(draw: st.DrawFn, most: int = 7) -> RankNetwork:
    """Draw a network of links between ranks, a tree and some more, of different rates."""
    ranks = draw(st.integers(2, most))
    pairs = {(draw(st.integers(0, rank - 1)), rank) for rank in range(1, ranks)}
    pairs |= {
        (a, b)
        for a, b in draw(
            st.lists(st.tuples(st.integers(0, ranks - 1), st.integers(0, ranks - 1)), max_size=6)
        )
        if a < b
    }
    rates = st.sampled_from((1, 1, 2, 3))
    links = []
    for a, b in sorted(pairs):
        links += [(a, b, draw(rates) * GBPS, 1000), (b, a, draw(rates) * GBPS, 1000)]
    return RankNetwork.direct(ranks, links)
