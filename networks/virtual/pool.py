"""The pool of packets that a network's hosts and switches share."""

from __future__ import annotations

from collections.abc import Collection

from ringleaf.core.arena import Store
from ringleaf.core.faults import CORRUPT
from ringleaf.core.packets import make_pool
from ringleaf.hosts.rc.wire import ICRC_BYTES
from ringleaf.networks.options import NetworkOptions
from ringleaf.switches.program import Program

POOL_PACKETS = 1 << 16  # those that were never used take no memory
POOL_VECTORS = 8192
LEAST_HEAD_BYTES = 128  # the size of hosts' headers


def lay_out_pool(store: Store, programs: Collection[Program], options: NetworkOptions) -> int:
    """Make a store's pool, and return the most bytes that a packet may have.

    Packets whose bytes are recorded, or change, lie in their heads as a whole.

    Args:
        store: The network's store.
        programs: The programs that its switches run.
        options: Its options.
    """
    head_bytes = max(LEAST_HEAD_BYTES, *(each.head_bytes for each in programs))
    recorded_bytes = head_bytes + max(options.mtu_bytes, 4 * options.lanes)
    whole_bytes = recorded_bytes + ICRC_BYTES
    if any(each.kind == CORRUPT for each in options.faults):
        head_bytes = whole_bytes
    elif options.record is not None:
        head_bytes = recorded_bytes
    make_pool(
        store,
        size=POOL_PACKETS,
        vectors=POOL_VECTORS,
        head_bytes=head_bytes,
        field_count=max(each.field_count for each in programs),
        lane_count=max(each.lane_count for each in programs),
    )
    return whole_bytes
