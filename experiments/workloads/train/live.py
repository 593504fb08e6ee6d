"""A live network that carries the calls of ranks: Mininet's, with P4 switches.

Calls of several process groups are on the network at a time, as they are in virtual time. While
something is on it, the ranks' clock is the machine's; while nothing is, it stands, or leaps to the
next call. Hosts are forked with all that they will need; when ranks call something new, they are
forked again, as soon as nothing is under way.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ringleaf.core.arena import Store
from ringleaf.core.units import PS_PER_S
from ringleaf.experiments.setup.network import common_options
from ringleaf.experiments.setup.testbed import open_testbed
from ringleaf.experiments.workloads.train.carrier import CollectiveCarrier, PlayingNetwork, Teams
from ringleaf.experiments.workloads.train.emulated import make_groups
from ringleaf.experiments.workloads.train.planned_carrier import AheadCarrier
from ringleaf.hosts.executor.build import Executors
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.operation import CollectiveOperation
from ringleaf.networks.mininet.network import LiveTestbed, MininetNetwork
from ringleaf.networks.outcome import RunResult

if TYPE_CHECKING:
    from ringleaf.experiments.workloads.train.hosting import Hosting


@contextmanager
def live_carrier(hosting: Hosting) -> Iterator[LiveCarrier]:
    """Yield what carries the calls of a fabric's ranks live; the network is gone at the end.

    Raises:
        ConfigError: If the machine lacks something.
        BackendError: If the network can't be brought up.
    """
    with open_testbed(hosting.spec, hosting.graph) as testbed:
        yield LiveCarrier(hosting, testbed)


class LiveNetwork:
    """A Mininet network as a carrier sees it: one play after the other."""

    def __init__(self, network: MininetNetwork) -> None:
        self._network = network
        self.now_ps = 0
        self.executors: dict[Hashable, Executors] = {}  # by need, made so far

    @property
    def endpoints(self) -> Endpoints:
        """Its hosts."""
        return self._network.endpoints

    @property
    def store(self) -> Store:
        """Their store."""
        return self._network.store

    def play(self, director: CollectiveCarrier) -> RunResult:
        """Let a carrier run collectives until it has no more to start, or needs other hosts."""
        assert isinstance(director, LiveCarrier)
        return self._network.lead(director)

    def close(self) -> None:
        """End it; the testbed stays up."""
        self._network.close()


class LiveCarrier(AheadCarrier):
    """Carries the collectives of ranks on a testbed.

    Args:
        hosting: The ranks, their data, and the account.
        testbed: The network, without hosts.
    """

    def __init__(self, hosting: Hosting, testbed: LiveTestbed) -> None:
        super().__init__(
            hosting.fabric,
            hosting.ways(),
            hosting,
            build=self._build_live,
            converse=hosting.server.converse,
            check=hosting.check,
            note=hosting.note,
        )
        self._hosting, self._testbed = hosting, testbed
        self._live: LiveNetwork | None = None  # the last

    def start(self, now_ps: int) -> None:
        """Set the network's clock as time begins."""
        self._tell_time(now_ps)

    def reach(self, now_ps: int) -> None:
        """Set the network's clock, and let the ranks go on up to a time."""
        self._tell_time(now_ps)
        super().reach(now_ps)

    def finish(self, operation: CollectiveOperation, now_ps: int) -> None:
        """Set the network's clock, and give a collective's results to its ranks."""
        self._tell_time(now_ps)
        super().finish(operation, now_ps)

    def _tell_time(self, now_ps: int) -> None:
        assert self._live is not None
        self._live.now_ps = now_ps

    def _made(self) -> dict[Hashable, Executors]:
        assert self._live is not None
        return self._live.executors

    def _build_live(self, teams: Teams) -> PlayingNetwork:
        """Return a network for these groups: the last one, if none aggregates.

        Hosts begin anew with each play, so switches that aggregate must do so, too.
        """
        if self._live is None or teams:
            spec = self._hosting.spec
            network = MininetNetwork(
                self._testbed,
                common_options(spec),
                seed=spec.seed,
                stall_s=spec.stall_ps / PS_PER_S,
                groups=make_groups(self._hosting.graph, teams),
            )
            self._live = LiveNetwork(network)
        self._live.now_ps = 0
        return self._live
