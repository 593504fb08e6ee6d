"""The memory that a workload on NICs needs."""

from __future__ import annotations

from ringleaf.experiments.estimates.estimate import Need
from ringleaf.experiments.estimates.needs import network_bytes
from ringleaf.experiments.workloads.nic.spec import NicSpec
from ringleaf.topologies.family import Counts


def need_of_nics(spec: NicSpec, counts: Counts) -> Need:
    """Return what an idle network needs; NICs' memory has a limit of its own (`MOST_BYTES`)."""
    del spec
    return Need(network_bytes(counts), None)
