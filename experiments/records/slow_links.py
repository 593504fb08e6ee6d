"""Links that faults slow down: they are busy for longer with the same bytes.

A topology that `with_slow_links` has returned knows when its links have which rate, so that the
share of the time in which a link was busy is right for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np
import numpy.typing as npt

from ringleaf.core.faults import RATE, NetworkFault
from ringleaf.core.units import FOREVER_PS, PS_PER_S
from ringleaf.networks.faults import Direction, links_of
from ringleaf.topologies.graph import link

_SLOW = "slow_links"


def with_slow_links(graph: nx.Graph[str], faults: Sequence[NetworkFault]) -> nx.Graph[str]:
    """Return the topology with a note of the rates that links have by faults.

    Raises:
        ConfigError: If a place is none of the topology.
    """
    slow: dict[frozenset[str], list[tuple[int, int, int]]] = {}  # from, until, bit/s
    for fault in faults:
        for ends in links_of(graph, fault.place) if fault.kind == RATE else ():
            slow.setdefault(frozenset(ends), []).extend(
                (start_ps, FOREVER_PS if end_ps is None else end_ps, int(fault.value))
                for start_ps, end_ps in fault.spans()
            )
    if slow:
        graph = graph.copy()
        graph.graph[_SLOW] = slow
    return graph


def is_slow(graph: nx.Graph[str], ends: Direction) -> bool:
    """Return whether a link is slower than usual at some time."""
    slow = graph.graph.get(_SLOW)
    return slow is not None and frozenset(ends) in slow


def busy_ps(
    graph: nx.Graph[str], ends: Direction, size_bytes: npt.NDArray[np.int64], bin_ps: int
) -> npt.NDArray[np.float64]:
    """Return for how long one direction of a link was busy in each bin of time.

    Args:
        graph: The topology.
        ends: The direction.
        size_bytes: The bytes that it sent in each bin, of shape (bins,).
        bin_ps: The length of a bin.
    """
    usual_bps = link(graph, *ends).rate_bps
    rates = np.full(size_bytes.shape, float(usual_bps))
    starts = np.arange(len(size_bytes), dtype=np.float64) * bin_ps
    for start_ps, end_ps, slow_bps in graph.graph.get(_SLOW, {}).get(frozenset(ends), ()):
        lasting = np.minimum(end_ps, starts + bin_ps) - np.maximum(start_ps, starts)
        rates += np.maximum(lasting, 0) / bin_ps * (slow_bps - usual_bps)
    busy: npt.NDArray[np.float64] = size_bytes * (8.0 * PS_PER_S) / rates
    return busy
