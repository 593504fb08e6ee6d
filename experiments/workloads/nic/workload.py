"""The form of a workload on NICs, as its command, files, figures and report need it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from ringleaf.experiments.records.columns import Column
from ringleaf.experiments.workloads.nic.spec import NicSpec
from ringleaf.hosts.nic.registry import OFFLOADS

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.figure import Figure

    from ringleaf.experiments.workloads.nic.network import MakeNicNetwork
    from ringleaf.networks.outcome import RunResult

SomeSpec = TypeVar("SomeSpec", bound=NicSpec)

Row = Mapping[str, Any]
"""A row of results: one system, with values by name. All have `wrong`, the number of elements that
differ from the reference, and those of `packets_of`."""


LONGEST = "longest_ps"
"""The value of a row that is the time of its longest pass, also of those that nobody measures."""


def packets_of(outcomes: Sequence[RunResult]) -> dict[str, int]:
    """Return what a row says of packets, of all passes that are measured."""
    names = ("retransmissions", "drops", "lost", "corrupted", "packet_hops")
    return {name: sum(getattr(each, name) for each in outcomes) for name in names}


def count_hosts(graph: nx.Graph[str]) -> int:
    """Return the number of a topology's hosts."""
    from ringleaf.topologies.graph import hosts  # loads NetworkX

    return len(hosts(graph))


class NicWorkload(ABC, Generic[SomeSpec]):
    """A workload: what it compares, and how that looks. It has no state.

    Attributes:
        name: Its name, as on the command line.
        spec: Its options.
        columns: The columns of its table.
        captions: Titles and captions of its figures, by name.
        notes: Lines that explain the table.
    """

    name: ClassVar[str]
    spec: type[SomeSpec]
    columns: ClassVar[Sequence[Column]]
    captions: ClassVar[Mapping[str, tuple[str, str]]]
    notes: ClassVar[Sequence[str]]

    @abstractmethod
    def check(self, spec: SomeSpec, hosts: int) -> None:
        """Check that so many hosts can do it.

        Raises:
            ConfigError: If not.
        """

    @abstractmethod
    def about(self, spec: SomeSpec, graph: nx.Graph[str]) -> list[str]:
        """Return lines on the workload."""

    @abstractmethod
    def run(self, spec: SomeSpec, graph: nx.Graph[str], connect: MakeNicNetwork) -> Iterator[Row]:
        """Yield a row for each system that is compared."""

    @abstractmethod
    def name_of(self, row: Row) -> str:
        """Return what lines call a row."""

    @abstractmethod
    def draw(self, rows: Sequence[Row], clock: str) -> dict[str, Callable[[], Figure]]:
        """Return functions that draw its figures, by name; `clock` is that of times."""

    def count(self, spec: SomeSpec) -> int:
        """Return the number of rows."""
        del spec
        return 1


def workload_of(name: str) -> NicWorkload[Any]:
    """Return the workload of an offload.

    Raises:
        ConfigError: If there is none of that name.
    """
    workload: NicWorkload[Any] = import_module(OFFLOADS.find(name).workload).WORKLOAD
    return workload
