"""The algorithms by name. A new one is a file of its own and a line here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ringleaf.collectives import (
    aggregate,
    alltoall,
    blueconnect,
    double_tree,
    halving_doubling,
    parameter_server,
    ring,
    rooted,
    tree,
)
from ringleaf.collectives.cost import Cost, Fabric
from ringleaf.collectives.schedule import Collective, Schedule, check_ranks
from ringleaf.collectives.sparse import sparcml
from ringleaf.errors import ScheduleError, choose

IDEAL = Fabric()


@dataclass(frozen=True, slots=True)
class Request:
    """What an algorithm may want to know; most look at `ranks` only.

    `hierarchy` is the topology's, innermost first; `segments` None leaves the number of
    pieces in a pipeline to the cost model. `servers` nodes help besides the ranks.
    """

    ranks: int
    size_bytes: int = 0
    hierarchy: tuple[int, ...] = ()
    segments: int | None = None
    root: int = 0
    fabric: Fabric = IDEAL
    servers: int = 0

    def __post_init__(self) -> None:
        check_ranks("collective", self.ranks)
        if self.size_bytes < 0:
            raise ScheduleError(f"collective: size must be >= 0, got {self.size_bytes}")


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
        servers: int = 0,
    ) -> Schedule:
        """Return the schedule for `ranks` ranks; one rank alone has an empty one.

        Raises:
            ScheduleError: If an argument does not fit the algorithm.
        """
        request = Request(ranks, size_bytes, tuple(hierarchy), segments, root, fabric, servers)
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
        servers: int = 0,
    ) -> Cost:
        """Return the closed form's figures for the schedule that `build` returns.

        Raises:
            ScheduleError: If an argument does not fit the algorithm.
        """
        request = Request(ranks, size_bytes, tuple(hierarchy), segments, root, fabric, servers)
        return self.cost_of(request)


def find_algorithm(name: str) -> Algorithm:
    """Return the algorithm of that name.

    Raises:
        ConfigError: Naming the valid ones.
    """
    return ALGORITHMS[choose("algo", "algorithm", name, ALGORITHMS)]


def _tree_segments(r: Request) -> int:
    best = tree.tree_segments
    return best(r.ranks, r.size_bytes, r.fabric) if r.segments is None else r.segments


def _double_tree_segments(r: Request) -> int:
    best = double_tree.double_tree_segments
    return best(r.ranks, r.size_bytes, r.fabric) if r.segments is None else r.segments


def _ps_segments(r: Request) -> int:
    best = parameter_server.parameter_server_segments
    return best(r.ranks, r.size_bytes, r.fabric, r.servers) if r.segments is None else r.segments


_ALL = (
    Algorithm(
        "ring",
        Collective.ALLREDUCE,
        "ring",
        lambda r: ring.ring_allreduce(r.ranks),
        lambda r: ring.ring_allreduce_cost(r.ranks, r.size_bytes, r.fabric),
    ),
    Algorithm(
        "tree",
        Collective.ALLREDUCE,
        "binary tree",
        lambda r: tree.tree_allreduce(r.ranks, _tree_segments(r)),
        lambda r: tree.tree_cost(r.ranks, r.size_bytes, r.fabric, _tree_segments(r)),
    ),
    Algorithm(
        "doubletree",
        Collective.ALLREDUCE,
        "double binary tree",
        lambda r: double_tree.double_tree_allreduce(r.ranks, _double_tree_segments(r)),
        lambda r: double_tree.double_tree_cost(
            r.ranks, r.size_bytes, r.fabric, _double_tree_segments(r)
        ),
    ),
    Algorithm(
        "halvingdoubling",
        Collective.ALLREDUCE,
        "recursive halving-doubling",
        lambda r: halving_doubling.halving_doubling_allreduce(r.ranks),
        lambda r: halving_doubling.halving_doubling_cost(r.ranks, r.size_bytes, r.fabric),
    ),
    Algorithm(
        "blueconnect",
        Collective.ALLREDUCE,
        "BlueConnect",
        lambda r: blueconnect.blueconnect_allreduce(r.ranks, r.hierarchy),
        lambda r: blueconnect.blueconnect_cost(r.ranks, r.hierarchy, r.size_bytes, r.fabric),
    ),
    Algorithm(
        "ps",
        Collective.ALLREDUCE,
        "parameter servers",
        lambda r: parameter_server.parameter_server_allreduce(r.ranks, r.servers, _ps_segments(r)),
        lambda r: parameter_server.parameter_server_cost(
            r.ranks, r.size_bytes, r.fabric, r.servers, _ps_segments(r)
        ),
    ),
    Algorithm(
        "switchml",
        Collective.ALLREDUCE,
        "SwitchML",
        lambda r: aggregate.in_network_allreduce(r.ranks, "switchml"),
        lambda r: aggregate.in_network_cost(r.ranks, r.size_bytes, r.fabric),
        in_network=True,
    ),
    Algorithm(
        "omnireduce",
        Collective.ALLREDUCE,
        "OmniReduce",
        lambda r: aggregate.in_network_allreduce(r.ranks, "omnireduce"),
        lambda r: aggregate.in_network_cost(r.ranks, r.size_bytes, r.fabric),
        in_network=True,
    ),
    Algorithm(
        "ssar-double",
        Collective.ALLREDUCE,
        "SparCML, SSAR recursive doubling",
        lambda r: sparcml.recursive_doubling(r.ranks),
        lambda r: sparcml.recursive_doubling_cost(r.ranks, r.size_bytes, r.fabric),
    ),
    Algorithm(
        "ssar-split",
        Collective.ALLREDUCE,
        "SparCML, SSAR split and all-gather",
        lambda r: sparcml.split_allgather(r.ranks),
        lambda r: sparcml.split_allgather_cost(r.ranks, r.size_bytes, r.fabric),
    ),
    Algorithm(
        "dsar-split",
        Collective.ALLREDUCE,
        "SparCML, DSAR split and all-gather",
        lambda r: sparcml.split_allgather(r.ranks, dense_result=True),
        lambda r: sparcml.split_allgather_cost(r.ranks, r.size_bytes, r.fabric),
    ),
    Algorithm(
        "atp",
        Collective.ALLREDUCE,
        "ATP",
        lambda r: aggregate.in_network_allreduce(r.ranks, "atp"),
        lambda r: aggregate.in_network_cost(r.ranks, r.size_bytes, r.fabric),
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
    Algorithm(
        "broadcast",
        Collective.BROADCAST,
        "binomial or chain broadcast",
        lambda r: rooted.broadcast(r.ranks, r.size_bytes, r.fabric, r.segments, r.root),
        lambda r: rooted.broadcast_cost(r.ranks, r.size_bytes, r.fabric, r.segments),
    ),
    Algorithm(
        "reduce",
        Collective.REDUCE,
        "binomial or chain reduce",
        lambda r: rooted.reduce(r.ranks, r.size_bytes, r.fabric, r.segments, r.root),
        lambda r: rooted.reduce_cost(r.ranks, r.size_bytes, r.fabric, r.segments),
    ),
    Algorithm(
        "alltoall",
        Collective.ALL_TO_ALL,
        "pairwise all-to-all",
        lambda r: alltoall.pairwise_all_to_all(r.ranks),
        lambda r: alltoall.pairwise_cost(r.ranks, r.size_bytes, r.fabric),
    ),
)

ALGORITHMS: dict[str, Algorithm] = {algorithm.name: algorithm for algorithm in _ALL}
