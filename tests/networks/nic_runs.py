"""Embedding exchanges on a small network, for tests."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np

from ringleaf.experiments.workloads.nic.embedding import CheckedNics, ExchangeCase, make_system
from ringleaf.experiments.workloads.nic.network import NicNetwork
from ringleaf.experiments.workloads.nic.reference import Indices, Reference
from ringleaf.hosts.nic.embedding.sizes import ExchangeSizes
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.registry import build

RANKS = 4


def star(ranks: int = RANKS) -> nx.Graph[str]:
    return build(f"leafspine,leaves=1,spines=1,hosts={ranks}", rate_bps=10**11, delay_ps=10**6)


class Exchanges:
    """NICs on a star, the table in one piece, and the passes so far."""

    def __init__(
        self,
        sizes: ExchangeSizes,
        *,
        latency_ps: int = 0,
        exponent: float = 1.05,
        seed: int = 1,
        options: NetworkOptions | None = None,
    ) -> None:
        options = options or NetworkOptions()
        system = make_system(ExchangeCase("nic", "-", sizes, latency_ps), options)
        made = VirtualNetwork(star(sizes.ranks), replace(options, system=system), seed=seed)
        self.network = NicNetwork(made, system)
        self.reference = Reference(
            sizes.ranks, sizes.rows, sizes.dim, sizes.bags, sizes.per_bag,
            exponent=exponent, seed=seed,
        )  # fmt: skip
        self.sizes = sizes
        self.nics = CheckedNics(self.network, self.reference, sizes)
        self.batches: list[Indices] = []

    def iterate(self, lookups: Indices | None = None) -> tuple[RunResult, RunResult]:
        """Do both passes for a batch, which is drawn if none is given."""
        batch = self.reference.draw() if lookups is None else lookups
        self.batches.append(batch)
        gradients = self.reference.gradients()
        return self.nics.forward(batch), self.nics.backward(batch, gradients)

    def remote(self, batch: int, rank: int) -> Indices:
        """Return the look-ups of a rank's batch that other ranks' rows are for, in order."""
        rows = self.batches[batch][rank].reshape(-1)
        return np.asarray(rows[rows % self.sizes.ranks != rank])
