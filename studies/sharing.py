"""A study of two jobs on a switch that has too few aggregators for both.

`python -m studies.sharing`, in virtual time. ATP's jobs take any free
aggregator, and gradients that find none go to their parameter servers; SwitchML's jobs have half
of the entries each, and the fewer those are, the smaller the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ringleaf.collectives.aggregate import in_network_allreduce
from ringleaf.core.marking import from_depth
from ringleaf.core.tensors import FLOAT32
from ringleaf.core.units import FOREVER_PS
from ringleaf.experiments.commands.cli import alone
from ringleaf.experiments.runs.console import Debug, say
from ringleaf.hosts.plan import plans
from ringleaf.ina.registry import find_system
from ringleaf.networks.endpoints.memory import aligned
from ringleaf.networks.endpoints.operation import CollectiveOperation
from ringleaf.networks.groups import Group
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.topologies.registry import build

TOPOLOGY = "leafspine,leaves=1,spines=1,hosts=10"
WORKERS = 4
ELEMENTS = 1 << 18
LANES = 64
ENTRIES = (1024, 512, 256, 192, 128, 96, 64, 32, 16, 8, 4, 2)
TOTAL = sum(range(1, WORKERS + 1))  # each worker's tensor is full of its number
COLLIDED = 5  # row of `outcomes`, see p4/include/aggregators.p4


@dataclass(frozen=True, slots=True)
class Sharing:
    """The results of two jobs on one switch."""

    entries: int
    goodputs_bps: tuple[float, ...]  # of each job: bits of a tensor over its time
    collisions: int  # gradients that found no aggregator
    resent: int
    wrong: int


@dataclass(slots=True)
class AtOnce:
    """Starts all operations together, and notes when each is done."""

    operations: list[CollectiveOperation]
    done_ps: dict[int, int] = field(default_factory=dict)

    def start(self, now_ps: int) -> None:
        pass

    def take_operations(self) -> list[CollectiveOperation]:
        taken, self.operations = self.operations, []
        return taken

    def next_ps(self) -> int:
        return FOREVER_PS

    def reach(self, now_ps: int) -> None:
        pass

    def finish(self, operation: CollectiveOperation, now_ps: int) -> None:
        self.done_ps[operation.group] = now_ps


def share(names: tuple[str, str], entries: int, *, elements: int = ELEMENTS) -> Sharing:
    """Let two jobs reduce a tensor each, by a system each, on a switch with some entries.

    Raises:
        ConfigError: If these are too few for a system.
    """
    groups = [
        Group(
            number,
            tuple(f"h{host}" for host in range(first, first + WORKERS)),
            (f"h{2 * WORKERS + number - 1}",) if name == "atp" else (),
            find_system(name),
        )
        for number, first, name in ((1, 0, names[0]), (2, WORKERS, names[1]))
    ]
    options = NetworkOptions(lanes=LANES, switch_entries=entries, ecn=from_depth(64))
    network = VirtualNetwork(build(TOPOLOGY), options, groups=groups)
    schedule = in_network_allreduce(WORKERS)
    endpoints = network.endpoints
    endpoints.memory.make_room(2 * WORKERS * aligned(4 * elements))
    arrays = [[endpoints.memory.take(elements, FLOAT32) for _ in range(WORKERS)] for _ in groups]
    for each in arrays:
        for rank, array in enumerate(each):
            array[:] = rank + 1
    parts = plans(schedule, elements)
    staging = endpoints.staging(parts, FLOAT32)
    director = AtOnce(
        [
            endpoints.operate(
                schedule,
                endpoints.executors(parts, staging, FLOAT32, group=group),
                each,
                staging.nodes.tolist(),
                group=group,
            )
            for group, each in enumerate(arrays)
        ]
    )
    meter = network.meter()
    network.play(director)
    done = [director.done_ps[number] for number in range(len(groups))]
    return Sharing(
        entries,
        tuple(32e12 * elements / each_ps for each_ps in done),
        _collisions(network) if "atp" in names else 0,
        meter.result(done).retransmissions,
        sum(int((array != TOTAL).sum()) for each in arrays for array in each),
    )


def _collisions(network: VirtualNetwork) -> int:
    counter = "Atp.aggregators.outcomes"
    return sum(
        switch.read_counter(counter, COLLIDED).packets for switch in network.switches.values()
    )


def table(entries: Sequence[int]) -> list[str]:
    """Return rows for the terminal: two jobs of each system, and then one of either."""
    rows = [
        f"# two jobs of {WORKERS} workers, 1 MiB each, on one switch; virtual time",
        "#          systems entries  job 1  job 2  collided  resent #wrong",
        "#                          Gbit/s Gbit/s   packets packets",
    ]
    for names in (("atp", "atp"), ("switchml", "switchml"), ("atp", "switchml")):
        for count in entries:
            found = share(names, count)
            one, two = (bps / 1e9 for bps in found.goodputs_bps)
            rows.append(
                f"{' '.join(names):>18} {count:>7} {one:>6.1f} {two:>6.1f} "
                f"{found.collisions:>9} {found.resent:>7} {found.wrong:>6}"
            )
    return rows


def sharing_command(debug: Debug = False) -> None:
    """Print a row for each number of entries."""
    for row in table(ENTRIES):
        say(row)


if __name__ == "__main__":
    alone("python -m studies.sharing", sharing_command)
