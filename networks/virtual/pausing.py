"""Priority flow control of a virtual network, for Python: its tables, and the watch for deadlocks.

Its compiled code is loaded only where PFC is on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import networkx as nx

from ringleaf.core.arena import Store
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual.fabric import PortPlace

if TYPE_CHECKING:
    from ringleaf.networks.virtual.pfc.tables import PortPauses


class Pauses:
    """The pauses of a network's ports.

    Args:
        store: The store that holds the network.
        network: Its block's offset; it must have its tables of PFC.
        places: Its ports, by number.
    """

    def __init__(self, store: Store, network: int, places: Sequence[PortPlace]) -> None:
        from ringleaf.networks.virtual.pfc.deadlock import Lookout

        self._store = store
        self._network = network
        self._places = places
        self._lookout = Lookout(store.arena, network, places)

    @classmethod
    def of(
        cls,
        store: Store,
        network: int,
        graph: nx.Graph[str],
        places: Sequence[PortPlace],
        options: NetworkOptions,
    ) -> Pauses | None:
        """Give a network PFC if its options say so."""
        if options.pfc is None:
            return None
        from ringleaf.networks.virtual.pfc.tables import lay_out_pausing

        longest = max(options.mtu_bytes, 4 * options.lanes)
        lay_out_pausing(store, network, graph, places, options.pfc, longest)
        return cls(store, network, places)

    def next_ps(self, now_ps: int) -> int:
        """Look for a deadlock if it is time, and return when to look next.

        Raises:
            DeadlockError: If there is a deadlock.
        """
        return self._lookout.next_ps(self._store.arena, now_ps)

    def by_port(self, now_ps: int) -> list[PortPauses]:
        """Return what each port has done so far."""
        from ringleaf.networks.virtual.pfc.tables import read_pauses

        return read_pauses(self._store.arena, self._network, self._places, now_ps)
