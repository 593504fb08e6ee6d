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
COUNTED = 12  # flows whose bytes are yet to be counted on links
COUNTED_AT = 13
QUEUED = 14  # links with queues
STAMP = 15  # the number of the last time that queues were looked for
MET_FLOWS = 16  # flows that queues may concern, since then
MET_FLOWS_AT = 17
MET_LINKS = 18  # links that may have queues, likewise; of hosts, those that flows share
MET_LINKS_AT = 19
FROM_FLOW = 20  # of the former, the first one that is solved now
FROM_LINK = 21
HAS_TURNS = 22  # 1: flows of hosts that send several messages may have queues, too
HAS_QUEUES = 23  # 1: links may have queues; 0: there are too many flows to fit them to
FLOW_NETWORK_WORDS = 24

# A flow: a line of the cache each for what all events look at, what a message's end needs, what its
# answers need, bytes, windows, and queues.
AGENT = 0  # the sender's; 0: switches add up, and the rest is `sums`'
QP_AT = 1  # the words of its queue pair
BACK = 2  # the flow of the receiver's queue pair, the other way
IS_CUT = 3  # 1: a link that it needs is down, so that nothing is carried
IS_ON = 4  # 1 while a message is carried
END_PS = 5  # when nothing will be left
RATE = 6  # float
REST = 7  # float: bits of the message that are left, at
FROM_PS = 8  # since when it has its rate
EXPECTED_PS = 9  # of its next END event, which comes no later than it ends; `FOREVER_PS`: none
TAIL_PS = 10  # from when a message's last bit was carried until it has arrived: delays
STORE_PS = 11  # float: likewise, of each bit of a frame, as all links but the slowest store it
LAST_PS = 12  # when the last message arrived, or will
PAYLOAD_BYTES = 13  # of a full packet
ANSWERS_EACH = 14  # packets that one acknowledgement is for
QP = 15  # number of its queue pair
ANSWER_PS = 16  # from when the receiver answers until the sender has the acknowledgement
HELD = 17  # messages that have come, and for which no receive is posted
TOLD = 18  # messages that the sender has been told of
OFFERED = 19  # the messages that the peer has given credit for, by what is on its way
BIN_FROM_PS = 20  # of the bin whose bytes are not yet counted on links
BIN_UNTIL_PS = 21
BIN_BYTES = 22
BIN_ANSWERS_BYTES = 23
COUNTED_BYTES = 24  # in all, but not yet on links
COUNTED_PACKETS = 25  # above 0: it is in the list of flows with such bytes
COUNTED_ANSWERS = 26
CROSSED = 27  # links on its way, times the flows that it stands for
LATE = 28  # by kind of event: those that come when it is not cut any more
SIZE = 32  # float: bits of the message that is carried, or was
BEFORE = 33  # float: bits without an acknowledgement when it began
HAS_WINDOW = 34  # 1: what is in flight is its window
IDLE_PS = 35  # since when nothing is carried
EMPTY_PS = 36  # float: the round trip of a packet and its acknowledgement, alone
LEAVES = 37  # float: the rate at which its host sends it, alone
WINDOW = 38  # bits in flight at most
OWNER = 39  # the number of its group
FLOW_STAMP = 40  # when it was among those met
ALONE = 41  # float: the rate that its links have for it alone
FITTING = 42  # float: the rate that fits queues
WISH = 43  # float: likewise, before its host's link is shared
BY_WINDOW = 44  # float: its window in each round trip; 0: it has none
WAIT_PS = 45  # float: queues on its way and that of its acknowledgements
WAITS = 46  # their number
ANSWERS_CROSSED = 47  # links on the way of its acknowledgements, likewise
SENDS = 48  # float: the rate at which its host sends it, as long as its window is not used up
BACKLOG = 49  # float: bits sent and not carried, when it got its rate
FULL_PS = 50  # when its window will be used up, as it looks now
BEGAN_PS = 51  # when the message began to be carried
PART_BYTES = 52  # of the message, that are counted already by time
PART_PS = 53  # up to when
FLOW_WORDS = 56

# A link's direction.
FULL = 0  # float: its rate
REDUCED = 1  # float: the rate that acknowledgements leave
ANSWERED = 2  # flows under way whose acknowledgements go by it
CARRIES = 3  # flows under way that begin there
MOST_QUEUED = 4  # float: the most bits that packets might have in the queue in front of it
IS_OF_HOST = 5  # 1: a host sends there, whose packets wait for one another in the host
QUEUE_PS = 6  # float: how long packets wait there
LINK_STAMP = 7  # when it was among those met
SUM = 8  # float: of its flows' rates
CAME = 9  # float: likewise, in the round before
WAS_PS = 10  # float: its queue, before it was last changed
TURN = 11  # float: what a host sends of each flow whose window is not used up
TURN_STAMP = 12  # when that was worked out: in which solution of rates
WAS_OVER = 13  # float: what it had too much then
LOOK_STAMP = 14  # when it was looked at whether it may have a queue
LINK_WORDS = 16


@inline
def flow_at(words: Words, at: int, flow: int) -> int:
    """Return the offset of a flow's row."""
    return words[at + FLOWS_AT] + flow * FLOW_WORDS


@inline
def link_at(words: Words, at: int, link: int) -> int:
    """Return the offset of the row of a link's direction."""
    return words[at + LINKS_AT] + link * LINK_WORDS
