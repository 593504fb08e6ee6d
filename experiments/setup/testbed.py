"""The live network of an experiment, without hosts: Mininet's, with P4 switches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import networkx as nx

from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.networks.live.processes import ended_like_interrupts
from ringleaf.networks.mininet.fabric import LiveSettings
from ringleaf.networks.mininet.network import LiveTestbed


@contextmanager
def open_testbed(spec: NetworkSpec, graph: nx.Graph[str]) -> Iterator[LiveTestbed]:
    """Yield the live network of a spec, which is gone at the end.

    Raises:
        ConfigError: If the machine lacks something.
        BackendError: If the network can't be brought up.
    """
    settings = LiveSettings(
        switch=spec.switch,
        scale=1,  # the graph's rates are already scaled
        loss=spec.loss,
        discipline=spec.discipline,
        pfc=spec.pfc,
        seed=spec.seed,
        run_dir=spec.out,
        shapes_hosts=False,  # agents pace what they send
        captures=spec.pcap or spec.record is not None,
        **({} if spec.queue_bytes is None else {"queue_bytes": spec.queue_bytes}),
    )
    with ended_like_interrupts(), LiveTestbed(graph, settings) as testbed:
        yield testbed
