"""The fabric of a run: ranks that talk to it, and an account of what they do.

It is there before any network is, so that ranks start while networks are loaded, or compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringleaf.core.tensors import Array
from ringleaf.core.units import PS_PER_S
from ringleaf.experiments.bounds.bounds import Bounds
from ringleaf.experiments.runs.loading import load_networks, stage
from ringleaf.experiments.runs.progress import progress
from ringleaf.experiments.setup.cabling import Cabling
from ringleaf.experiments.setup.network import divide_injection, fold_hierarchy, make_graph
from ringleaf.experiments.spec.choices import VIRTUAL
from ringleaf.experiments.workloads.train.account import Account
from ringleaf.experiments.workloads.train.definition import wrong_elements
from ringleaf.experiments.workloads.train.elements import element_type
from ringleaf.experiments.workloads.train.fabric import TrainingRanks
from ringleaf.experiments.workloads.train.parts import MatchedCalls
from ringleaf.experiments.workloads.train.server import FabricServer, Look
from ringleaf.experiments.workloads.train.spec import TrainSpec
from ringleaf.experiments.workloads.train.trace import GrowingTrace
from ringleaf.experiments.workloads.train.ways import CallCarrier, CallCarriers
from ringleaf.networks.outcome import RunResult

if TYPE_CHECKING:
    from ringleaf.experiments.workloads.train.rank_data import FinishedCollective

START_S = 300.0
"""The time that ranks have for their first word, which they say behind PyTorch's import."""

_COPIED = {"float8": 1, "bits8": 1, "bits16": 2}


class Hosting:
    """A fabric for the ranks of a spec.

    Args:
        spec: The spec.
        folder: A private folder, for the socket and shared memory.
        look: As `FabricServer` has it.
    """

    def __init__(
        self, spec: TrainSpec, folder: Path, look: Look = lambda ended, gone: None
    ) -> None:
        self.spec = divide_injection(spec)
        self.account = Account(spec.ranks)
        self.outcomes: list[RunResult] = []
        self.fabric = TrainingRanks(spec.ranks)
        self.trace = GrowingTrace(spec.ranks, self.item_bytes) if spec.chakra else None
        self.server = FabricServer(
            folder,
            spec.ranks,
            self.fabric,
            stall_s=spec.stall_ps / PS_PER_S,
            start_s=START_S,
            note=self.account.note,
            look=look,
            settings={
                "compute": spec.compute,
                "timeline": spec.timeline,
                "compress": spec.compress,
            },
            trace=self.trace,
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
        with progress(0) as shown:
            shown.stage(stage())
            load_networks(self.spec, self.spec.algorithms.names)
        if self.spec.net == VIRTUAL:
            from ringleaf.experiments.workloads.train.emulated import make_carrier

            self.outcomes.extend(make_carrier(self).run())
        else:
            from ringleaf.experiments.workloads.train.live import live_carrier

            with live_carrier(self) as carrier:
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

    # The interface that carriers use.

    def ways(self) -> CallCarriers:
        """Return the ways of calls."""
        hierarchy = fold_hierarchy(self.graph.graph["hierarchy"], self.spec.ranks)
        return CallCarriers(
            self.spec.algorithms, hierarchy, Bounds(self.graph).fabric, Cabling(self.graph)
        )

    def check(
        self,
        collective: MatchedCalls,
        way: CallCarrier,
        inputs: Sequence[Array],
        results: Sequence[Array],
    ) -> int | None:
        """Return the number of wrong elements of a call; None: they are not checked."""
        if not self.spec.check:
            return None
        return wrong_elements(
            collective,
            way,
            inputs,
            results,
            item_bytes=self.item_bytes(collective.call.dtype),
            lanes=self.spec.lanes,
        )

    def note(self, carried: FinishedCollective) -> None:
        """Note a collective that is over."""
        self.account.add(carried, self.fabric.title(carried.collective.group))
