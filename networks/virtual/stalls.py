"""The end of a network's runs in which nothing gets through any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import networkx as nx

from ringleaf.core.arena import Store
from ringleaf.errors import BackendError
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.joining import pause_stretch
from ringleaf.networks.endpoints.operation import CollectiveOperation
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import Forbidden, forbidden_by, tell_forbidden
from ringleaf.networks.virtual.circling import Circling
from ringleaf.networks.virtual.patience import Patience, limit_ps, probes_of
from ringleaf.switches.switch import Switch
from ringleaf.topologies.routing import most_links


class Stalls:
    """What a network knows of stalls: how long they are, who waits in them, and what helps.

    Args:
        graph: The topology.
        options: The network's options.
        store: The store that holds its agents.
        endpoints: Its hosts.
        networks: Offsets of its regions' blocks.
        rtt_ps: The longest round trip.
        switches: Its switches, by name.
    """

    def __init__(
        self,
        graph: nx.Graph[str],
        options: NetworkOptions,
        store: Store,
        endpoints: Endpoints,
        networks: Sequence[int],
        rtt_ps: int,
        switches: Mapping[str, Switch],
    ) -> None:
        self._graph = graph
        self._options = options
        self._store = store
        self._endpoints = endpoints
        self._networks = networks
        self._rtt_ps = rtt_ps
        self._switches = switches

    @cached_property
    def limit_ps(self) -> int:
        """The time without progress that makes a stall."""
        connections = self._endpoints.connections
        return pause_stretch(self._graph, self._options.pfc) * limit_ps(
            self._rtt_ps,
            timeout_ps=connections.longest_timeout_ps,
            quiet_ps=connections.longest_quiet_ps,
            probes=probes_of(self._options.loss, most_links(self._graph)),
        )

    def patience(self, now_ps: int) -> Patience:
        """Return a watch on the progress of all groups from now on."""
        groups = range(len(self._endpoints.groups))
        agents = [self._endpoints.agents_of(group) for group in groups]
        circling = Circling(self._store, self._networks)
        return Patience(
            self._store, agents, limit_ps=self.limit_ps, now_ps=now_ps, circling=circling
        )

    def check(
        self, patience: Patience, under_way: Sequence[CollectiveOperation], now_ps: int
    ) -> None:
        """Raise an error if operations under way have stalled.

        Raises:
            BackendError: Naming who waits for whom, and what to do.
        """
        stalled = patience.stalled(under_way, now_ps)
        if stalled:
            remedy = "--pcap shows where packets end"
            if self._options.faults:
                way = "" if self._options.reroute_ps is not None else ", or add --reroute"
                remedy = f"let what is down come back, like 's0 down for 1ms'{way}"
            named = [(each, self._endpoints.groups[each.group].nodes) for each in stalled]
            remedies = filter(None, (tell_forbidden(self.forbidden()), remedy))
            raise BackendError(patience.complaint(named, "; ".join(remedies)))

    def forbidden(self) -> Forbidden:
        """Return the packets so far that switches dropped as their programs forbid them."""
        return forbidden_by({name: each.forbidden() for name, each in self._switches.items()})
