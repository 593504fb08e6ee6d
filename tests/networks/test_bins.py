"""Series of bytes: a bin's width doubles when time runs past the last one."""

from __future__ import annotations

import ringleaf.networks.virtual.state as s
from ringleaf.arena import Store
from ringleaf.networks.virtual.bins import count_bin


def test_bins_of_all_ports_become_wider_together() -> None:
    """By hand: 4 bins of 10 ps are 4 of 20 ps when bytes come at 45 ps."""
    store = Store()
    store.allocate("words", 64)
    at = s.make_network(store, ports=3, nodes=1, agents=0, ring=0, bins=4, seed=1, owners=2)
    words = store.arena.words
    words[at + s.BIN_PS] = 10
    for port, owner, now_ps, size in ((0, 0, 5, 1), (0, 0, 15, 2), (2, 1, 25, 4), (2, 1, 39, 8)):
        count_bin(words, at, port, owner, now_ps, size)
    bins = s.open_network(store.arena, at).bins
    assert bins.tolist() == [[1, 2, 0, 0], *4 * [[0] * 4], [0, 0, 4, 8]]

    count_bin(words, at, 1, 0, 45, 16)

    assert words[at + s.BIN_PS] == 20
    assert bins[0].tolist() == [3, 0, 0, 0]
    assert bins[2].tolist() == [0, 0, 16, 0]
    assert bins[5].tolist() == [0, 12, 0, 0]
