"""Random cases of trainings that lose hosts: options as people write them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from random import Random

from bench.soak.cases import TOPOLOGIES, Disturbances, draw_options, simpler_options
from bench.soak.fault_draws import draw_faults
from ringleaf.core.faults import CORRUPT, LOSS, RATE
from ringleaf.experiments.workloads.graph.names import LLM
from ringleaf.hosts.recoveries.common.registry import RECOVERIES
from ringleaf.topologies.registry import count

RECOVERIES_SHARE = 0.02  # of all cases of a soak

_FOREIGN = ("compress", "density", "dtype", "lanes", "slots", "trees")
"""Options that models in pipelines have no use for."""

_WORKERS = ((1, 2), (2, 1), (2, 2), (2, 3), (3, 2), (4, 2))
"""Pairs of pp and dp."""


@dataclass(frozen=True, slots=True)
class RecoveryCase:
    """A case of trainings that lose hosts: one run with a few recoveries.

    Attributes:
        number: Number of the case in its soak.
        given: Options, as in a spec.
        trouble: None: losses and other faults are options.
    """

    number: int
    given: dict[str, str]
    trouble: Disturbances = field(default_factory=Disturbances)

    @property
    def command(self) -> str:
        """The command that runs it."""
        lines = "\n".join(f"{name}: {text}" for name, text in self.given.items())
        return f"ringleaf run --spec /dev/stdin <<< {shlex.quote(lines)}"


def draw_recoveries(seed: int, number: int) -> RecoveryCase:
    """Return case `number` of a soak, which must be one of recoveries."""
    random = Random(f"{seed} {number} recoveries")
    fitting = [(topo, *pair) for topo in TOPOLOGIES for pair in _WORKERS if _fits(topo, *pair)]
    topo, pp, dp = random.choice(fitting)
    given = {
        "workload": LLM,
        "topo": topo,
        "seed": str(random.randrange(1 << 20)),
        **draw_options(random),
    }
    for name in _FOREIGN:
        given.pop(name, None)
    given |= {
        **{"layers": str(pp * random.randint(1, 3)), "hidden": "16", "heads": "2"},
        **{"sequence": "16", "pp": str(pp), "dp": str(dp)},
        "micro_batches": str(random.randint(1, 5)),
        "flops": random.choice(("1G", "10G")),
        "recovery": ",".join(random.sample(sorted(RECOVERIES), 2)),
        "iterations": str(random.randint(1, 5)),
        **{"detect": "50us", "regroup": "20us", "restart": "200us", "checkpoint_cost": "10us"},
        "checkpoint_interval": random.choice(("1us", "400us")),
        "state_bytes": random.choice(("2", "14")),
    }
    faults = [_draw_losses(random, pp * dp)] if random.random() < 0.7 else []
    if random.random() < 0.3:
        kinds = [each for each in (LOSS, RATE, CORRUPT) if each != CORRUPT or "trim" not in given]
        faults.append(draw_faults(topo, random, kinds, lasting=True))
        given["hosts"] = str(count(topo).hosts)  # all, as faults may be at any
    if faults:
        given["faults"] = ", ".join(faults)
    if random.random() < 0.4:
        given["failures"] = random.choice(("llama3", "25"))
        given["failures_times"] = random.choice(("1e8", "1e9"))
        given |= {"repair": random.choice(("300us", "2ms"))}
    return RecoveryCase(number, given)


def _fits(topo: str, pp: int, dp: int) -> bool:
    return pp * dp <= count(topo).hosts


def _draw_losses(random: Random, hosts: int) -> str:
    """Return faults of different hosts: lost for good or for a while, or slow."""
    faults = []
    for host in random.sample(range(hosts), random.randint(1, min(3, hosts))):
        at_us = random.randint(0, 3000)
        kind = random.choice(("down", "down", "slow 3"))
        lasting = random.choice(("", f" for {random.randint(1, 2000)}us"))
        faults.append(f"h{host} {kind} at {at_us}us{lasting}")
    return ", ".join(faults)


def simpler_recoveries(case: RecoveryCase) -> list[RecoveryCase]:
    """Return cases that are a little smaller, the most promising first."""
    needed = {"workload", "layers", "hidden", "heads", "sequence", "recovery"}
    return [
        replace(case, given=smaller)
        for smaller in simpler_options(case.given)
        if needed & case.given.keys() <= smaller.keys()
    ]
