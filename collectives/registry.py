"""The algorithms by name. A new one is a file of its own and a line here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from collectives import ring
from collectives.aggregate import in_network_allreduce, in_network_cost
from collectives.cost import Cost, Fabric
from collectives.schedule import Collective, Schedule
from ringleaf.errors import choose

IDEAL = Fabric()


@dataclass(frozen=True, slots=True)
class Request:
    """What an algorithm may want to know; most look at `ranks` only.

    `hierarchy` is the topology's, innermost first; `segments` None leaves the number of
    pieces in a pipeline to the cost model.
    """

    ranks: int
    size_bytes: int = 0
    hierarchy: tuple[int, ...] = ()
    segments: int | None = None
    root: int = 0
    fabric: Fabric = IDEAL


@dataclass(frozen=True, slots=True)
class Algorithm:
    """One way to do a collective. `in_network` ones need switches that aggregate."""

    name: str
    collective: Collective
    title: str
    schedule_for: Callable[[Request], Schedule]
    cost_of: Callable[[Request], Cost]
    in_network: bool = False

    def build(
        self,
        ranks: int,
        *,
        size_bytes: int = 0,
        hierarchy: Sequence[int] = (),
        segments: int | None = None,
        root: int = 0,
        fabric: Fabric = IDEAL,
    ) -> Schedule:
        """Return the schedule for `ranks` ranks; one rank alone has an empty one.

        Raises:
            ScheduleError: If an argument does not fit the algorithm.
        """
        request = Request(ranks, size_bytes, tuple(hierarchy), segments, root, fabric)
        return self.schedule_for(request)

    def cost(
        self,
        ranks: int,
        *,
        size_bytes: int = 0,
        hierarchy: Sequence[int] = (),
        segments: int | None = None,
        root: int = 0,
        fabric: Fabric = IDEAL,
    ) -> Cost:
        """Return the closed form's figures for the schedule that `build` returns.

        Raises:
            ScheduleError: If an argument does not fit the algorithm.
        """
        request = Request(ranks, size_bytes, tuple(hierarchy), segments, root, fabric)
        return self.cost_of(request)


def find_algorithm(name: str) -> Algorithm:
    """Return the algorithm of that name.

    Raises:
        ConfigError: Naming the valid ones.
    """
    return ALGORITHMS[choose("find_algorithm", "algorithm", name, ALGORITHMS)]


_ALL = (
    Algorithm(
        "ring",
        Collective.ALLREDUCE,
        "ring",
        lambda r: ring.ring_allreduce(r.ranks),
        lambda r: ring.ring_allreduce_cost(r.ranks, r.size_bytes, r.fabric),
    ),
    Algorithm(
        "switchml",
        Collective.ALLREDUCE,
        "SwitchML",
        lambda r: in_network_allreduce(r.ranks, "switchml"),
        lambda r: in_network_cost(r.ranks, r.size_bytes, r.fabric),
        in_network=True,
    ),
    Algorithm(
        "reducescatter",
        Collective.REDUCE_SCATTER,
        "ring reduce-scatter",
        lambda r: ring.ring_reduce_scatter(r.ranks),
        lambda r: ring.ring_half_cost(r.ranks, r.size_bytes, r.fabric),
    ),
    Algorithm(
        "allgather",
        Collective.ALL_GATHER,
        "ring all-gather",
        lambda r: ring.ring_all_gather(r.ranks),
        lambda r: ring.ring_half_cost(r.ranks, r.size_bytes, r.fabric),
    ),
)

ALGORITHMS: dict[str, Algorithm] = {algorithm.name: algorithm for algorithm in _ALL}
