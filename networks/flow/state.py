"""The state of a flow network: rows of words in the arena, beside those of its solver.

A flow is what a queue pair of a host sends. It has the same number here and in the solver.
"""

from __future__ import annotations

from ringleaf.core.arena import Words
from ringleaf.core.compiled import inline

# The network's block.
NET_AT = 0  # a block of `networks/virtual/state.py`, for its ports, bins, heap and driver
FILLING_AT = 1  # the solver's block
FLOWS = 2
FLOWS_AT = 3  # rows
LINKS_AT = 4  # a row for each port
HOSTS_AT = 5  # by host, the number of its first flow in the list of flows by queue pair
BY_QP_AT = 6  # flows by host and queue pair
STIRRED = 7  # hosts whose agents have been given something to do
STIRRED_AT = 8
IS_STIRRED_AT = 9  # by host
NOW_PS = 10
SUMS = 11  # callback: 2 * flow, plus 1 if a sum has arrived; else its last bit has been carried
FLOW_NETWORK_WORDS = 12

# A flow.
AGENT = 0  # the sender's; 0: switches add up, and the rest is `sums`'
QP = 1  # number of its queue pair
BACK = 2  # the flow of the receiver's queue pair, the other way
TAIL_PS = 3  # from when a message's last bit was carried until it has arrived: delays
STORE_PS = 4  # float: likewise, of each bit of a frame, as all links but the slowest store it
ANSWER_PS = 5  # from when the receiver answers until the sender has the acknowledgement
ANSWERS_EACH = 6  # packets that one acknowledgement is for
REST = 7  # float: bits of the message that are left, at
FROM_PS = 8
RATE = 9  # float: since then
END_PS = 10  # when nothing will be left
BEGAN_PS = 11  # when the message began to be carried
LAST_PS = 12  # when the last message arrived, or will
HELD = 13  # messages that have come, and for which no receive is posted
TOLD = 14  # messages that the sender has been told of
OFFERED = 15  # the messages that the peer has given credit for, by what is on its way
OWNER = 16  # the number of its group
IS_ON = 17  # 1 while a message is carried
WINDOW = 18  # bits in flight at most
IS_CUT = 19  # 1: a link that it needs is down, so that nothing is carried
LATE = 20  # by kind of event: those that come when it is not cut any more
FLOW_WORDS = 24

# A link's direction.
FULL = 0  # float: its rate
REDUCED = 1  # float: the rate that acknowledgements leave
ANSWERED = 2  # flows under way whose acknowledgements go by it
CARRIES = 3  # flows under way that begin there
MOST_QUEUED = 4  # float: the most bits that packets might have in the queue in front of it
IS_OF_HOST = 5  # 1: a host sends there, whose packets wait for one another in the host
LINK_WORDS = 6


@inline
def flow_at(words: Words, at: int, flow: int) -> int:
    """Return the offset of a flow's row."""
    return words[at + FLOWS_AT] + flow * FLOW_WORDS


@inline
def link_at(words: Words, at: int, link: int) -> int:
    """Return the offset of the row of a link's direction."""
    return words[at + LINKS_AT] + link * LINK_WORDS
