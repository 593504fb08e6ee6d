"""FedAvg: in each round some ranks train from the common parameters, and the mean replaces them.

Source:
    McMahan, Moore, Ramage, Hampson and Aguera y Arcas, "Communication-efficient learning of deep
    networks from decentralized data", AISTATS 2017, algorithm 1. Ranks that are not drawn add
    nothing; their part of the allreduce is zeros (chosen, in place of a server).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ringleaf.experiments.workloads.converge.scheme import Moment, Setup

SHARE, LOCAL = 0.5, 8


def train(setup: Setup) -> Iterator[Moment]:
    """Yield the moment after every round: `share` of the ranks take `local` steps each."""
    drawn = max(round(setup.setting("share", SHARE) * setup.ranks), 1)
    local = int(setup.setting("local", LOCAL))
    programs, common = setup.programs(), setup.training.start()
    rate, done = np.float32(setup.rate), 0.0
    for number in range(-(-setup.steps * setup.ranks // (drawn * local))):
        chance = np.random.default_rng([setup.training.seed, number, 0x464C])
        clients = set(chance.choice(setup.ranks, drawn, replace=False).tolist())
        moved = []
        for rank in range(setup.ranks):
            own = common
            for step in range(local if rank in clients else 0):
                own = own - rate * setup.training.gradient(own, rank, number * local + step)
            moved.append(common - own)
        total = setup.carrier.together(programs, moved, number)[0]
        common = common - total / np.float32(drawn)
        done += drawn * local / setup.ranks
        yield Moment(done, common, local * setup.compute_ps)


SCHEME = train
