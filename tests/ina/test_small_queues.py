"""Queues too small for what all workers send: runs end, though all began and resend together."""

from __future__ import annotations

import pytest
from running import run

HOSTS_32 = "leafspine,leaves=8,spines=2,hosts=4"


@pytest.mark.parametrize(
    ("algo", "topo"),
    [("atp", HOSTS_32), ("a2tp", HOSTS_32), ("omnireduce", "leafspine,leaves=1,spines=1,hosts=16")],
)
def test_workers_that_send_too_much_together_get_through(algo: str, topo: str) -> None:
    """Twelve packets of 320 bytes fit into a queue, and each worker sends up to 256."""
    given = {"topo": topo, "algo": algo, "lanes": "64", "servers": "1", "queue": "4K"}
    rows = run(given | {"size": "64K", "figures": "no"}).rows
    assert [row.wrong for row in rows] == [0]
    assert rows[0].drops > 1000
