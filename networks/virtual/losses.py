"""Packets to which something happens on a link: they are lost, or a bit changes (`damage`).

One number drawn says whether something happens to a packet, so that links without damage have
nothing more to look at; another one, what.
"""

from __future__ import annotations

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store

# The block at DAMAGE_AT of the network's: the handler's address, then a row for each port.
BLOCK_WORDS = 8

# A port's row.
SHARE = 0  # probability, in units of 2**-53, that what happens to a packet is damage, and no loss
DAMAGED = 1  # packets
ROW_WORDS = 2


def set_losses(store: Store, network: int, port: int, loss: float, share: float) -> None:
    """Set what happens to a port's packets.

    Args:
        store: The store that holds the network.
        network: Its block.
        port: The port's number.
        loss: The probability that a packet is lost.
        share: The probability that one that is not lost is damaged.
    """
    words = store.arena.words
    damaged = share * (1 - loss)
    words[s.port_row(words, network, port) + s.LOSS] = round((loss + damaged) * s.PROBABILITY_ONE)
    block = int(words[network + s.DAMAGE_AT])
    if block:
        part = damaged / (loss + damaged) if damaged else 0.0
        row = block + BLOCK_WORDS + port * ROW_WORDS
        words[row + SHARE] = round(part * s.PROBABILITY_ONE)
