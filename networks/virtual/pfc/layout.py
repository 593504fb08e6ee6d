"""The words of priority flow control.

Where it is on, its own handler of events does the loop's work, and is called by address. Where it
is off, the loop looks at one word of the network's block.
"""

from __future__ import annotations

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Words
from ringleaf.core.compiled import inline

# The block, at PFC_AT of the network's, behind PFC_HANDLE and PFC_SERVE. Regions share it.
XOFF = 4  # bytes
XON = 5
ROWS_AT = 6
BLOCK_WORDS = 8

# A port's row.
PAUSED = 0  # a bit per class: the other end has asked for a pause
ASKED = 1  # a bit per class: this port has asked the other end for a pause, or is about to
UNTOLD = 2  # a bit per class: the other end is yet to be told the bit of ASKED
HEADROOM = 3  # bytes per class above XOFF
NIC_AT = 4  # of a host: queues of packets that its agents gave away and that may not go
MAC = 5  # source address of its frames
PAUSES = 6  # times that it has asked for a pause of a class
SINCE_PS = 7  # when PAUSED was last 0
PAUSED_PS = 8  # time in which a class was paused, until then
HELD = 16  # by class: bytes that came by this port and are in queues
PEAKS = 24  # by class: the most of these
HIDDEN = 32  # by class: lengths of paused queues while another one is chosen
ROW_WORDS = 40


@inline
def pause_row(words: Words, at: int, port: int) -> int:
    """Return the offset in `arena.words` of a port's words of flow control."""
    return words[words[at + s.PFC_AT] + ROWS_AT] + port * ROW_WORDS
