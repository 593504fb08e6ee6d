"""The memory that a training script needs, as far as it is known before."""

from __future__ import annotations

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.experiments.estimates.estimate import Need, costs_of
from ringleaf.experiments.estimates.needs import network_bytes
from ringleaf.experiments.workloads.train.spec import TrainSpec
from ringleaf.topologies.family import Counts

FABRIC_BYTES = 200 << 20  # the processes that make ranks, and draw
RANK_BYTES = 75 << 20  # per rank: PyTorch, of which ranks share most


def need_of_script(spec: TrainSpec, counts: Counts) -> Need:
    """Return what processes need. The script's own tensors, and its time, nobody knows before."""
    switch_bytes = max(costs_of(ALGORITHMS[each]).switch_bytes for each in spec.algorithms.names)
    return Need(network_bytes(counts, switch_bytes) + FABRIC_BYTES + RANK_BYTES * spec.ranks, None)
