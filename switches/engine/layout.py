"""The layout of a switch's state that the traffic manager and the networks must know.

Everything else of a P4 program's state is laid out by the generator.
"""

from __future__ import annotations

# A packet's fields in its row of `arena.fields`: v1model's standard metadata first, in this
# order in every program, so that compiled code which knows no program can read them.
INGRESS_PORT = 0
EGRESS_SPEC = 1
EGRESS_PORT = 2
INSTANCE_TYPE = 3
INGRESS_LENGTH = 4  # bytes when it came to ingress, which counters count
ENQ_TIMESTAMP = 5  # microseconds, as in BMv2
ENQ_QDEPTH = 6  # packets
DEQ_TIMEDELTA = 7  # microseconds
DEQ_QDEPTH = 8  # packets
INGRESS_GLOBAL_TIMESTAMP = 9  # microseconds
EGRESS_GLOBAL_TIMESTAMP = 10  # microseconds
MCAST_GRP = 11
EGRESS_RID = 12
CHECKSUM_ERROR = 13
PARSER_ERROR = 14
PRIORITY = 15
REQUESTS = 16  # clones and resubmission asked for, as BMv2's packet register 1: 16 bits each
TRUNCATE_LEN = 17  # 0: whole packet; else 1 more than the bytes to keep
PARSED_LEN = 18  # bytes of the head that the parser took
STANDARD_FIELDS = 24  # a program's own fields start here

# Bits of REQUESTS.
CLONE_BITS = 0xFFFF  # 0: none; else session id + 1
TWINNED = 1 << 16  # PSA: the clone is in the packet's row; it has its session's class of service
KEEPS_RID = 1 << 17  # the clone's field list has egress_rid
RESUBMIT_SHIFT = 48  # 0: no; else the field list to keep

CLASSES = 8  # of service, of a port's queues

KEPT_RID = -1  # of a clone session's replica: egress_rid is that of the packet's field list

DROP_PORT = 511  # the value that mark_to_drop writes to egress_spec in BMv2
LAST_PORT = DROP_PORT - 1  # ports have 9 bits in v1model

# A switch's block of `arena.words`.
PORT_COUNT = 0  # ports are 1 .. PORT_COUNT
FIRST_PORT = 1  # the network's number of port 1
GROUPS_AT = 2  # per multicast group: offset of its members, their count
GROUP_COUNT = 3  # group ids are below this; members are pairs (port, egress_rid)
CLONES_AT = 4  # per clone session: place and count of replicas, bytes to keep (0: all), class
CLONE_COUNT = 5
RANDOM_AT = 6  # offset in arena.fields of this switch's random state
DIGESTS_AT = 7  # offset in arena.fields of its digests' queue
LOOPED = 8  # packets dropped because they came round too often
SWITCH_WORDS = 16  # the program's own words start here

# The flags that an egress handler returns, ored.
SEND = 1  # the packet leaves
CLONE = 2  # it has made a twin, which goes where its clone session says
ROUND = 4  # the packet goes to ingress again; never with SEND

# Values of `instance_type` (`simple_switch.h`, `PktInstanceType`).
NORMAL = 0
INGRESS_CLONE = 1
EGRESS_CLONE = 2
RECIRCULATED = 4
REPLICATION = 5
RESUBMITTED = 6

AGAIN_PORT = -1  # in the outbox: the packet goes to ingress again
ROUND_PORT = 0xFFFFFFFA  # likewise: to egress, whose flags say what follows (PSA_PORT_RECIRCULATE)
MOST_PASSES = 512  # a packet that comes round more often is dropped, and counted in LOOPED
