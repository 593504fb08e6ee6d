"""Windows are twice what a path holds, and the path is all the way, not the host's line alone.

All by hand: links between switches have 25 Gbit/s, hosts' lines 100, and each takes 1 us. A round
trip of 4096 bytes over two of either is 2 (4 us + 2 x 327.68 ns + 2 x 1310.72 ns) = 14.5536 us.
"""

from __future__ import annotations

import networkx as nx
import pytest

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.hosts.plan import plans
from ringleaf.hosts.rc.state import ALLOWED, QP_COUNT, open_qp
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.registry import build


def graph() -> nx.Graph[str]:
    return build("leafspine,leaves=2,spines=1,hosts=2,rate=25G,host_rate=100G")


@pytest.mark.parametrize(("window", "near", "far"), [(None, 87, 21), (50, 50, 50)])
def test_a_connection_has_the_window_of_its_path(window: int | None, near: int, far: int) -> None:
    """A packet and its frame are 4178 bytes: 334.24 ns on hosts' lines, 1336.96 ns between leaves.

    Half of a ring's connections stay below a leaf.
    """
    network = VirtualNetwork(graph(), NetworkOptions(window=window))
    network.endpoints.connect(plans(ALGORITHMS["ring"].build(4), 64))

    arena, connections = network.store.arena, network.endpoints.connections
    found = {
        (host, connections.flow(host, number).stream.peer): open_qp(arena, at, number).state[
            ALLOWED
        ]
        for host, at in enumerate(connections.agents)
        for number in range(arena.words[at + QP_COUNT])
    }
    assert found == {
        (0, 1): near,
        (1, 0): near,
        (1, 2): far,
        (2, 1): far,
        (2, 3): near,
        (3, 2): near,
        (3, 0): far,
        (0, 3): far,
    }


@pytest.mark.parametrize(
    ("system", "packets"),
    [
        ("omnireduce", 80),  # 1134 bytes: 362.88 ns, and of each slot one crosses a link in a round
        ("atp", 128),  # 81, and then the next power of two; hosts' lines alone would hold 512
        ("switchml", 82),  # 1100 bytes: 352 ns, on every link of its tree
    ],
)
def test_a_system_has_the_window_of_the_busiest_link(system: str, packets: int) -> None:
    """Of two workers on two leaves, each of whose hosts serves half of the blocks, too."""
    pair = build("leafspine,leaves=2,spines=1,hosts=1,rate=25G,host_rate=100G")
    network = VirtualNetwork(pair, NetworkOptions(system=SYSTEMS[system]))
    assert network.endpoints.aggregators[0].window_bytes == 4 * 256 * packets


def test_a_window_that_is_asked_for_is_taken() -> None:
    network = VirtualNetwork(graph(), NetworkOptions(system=SYSTEMS["omnireduce"], slots=300))
    assert network.endpoints.aggregators[0].window_bytes == 4 * 256 * 300
