"""A carrier whose network has rooms for the calls known so far, made before it plays.

Hosts that are processes can't be given more while they run. A call that is new ends the play, as
soon as nothing is under way, and the next one has a room for it, too. So iterations that call the
same again need one play in all.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ringleaf.experiments.workloads.train.calls import PAIRED
from ringleaf.experiments.workloads.train.carrier import CollectiveCarrier
from ringleaf.experiments.workloads.train.fabric import TrainingRanks
from ringleaf.experiments.workloads.train.parts import MatchedCalls
from ringleaf.experiments.workloads.train.rank_data import Data
from ringleaf.experiments.workloads.train.rooms import FixedLodgings, Lodging, NetworkNeed
from ringleaf.experiments.workloads.train.ways import CallCarrier, CallCarriers
from ringleaf.hosts.executor.build import Executors
from ringleaf.networks.endpoints.operation import Combine


class AheadCarrier(CollectiveCarrier):
    """Carries collectives in rooms that are made beforehand.

    Arguments are as for `CollectiveCarrier`.
    """

    def __init__(
        self, fabric: TrainingRanks, ways: CallCarriers, data: Data, **others: Any
    ) -> None:
        super().__init__(fabric, ways, data, **others)
        self._needs: dict[Hashable, NetworkNeed] = {}
        self._housed = -1  # needs that the network has rooms for; -1: there is no network yet
        self._channels: dict[object, int] = {}

    def build(self) -> list[tuple[Executors, Combine]]:
        """Return the executors of all operations that there may be; as `Planner` has it."""
        assert isinstance(self._lodging, FixedLodgings)
        return self._lodging.built

    def _made(self) -> dict[Hashable, Executors]:
        """Return the executors that the network has already, by need; others are added."""
        return {}

    def _lodge(self) -> Lodging:
        self._housed = max(self._housed, 0)
        self._look_ahead()  # again, as needs are known only where there is a network
        self._housed = len(self._needs)
        return FixedLodgings(self._network.endpoints, list(self._needs.values()), self._made())

    @property
    def _has_outgrown(self) -> bool:
        is_new = self._housed >= 0 and len(self._needs) > self._housed
        return super()._has_outgrown or is_new

    def _want(self, way: CallCarrier, collective: MatchedCalls) -> bool:
        wants_team = super()._want(way, collective)
        if self._housed < 0 or collective.is_of_one or not way.elements:
            return wants_team
        _, need = self._need(collective, way)
        is_new = need.key not in self._needs
        self._needs.setdefault(need.key, need)
        return wants_team or is_new

    def _channel(self, collective: MatchedCalls, place: int) -> int:
        """Return the channel of a row of calls, of which one at a time is under way."""
        ends = collective.members if collective.call.kind in PAIRED else ()
        return self._channels.setdefault((collective.group, ends), len(self._channels))
