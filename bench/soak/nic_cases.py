"""Random cases of workloads that NICs compute: options as people write them, and disturbances."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from random import Random

from bench.soak.cases import (
    TOPOLOGIES,
    Disturbances,
    detection,
    draw_circuits,
    draw_options,
    draw_trouble,
    draw_typed_faults,
    simpler_options,
    simpler_trouble,
    with_damage,
)
from ringleaf.topologies.registry import count

NICS_SHARE = 0.05  # of all cases of a soak

_FOREIGN = ("compress", "density", "dtype", "lanes", "slots", "trees")
"""Options that NICs' workloads have no use for."""


@dataclass(frozen=True, slots=True)
class NicCase:
    """A case of NICs: one run of `ringleaf nic`, with several systems.

    Attributes:
        number: Number of the case in its soak.
        offload: The workload.
        given: Options, as on the command line.
        trouble: Failures of links and restarts of switches in every task.
    """

    number: int
    offload: str
    given: dict[str, str]
    trouble: Disturbances

    @property
    def command(self) -> str:
        """The command that runs its options without the trouble."""
        words = (f"--{name.replace('_', '-')} {shlex.quote(v)}" for name, v in self.given.items())
        return " ".join((f"ringleaf nic {self.offload}", *words))


def draw_nics(seed: int, number: int) -> NicCase:
    """Return case `number` of a soak, which must be one of NICs."""
    random = Random(f"{seed} {number} nics")
    topo = random.choice(TOPOLOGIES)
    given = {"topo": topo, "seed": str(random.randrange(1 << 20)), **draw_options(random)}
    for name in _FOREIGN:
        given.pop(name, None)
    offload = random.choice(("guo", "guo", "fcsn"))
    hosts = count(topo).hosts
    given |= _draw_exchange(random, hosts) if offload == "guo" else _draw_pipeline(random, hosts)
    given |= draw_circuits(given, random)
    trouble = with_damage(draw_trouble(given, random), given, random)
    if not trouble:
        given |= draw_typed_faults(given, random, aggregates=False)
    return NicCase(number, offload, given | detection(trouble), trouble)


def _draw_exchange(random: Random, hosts: int) -> dict[str, str]:
    return {
        "rows": str(random.randint(hosts, 300)),
        "dim": str(random.choice((1, 2, 31, 32, 100))),
        "bags": str(random.randint(1, 12)),
        "per_bag": str(random.randint(1, 9)),
        "zipf": random.choice(("0", "1.05", "2")),
        "cache": random.choice(("0,1", "2,40", "17", "300")),
        "policy": random.choice(("lru", "lfu")),
        "pool": random.choice(("no", "yes")),
        "coherence": random.choice(("update", "invalidate")),
        "local_cache": random.choice(("0", "1", "10")),
        "row_time": random.choice(("0", "50ns")),
        "iterations": str(random.randint(1, 3)),
        "warm_up": str(random.randint(0, 2)),
    }


def _draw_pipeline(random: Random, hosts: int) -> dict[str, str]:
    widths = (random.choice((1, 7, 64, 200)) for _ in range(hosts + 1 + random.randint(0, 2)))
    samples = random.randint(1, 200)
    tiles = {random.randint(1, samples) for _ in range(2)}
    return {
        "widths": ",".join(map(str, widths)),
        "samples": str(samples),
        "tile": ",".join(map(str, sorted(tiles))),
        "products": random.choice(("1T", "100T")),
        "host_latency": random.choice(("5us", "20us")),
    }


def simpler_nics(case: NicCase) -> list[NicCase]:
    """Return cases that are a little smaller, the most promising first."""
    found = [replace(case, trouble=each) for each in simpler_trouble(case.trouble)]
    needed = {"widths", "rows", "samples", "tile"}  # others' defaults may be larger
    for smaller in simpler_options(case.given):
        if needed & case.given.keys() <= smaller.keys():
            found.append(replace(case, given=smaller))
    return found
