"""Priority flow control of a live process's lines: pause frames that go over real interfaces.

Hosts' and switches' processes handle them as virtual time does (`networks/virtual/pfc`). Nobody
else does: the kernel, and programs on hosts that are not Ringleaf's, know nothing of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena, Store
from ringleaf.core.packets import HEAD_BYTES
from ringleaf.core.pausing import parse_pausing
from ringleaf.core.units import PS_PER_MS, PS_PER_S
from ringleaf.errors import ConfigError
from ringleaf.networks.virtual.state import Rows, open_network

if TYPE_CHECKING:
    from ringleaf.networks.live.engine import LinkEnd

LATE_PS = 50 * PS_PER_MS
"""The time for which the process at the other end may not be scheduled (chosen)."""


def lay_out_pausing(
    store: Store, network: int, lines: Sequence[LinkEnd], addresses: Sequence[int]
) -> None:
    """Give a process's network priority flow control, if its lines have it.

    Args:
        store: The store that holds the network.
        network: Its block's offset.
        lines: Its lines, by port.
        addresses: Their interfaces' MAC addresses.

    Raises:
        ConfigError: If they differ in it.
    """
    texts = sorted({line.pfc for line in lines})
    if len(texts) > 1:
        raise ConfigError(f"pfc: must be the same on all lines of a process, got {texts}")
    pausing = parse_pausing(texts[0], "pfc") if texts and texts[0] else None
    if pausing is None:
        return
    from ringleaf.networks.virtual.pfc.tables import lay_out

    net = open_network(store.arena, network)
    longest = int(store.arena.words[HEAD_BYTES])
    macs = [*addresses, *[0] * (len(net.ports) - len(addresses))]
    lay_out(store, network, macs, pausing, headroom_bytes(net.ports, longest))


def asked(arena: Arena, network: int) -> list[int]:
    """Return the number of times that each port asked the other end to pause a class."""
    net = open_network(arena, network)
    if not net.state[s.PFC_AT]:
        return [0] * len(net.ports)
    from ringleaf.networks.virtual.pfc.layout import PAUSES
    from ringleaf.networks.virtual.pfc.tables import pause_rows

    counts: list[int] = pause_rows(arena, network)[:, PAUSES].tolist()
    return counts


def headroom_bytes(ports: Rows, longest_bytes: int) -> npt.NDArray[np.int64]:
    """Return the headroom of each port, (ports,).

    It is that of virtual time on a link that is alike in both directions, and the bytes that come
    in `LATE_PS`.

    Args:
        ports: (ports, PORT_WORDS) the process's table of ports; sockets' ports have no rate.
        longest_bytes: Length of the longest frame, without FCS.
    """
    from ringleaf.networks.virtual.pfc.tables import headroom_bytes as of_links

    alike = ports.copy()
    others = alike[:, s.RATE_BPS] == 0
    for word in (s.RATE_BPS, s.DELAY_PS):
        alike[others, word] = ports[ports[others, s.PEER], word]
    late = np.ceil(alike[:, s.RATE_BPS] / 8 * (LATE_PS / PS_PER_S)).astype(np.int64)
    headroom: npt.NDArray[np.int64] = of_links(alike, longest_bytes) + late
    return headroom
