"""Places of ranks: the host that each of them is on."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ringleaf.experiments.workloads.graph.loading import check_ranks
from ringleaf.experiments.workloads.graph.spec import SCATTERED


def place_ranks(hosts: Sequence[str], ranks: int, placement: str, seed: int) -> list[str]:
    """Return the host of each rank.

    Args:
        hosts: All hosts; neighbours in this order are near each other in the network.
        ranks: Number of ranks, each on a host of its own.
        placement: `packed`: rank r is on the r-th host; `scattered`: on a random one.
        seed: Seed of the random choice.

    Raises:
        ConfigError: If there are fewer hosts than ranks.
    """
    check_ranks(ranks, len(hosts))
    if placement == SCATTERED:
        return random.Random(seed).sample(list(hosts), ranks)
    return list(hosts[:ranks])
