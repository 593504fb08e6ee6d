"""A NIC's caches of rows: look-ups by hand."""

from __future__ import annotations

from test_cache import Kept

from ringleaf.hosts.nic.cache import LFU, LRU


def test_guo() -> None:
    """Room for two. Row 0 has three look-ups, 1 one, 2 two, and 3 one.

    The least recent goes: 2 and 3 are left. The least frequent goes when another has more: row 2
    takes the place of row 1 at its second look-up, and row 3 none.
    """
    lru, lfu = Kept(2, LRU), Kept(2, LFU)
    for row in (0, 0, 0, 1, 2, 2, 3):
        lru.ask(row)
        lfu.ask(row)
    assert lru.rows == {2, 3}
    assert lfu.rows == {0, 2}
