"""The fabric of a run: the networks that a spec asks for, and ranks that talk to it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ringleaf.experiments.bounds.bounds import Bounds
from ringleaf.experiments.network import (
    common_options,
    divide_injection,
    fold_hierarchy,
    make_graph,
)
from ringleaf.experiments.train.account import Account
from ringleaf.experiments.train.carrier import Carried, Carrier, Teams
from ringleaf.experiments.train.definition import wrong_elements
from ringleaf.experiments.train.elements import element_type
from ringleaf.experiments.train.fabric import Collective, Fabric
from ringleaf.experiments.train.server import Look, Server
from ringleaf.experiments.train.spec import TrainSpec
from ringleaf.experiments.train.ways import Way, Ways
from ringleaf.ina.registry import find_system
from ringleaf.networks.groups import Group
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.tensors import Array
from ringleaf.topologies.graph import hosts
from ringleaf.units import PS_PER_S

WORLD_NUMBER, FIRST_NUMBER = 1, 2
MOST_TEAMS = 254

START_S = 300.0
"""The time that ranks have for their first word: each imports PyTorch, all at the same time."""

_COPIED = {"float8": 1, "bits8": 1, "bits16": 2}


class Hosting:
    """A fabric for the ranks of a spec.

    Args:
        spec: The spec.
        folder: A private folder, for the socket and shared memory.
        look: As `Server` has it.
    """

    def __init__(
        self, spec: TrainSpec, folder: Path, look: Look = lambda ended, gone: None
    ) -> None:
        self.spec = divide_injection(spec)
        self.account = Account(spec.ranks)
        self.outcomes: list[RunResult] = []
        self._fabric = Fabric(spec.ranks)
        self.server = Server(
            folder,
            spec.ranks,
            self._fabric,
            stall_s=spec.stall_ps / PS_PER_S,
            start_s=START_S,
            note=self.account.note,
            look=look,
            settings={
                "compute": spec.compute,
                "timeline": spec.timeline,
                "compress": spec.compress,
            },
        )

    @cached_property
    def graph(self) -> Any:
        """The topology, with a host for each rank at least."""
        spec = self.spec
        return make_graph(spec.model_copy(update={"hosts": spec.hosts or spec.ranks}))

    def run(self) -> None:
        """Carry what ranks call until all have ended.

        Raises:
            BackendError: If a rank dies, or calls something that can't be carried.
        """
        carrier = Carrier(
            self._fabric,
            self._ways(),
            self,
            build=self._build,
            converse=self.server.converse,
            check=self._check,
            note=self._note,
        )
        self.outcomes.extend(carrier.run())

    # The data of ranks.

    def buffer(self, rank: int, name: str) -> Array:
        """Return a rank's buffer."""
        return self.server.buffer(rank, name)

    def item_bytes(self, dtype: str) -> int:
        """Return the size of an element; types that are only copied are known, too."""
        for prefix, size in _COPIED.items():
            if dtype.startswith(prefix):
                return size
        return element_type(dtype).itemsize

    # What the carrier asks for.

    def _ways(self) -> Ways:
        sizes = self.graph.graph["hierarchy"]
        hierarchy = fold_hierarchy(sizes, self.spec.ranks)
        return Ways(self.spec.algorithms, hierarchy, Bounds(self.graph).fabric)

    def _build(self, teams: Teams) -> VirtualNetwork:
        names = hosts(self.graph)
        groups = [Group(WORLD_NUMBER, tuple(names))]
        groups += [
            Group(number, tuple(names[rank] for rank in members), (), find_system(system))
            for number, (system, members) in enumerate(teams, start=FIRST_NUMBER)
        ]
        options = common_options(self.spec)
        return VirtualNetwork(self.graph, options, groups=groups, seed=self.spec.seed)

    def _check(
        self, collective: Collective, way: Way, given: Sequence[Array], results: Sequence[Array]
    ) -> int | None:
        if not self.spec.check:
            return None
        return wrong_elements(
            collective,
            way,
            given,
            results,
            item_bytes=self.item_bytes(collective.call.dtype),
            lanes=self.spec.lanes,
        )

    def _note(self, carried: Carried) -> None:
        self.account.add(carried, self._fabric.title(carried.collective.group))
