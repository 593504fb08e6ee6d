"""Packets that get a wrong bit on their way, with nothing on the way that notices.

A bit that changes on a wire is found by Ethernet's check at the next device, which drops the frame:
that is a loss. Memory of a device can change one behind that check and before the next one is
written. Only checks from end to end see that, such as the ICRC of RoCEv2 (`hosts/rc/icrc.py`): a
damaged packet goes on with its ICRC, and its receiver discards it.

The bit is one of those behind UDP's header that the ICRC covers. One before it would be found by
IPv4's checksum at the next switch, which is a loss again, or by the ICRC as well.

Source:
    Stone and Partridge, "When the CRC and TCP Checksum Disagree", SIGCOMM 2000, on such packets
    and where they come from.
"""

from __future__ import annotations

from collections.abc import Sequence

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena, Store
from ringleaf.core.compiled import address_of, handler, inline
from ringleaf.core.headers import UDP_PAYLOAD_AT
from ringleaf.core.packets import open_packet, pin_all, widen_pool
from ringleaf.core.views import window
from ringleaf.hosts.nic.state import UDP_PORT as NIC_PORT
from ringleaf.hosts.rc.icrc import get_icrc, icrc_end, icrc_of, put_icrc
from ringleaf.hosts.rc.wire import ICRC_BYTES, NOTICES_AT, UDP_PORT
from ringleaf.networks.virtual.lines import draw, happens
from ringleaf.networks.virtual.losses import BLOCK_WORDS, DAMAGED, ROW_WORDS, SHARE
from ringleaf.networks.virtual.stations import udp_port


def lay_out_damage(store: Store, networks: Sequence[int], head_bytes: int) -> None:
    """Have a network's ports damage packets, as `losses` says.

    Args:
        store: The store that holds it.
        networks: The blocks of its regions.
        head_bytes: Room for a whole packet; packets' heads get it if they don't have it.
    """
    widen_pool(store, head_bytes=head_bytes, field_count=0, lane_count=0)
    ports = int(store.arena.words[networks[0] + s.PORTS])
    block = store.allocate("words", BLOCK_WORDS + ports * ROW_WORDS)
    store.arena.words[block] = address_of(damage)
    for at in networks:
        store.arena.words[at + s.DAMAGE_AT] = block


@inline
def has_icrc(arena: Arena, packet: int) -> bool:
    """Return whether a packet is RoCEv2's; nobody looks at what is in the others."""
    port = udp_port(arena, packet)
    return port in (UDP_PORT, NIC_PORT)


@inline
def flip(arena: Arena, packet: int, number: int) -> None:
    """Change one of the bits that the ICRC covers behind UDP's header, by a random number.

    The packet gets the ICRC that it has had all the time, and lies in its head from then on.
    """
    pin_all(arena, packet)
    head = open_packet(arena, packet).head
    end = icrc_end(head)
    if get_icrc(head, end) == 0:
        put_icrc(head, end, icrc_of(head, end))
    covered = end - ICRC_BYTES - UDP_PAYLOAD_AT - 1  # bytes, without that of the BTH's notices
    bit = number % (8 * covered)
    at = UDP_PAYLOAD_AT + (bit >> 3)
    if at >= NOTICES_AT:
        at += 1
    head[at] = int(head[at]) ^ 1 << (bit & 7)


@handler
def damage(arena: Arena, at: int, packed: int, _now_ps: int) -> int:
    """Damage a packet to which something happens, or leave it to be lost.

    Args:
        arena: The network's memory.
        at: The network's block.
        packed: The packet's number, and above PACKET_BITS its port's.
        _now_ps: The time.

    Returns:
        1 if it goes on, 0 if it is lost.
    """
    words = arena.words
    packet, port = packed & (1 << s.PACKET_BITS) - 1, packed >> s.PACKET_BITS
    row = words[at + s.DAMAGE_AT] + BLOCK_WORDS + port * ROW_WORDS
    random = window(arena.fields, words[at + s.RANDOM_AT] + port, 1)
    if not happens(random, words[row + SHARE]):
        return 0
    if has_icrc(arena, packet):
        words[row + DAMAGED] += 1
        flip(arena, packet, draw(random))
    return 1
