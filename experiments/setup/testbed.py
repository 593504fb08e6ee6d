"""The live network of an experiment, without hosts: Mininet's, with P4 switches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import networkx as nx

from ringleaf.errors import ConfigError
from ringleaf.experiments.records.folder import claim, listed
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.networks.live.processes import ended_like_interrupts
from ringleaf.networks.mininet.fabric import LiveSettings
from ringleaf.networks.mininet.network import LiveTestbed
from ringleaf.networks.mininet.runtime import log_names
from ringleaf.topologies.graph import switches


@contextmanager
def open_testbed(spec: NetworkSpec, graph: nx.Graph[str]) -> Iterator[LiveTestbed]:
    """Yield the live network of a spec, which is gone at the end.

    Raises:
        ConfigError: If the machine lacks something.
        BackendError: If the network can't be brought up.
    """
    list_logs(spec, graph)
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


def list_logs(spec: NetworkSpec, graph: nx.Graph[str]) -> None:
    """List the switches' logs among the files of the run directory, if there is one.

    Raises:
        ConfigError: If somebody's own file has the name of one.
    """
    ours = listed(spec.out)
    if not ours:
        return
    names = log_names(spec.switch, switches(graph))
    for path in (spec.out / name for name in names if name not in ours):
        if path.is_file() and not path.stat().st_size:
            path.unlink()  # as live runs have left them
    try:
        claim(spec.out, names)
    except FileExistsError as error:
        raise ConfigError(
            "out: must not hold files that no run has listed, got "
            f"{Path(error.filename).name!r} in {str(spec.out)!r}; move them away, or name another "
            "folder"
        ) from None
