"""The contract of a synthesiser: a `Problem` to a `SynthesisPlan`, a schedule with expectations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ringleaf.collectives.algorithm import Look
from ringleaf.collectives.collective import Collective, check_ranks, check_root
from ringleaf.collectives.schedule import Schedule
from ringleaf.collectives.synthesis.sketch import Sketch
from ringleaf.collectives.wires import RankNetwork
from ringleaf.errors import ScheduleError

LIMIT_S = 30.0
"""The time that a search may take unless another limit is given."""

MOST_CELLS = 1 << 18  # ranks x chunks of the tensor: each has a message of its own


@dataclass(frozen=True, slots=True)
class Problem:
    """The collective to be synthesised, and the network that it is for.

    Attributes:
        wires: The network between the ranks.
        collective: The promise.
        size_bytes: Size of each rank's tensor; the whole of it, also for an all-gather.
        chunks: Chunks of the tensor for each rank; None: the synthesiser's choice.
        root: The root of a reduce or broadcast.
        limit_s: The time that the search may take, in seconds. A search that it cuts short
            depends on the machine; its `SynthesisPlan` says so by its gap.
        seed: Seeds whatever the synthesiser draws.
        sketch: What is known of the network; None: the synthesiser's default.
        found: Called with plans that are found on the way to the best one, if there are any.

    Raises:
        ScheduleError: If a number is out of range, or a rank can't reach another one.
    """

    wires: RankNetwork
    collective: Collective
    size_bytes: int
    chunks: int | None = None
    root: int = 0
    limit_s: float = LIMIT_S
    seed: int = 1
    sketch: Sketch | None = None
    listener: Callable[[SynthesisPlan], None] | None = None

    def __post_init__(self) -> None:
        check_ranks("synthesis", self.ranks)
        check_root("synthesis", self.root, self.ranks)
        if self.size_bytes < 0:
            raise ScheduleError(f"synthesis: size must be >= 0, got {self.size_bytes}")
        most = max(MOST_CELLS // self.ranks**2, 1)
        if self.ranks**2 > MOST_CELLS:
            raise ScheduleError(
                f"synthesis: takes at most {int(MOST_CELLS**0.5)} ranks, got {self.ranks}"
            )
        if self.chunks is not None and not 1 <= self.chunks <= most:
            raise ScheduleError(f"synthesis: chunks must be 1 to {most}, got {self.chunks}")
        if not self.limit_s > 0:
            raise ScheduleError(f"synthesis: limit must be more than 0 s, got {self.limit_s}")
        check_reach(self.wires)

    def offer(self, plan: SynthesisPlan) -> None:
        """Tell of a plan, for a search that is interrupted."""
        if self.listener is not None:
            self.listener(plan)

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self.wires.ranks


@dataclass(frozen=True, slots=True)
class SynthesisPlan:
    """A schedule, and what its synthesiser expects of it.

    Attributes:
        schedule: The schedule.
        expected_ps: Its time in the synthesiser's model of the network.
        bound_ps: No schedule takes less in that model.
        notes: Figures that the synthesiser is known by: (name, value).
    """

    schedule: Schedule
    expected_ps: int
    bound_ps: int
    notes: tuple[tuple[str, str], ...] = field(default=())

    @property
    def gap(self) -> float:
        """How much longer the schedule takes than the bound: 0.1 is a tenth."""
        return self.expected_ps / self.bound_ps - 1 if self.bound_ps else 0.0


@dataclass(frozen=True, slots=True)
class Synthesiser:
    """One way to search for schedules.

    Attributes:
        name: Its name in the registry.
        title: Its name in texts.
        collectives: The collectives that it can do; the first is meant by its bare name.
        look: Its look in figures.
        solve: Returns the plan of a problem. Raises ScheduleError if it can't.
        takes_sketch: Whether problems may have a sketch.
        takes_chunks: Whether problems may say how many chunks there shall be.
        package: The package that solves for it, of an extra; "": it needs none.
        revision: Counts changes of its results, so that kept ones are not taken for new ones.
    """

    name: str
    title: str
    collectives: tuple[Collective, ...]
    look: Look
    solve: Callable[[Problem], SynthesisPlan]
    package: str = ""
    revision: int = 2
    takes_sketch: bool = False
    takes_chunks: bool = True


def check_reach(wires: RankNetwork) -> None:
    """Refuse networks in which a rank can't reach all others, by way of others or not.

    Raises:
        ScheduleError: Naming two such ranks.
    """
    for pairs in (wires.ways, wires.mirrored.ways):
        onward: dict[int, list[int]] = {}
        for src, dst in pairs:
            onward.setdefault(src, []).append(dst)
        reached, frontier = {0}, [0]
        while frontier:
            for dst in onward.get(frontier.pop(), ()):
                if dst not in reached:
                    reached.add(dst)
                    frontier.append(dst)
        for rank in range(wires.ranks):
            if rank not in reached:
                ends = (0, rank) if pairs is wires.ways else (rank, 0)
                raise ScheduleError(
                    f"synthesis: all ranks must reach one another, got no way from rank {ends[0]} "
                    f"to rank {ends[1]}"
                )
