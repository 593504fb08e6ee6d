"""Algorithms: an algorithm is one way to do a collective, and takes the facts of a `Request`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ringleaf.collectives.collective import Collective, check_ranks
from ringleaf.collectives.cost import AlphaBeta, Cost
from ringleaf.collectives.embedding import GridEmbedding
from ringleaf.core.units import format_count
from ringleaf.errors import ScheduleError

if TYPE_CHECKING:
    from ringleaf.collectives.schedule import Schedule
    from ringleaf.collectives.sparse.registry import Method
    from ringleaf.collectives.wires import Network

IDEAL = AlphaBeta()
NOWHERE = GridEmbedding()


@dataclass(frozen=True, slots=True)
class Request:
    """The facts that an algorithm may need; most algorithms use `ranks` only.

    `hierarchy` is the topology's, innermost first; `segments` None leaves the number of
    pieces in a pipeline to the cost model. `servers` nodes help besides the ranks. `embedding`
    has the ranks' places in the topology, for algorithms that know it. `time_ps` returns the
    time of a schedule on the topology, by a model, for those that choose among algorithms.
    `network` makes the wires between ranks, for algorithms that are made for one network; None:
    they are unknown.
    """

    ranks: int
    size_bytes: int = 0
    hierarchy: tuple[int, ...] = ()
    segments: int | None = None
    root: int = 0
    fabric: AlphaBeta = IDEAL
    servers: int = 0
    embedding: GridEmbedding = NOWHERE
    time_ps: Callable[[Schedule], int] | None = None
    network: Network | None = None

    def __post_init__(self) -> None:
        check_ranks("collective", self.ranks)
        if self.size_bytes < 0:
            raise ScheduleError(f"collective: size must be >= 0, got {self.size_bytes}")


class WatchedRequest(Request):
    """A request that notes which of its facts an algorithm looks at."""

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute, and note its name."""
        kept: dict[str, set[str]] = object.__getattribute__(self, "__dict__")
        kept.setdefault("_names", set()).add(name)
        return object.__getattribute__(self, name)

    def has_shown(self, name: str) -> bool:
        """Return whether anybody has looked at a fact."""
        names: set[str] = object.__getattribute__(self, "_names")
        return name in names


@dataclass(frozen=True, slots=True)
class Look:
    """The colour and marker that an algorithm is drawn with.

    Colours are mid tones, which are visible on white and on dark. Colour-blind readers tell
    algorithms by the marker, so algorithms that can be in one figure have different ones.
    """

    color: str
    marker: str  # matplotlib's name


@dataclass(frozen=True, slots=True)
class Algorithm:
    """One way to do a collective.

    Args:
        name: Its name in the registry, by which people choose it.
        collective: The collective that it does.
        title: Its name in texts.
        schedule_for: Returns the schedule for a request.
        cost_of: Returns the closed form's figures for that schedule.
        in_network: Whether it needs switches that aggregate.
        look: Its look in figures, which never changes; None: chosen by its name.
        ranks: The only number of ranks that it is for; None: any.
        placed: Whether each rank has its place by the topology's hierarchy or embedding, so that
            no other order of ranks could suit the topology better.
        sparse: Whether it is for tensors with zeros.
        chooses: Whether it chooses among the others.
        symmetric: Whether its schedules say which ranks do the same
            (`ringleaf.collectives.symmetry`), for numbers of ranks that suit it.
        method: Several exchanges that depend on the data, in place of a schedule: a sparse
            allreduce, which is lossy; `build` and `cost` raise then.
        notes: Lines that tables and proofs say of it, about a file's parts that have no effect.
    """

    name: str
    collective: Collective
    title: str
    schedule_for: Callable[[Request], Schedule]
    cost_of: Callable[[Request], Cost]
    in_network: bool = False
    look: Look | None = None
    ranks: int | None = None
    placed: bool = False
    sparse: bool = False
    chooses: bool = False
    symmetric: bool = False
    method: Method | None = None
    notes: tuple[str, ...] = ()

    def build(
        self,
        ranks: int,
        *,
        size_bytes: int = 0,
        hierarchy: Sequence[int] = (),
        segments: int | None = None,
        root: int = 0,
        fabric: AlphaBeta = IDEAL,
        servers: int = 0,
        embedding: GridEmbedding = NOWHERE,
        time_ps: Callable[[Schedule], int] | None = None,
        network: Network | None = None,
    ) -> Schedule:
        """Return the schedule for `ranks` ranks; one rank alone has an empty one.

        Raises:
            ScheduleError: If an argument does not fit the algorithm, or it makes another schedule.
        """
        request = Request(
            ranks,
            size_bytes,
            tuple(hierarchy),
            segments,
            root,
            fabric,
            servers,
            embedding,
            time_ps,
            network,
        )
        schedule = self.schedule_for(request)
        if (schedule.ranks, schedule.collective) != (ranks, self.collective):
            got = f"{schedule.collective.value} of {format_count(schedule.ranks, 'rank')}"
            raise ScheduleError(
                f"{self.name}: must make a schedule of what it is asked for, "
                f"{self.collective.value} of {format_count(ranks, 'rank')}, got {got}"
            )
        return schedule

    def check_asked(self, asked: Mapping[str, str], ranks: int, **facts: Any) -> None:
        """Refuse facts that someone has asked for, unless the algorithm looks at them.

        Args:
            asked: The text that was typed, by the name of a fact.
            ranks: Number of ranks.
            facts: As those of `build`.

        Raises:
            ScheduleError: If it does not, or as `build` does.
        """
        request = WatchedRequest(ranks, **facts)
        self.schedule_for(request)
        for name, text in asked.items():
            if not request.has_shown(name):
                raise ScheduleError(
                    f"{self.name} {self.collective.value}: has no {name}, got {text}; leave it out"
                )

    def cost(
        self,
        ranks: int,
        *,
        size_bytes: int = 0,
        hierarchy: Sequence[int] = (),
        segments: int | None = None,
        root: int = 0,
        fabric: AlphaBeta = IDEAL,
        servers: int = 0,
        embedding: GridEmbedding = NOWHERE,
        network: Network | None = None,
    ) -> Cost:
        """Return the closed form's figures for the schedule that `build` returns.

        Raises:
            ScheduleError: If an argument does not fit the algorithm.
        """
        request = Request(
            *(ranks, size_bytes, tuple(hierarchy), segments, root, fabric, servers, embedding),
            network=network,
        )
        return self.cost_of(request)
