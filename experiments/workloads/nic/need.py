"""The memory that a workload on NICs needs."""

from __future__ import annotations

from ringleaf.experiments.estimates.estimate import CONSTANT, Need
from ringleaf.experiments.estimates.needs import need_of, network_bytes
from ringleaf.experiments.estimates.pace import Paces
from ringleaf.experiments.workloads.nic.spec import NicSpec
from ringleaf.topologies.family import Counts


@need_of.register
def need_of_nics(
    spec: NicSpec, counts: Counts, distance: float = 1, paces: Paces = CONSTANT
) -> Need:
    """Return what an idle network needs; NICs' memory has a limit of its own (`MOST_BYTES`)."""
    del spec, distance, paces
    return Need(network_bytes(counts), None)
