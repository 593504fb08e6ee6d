"""Random cases of workloads: models in parallel, whose hosts may be slow, and flows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random

from bench.soak.cases import (
    TOPOLOGIES,
    Disturbances,
    draw_circuits,
    draw_options,
    draw_typed_faults,
    for_other_programs,
    simpler_options,
)
from bench.soak.members import by_hosts
from ringleaf.collectives.compression.registry import COMPRESSORS
from ringleaf.core.faults import SLOW
from ringleaf.experiments.workloads.graph.names import FLOWS, LLM
from ringleaf.hosts.workload.flows import PATTERNS
from ringleaf.hosts.workload.llm.pipeline import GPIPE, INTERLEAVED, ONE_F_ONE_B, SCHEDULES
from ringleaf.ina.registry import SYSTEMS
from ringleaf.topologies.registry import count

WORKLOADS_SHARE = 0.05  # of all cases of a soak

_FOREIGN = ("compress", "density", "dtype", "slots", "trees")
"""Options that workloads have no use for."""

_NEEDED = {
    *("workload", "pattern", "ranks", "flows", "layers", "hidden", "heads", "sequence", "hosts"),
    *("tp", "pp", "dp", "schedule", "chunks", "micro_batches"),
}
"""Options without which others do not fit, or cases are larger."""

_SPLITS = ((1, 1, 2), (2, 1, 2), (1, 2, 2), (2, 2, 1), (1, 1, 4), (2, 2, 2), (1, 3, 2), (1, 4, 2))
"""Numbers of ranks of a model: tp, pp, dp."""


@dataclass(frozen=True, slots=True)
class WorkloadCase:
    """A case of a workload: one run by packets, and one by flows.

    Attributes:
        number: Number of the case in its soak.
        given: Options, as in a spec.
        trouble: None: faults are options.
    """

    number: int
    given: dict[str, str]
    trouble: Disturbances = field(default_factory=Disturbances)

    @property
    def command(self) -> str:
        """The command that runs it."""
        lines = "\n".join(f"{name}: {text}" for name, text in self.given.items())
        return f"ringleaf run --spec /dev/stdin <<< {shlex.quote(lines)}"


def draw_workloads(seed: int, number: int) -> WorkloadCase:
    """Return case `number` of a soak, which must be one of a workload."""
    random = Random(f"{seed} {number} workloads")
    is_model = random.random() < 0.7
    topo = random.choice(TOPOLOGIES)
    given = {"topo": topo, "seed": str(random.randrange(1 << 20)), **draw_options(random)}
    for name in _FOREIGN:
        given.pop(name, None)
    hosts = count(topo).hosts
    given |= _draw_model(random, hosts) if is_model else _draw_flows(random, hosts)
    given |= {"hosts": str(hosts), "data": "random"}
    given["placement"] = random.choice(("packed", "scattered"))
    adds = given.get("algo", "") in SYSTEMS
    if adds:
        given = for_other_programs(given)
    given |= draw_circuits(given, random, aggregates=adds)
    given |= draw_typed_faults(given, random, aggregates=adds, share=0.6, more=slows(given))
    return WorkloadCase(number, given)


def slows(given: Mapping[str, str]) -> tuple[str, ...]:
    """Return the kinds of faults of hosts that compute: any may be slow if all have a rank."""
    if "pp" not in given:
        return ()
    ranks = int(given["tp"]) * int(given["pp"]) * int(given["dp"])
    return (SLOW, SLOW) if ranks == int(given["hosts"]) else ()


def _draw_model(random: Random, hosts: int) -> dict[str, str]:
    tp, pp, dp = random.choice([each for each in _SPLITS if each[0] * each[1] * each[2] <= hosts])
    schedules = sorted(SCHEDULES) if pp % 2 == 0 else (GPIPE, ONE_F_ONE_B)
    schedule = random.choice(schedules)
    micro_batches = 2 * pp * random.randint(1, 2)
    given = {
        "workload": LLM,
        **{"layers": str(2 * pp * random.randint(1, 2)), "hidden": "16", "heads": "2"},
        **{"sequence": "16", "tp": str(tp), "pp": str(pp), "dp": str(dp)},
        **{"micro_batches": str(micro_batches), "schedule": schedule},
        "flops": random.choice(("1G", "10G", "1T")),
        "zero": random.choice(("0", "1", "2", "3" if schedule in (GPIPE, ONE_F_ONE_B) else "0")),
        "algo": random.choice((random.choice(by_hosts()), random.choice(_adding()))),
    }
    if tp > 1:
        given["sequence_parallel"] = random.choice(("yes", "no"))
    if schedule == INTERLEAVED:
        given["chunks"] = "2"
    return given


def _adding() -> list[str]:
    """Return the systems that add up whatever gradients there are."""
    return sorted(name for name in SYSTEMS if SYSTEMS[name].compress not in COMPRESSORS)


def _draw_flows(random: Random, hosts: int) -> dict[str, str]:
    pattern = random.choice(sorted(PATTERNS))
    given = {
        "workload": FLOWS,
        "pattern": pattern,
        "ranks": str(random.randint(2, hosts)),
        "flows": str(random.randint(1, 40)),
    }
    return given | {"flow_sizes": random.choice(("1B,300B", "5000B", "64KiB,1KiB", "100KiB"))}


def simpler_workloads(case: WorkloadCase) -> list[WorkloadCase]:
    """Return cases that are a little smaller, the most promising first."""
    needed = _NEEDED & case.given.keys()
    return [
        replace(case, given=smaller)
        for smaller in simpler_options(case.given)
        if needed <= smaller.keys()
    ]
