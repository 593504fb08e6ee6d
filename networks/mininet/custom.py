"""Ringleaf's topologies and switches for Mininet's own command.

As root, and in one line:

    mn --custom networks/mininet/custom.py --controller none
       --topo leafspine,leaves=2,spines=2,hosts=2 --switch embedded

`--switch bmv2` takes BMv2, and `--topo file,path=rack.graphml` a topology file. The switches run
`p4/forward.p4` with routes to all hosts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ringleaf.core.shipped import built_program
from ringleaf.core.units import PS_PER_US
from ringleaf.networks.forwarding import forwarding_entities
from ringleaf.networks.mininet.switches import Bmv2Switch, EmbeddedSwitch
from ringleaf.networks.mininet.topo import GraphTopo
from ringleaf.topologies.registry import TOPOLOGIES, build

RATE_BPS = 100 * 10**6


def make_topo(family: str, **sizes: int) -> GraphTopo:
    """Return a topology of Ringleaf with 100 Mbit/s links and forwarding switches."""
    spec = ",".join([family, *(f"{name}={size}" for name, size in sizes.items())])
    graph = build(spec, rate_bps=RATE_BPS, delay_ps=PS_PER_US)
    return GraphTopo(graph, program=built_program("forward"), entities=forwarding_entities(graph))


def make_file(path: str) -> GraphTopo:
    """Return the topology of a file."""
    return make_topo(path)


topos: dict[str, Callable[..., GraphTopo]] = {
    **{name: partial(make_topo, name) for name in TOPOLOGIES},
    "file": make_file,
}
switches = {"embedded": EmbeddedSwitch, "bmv2": Bmv2Switch}
