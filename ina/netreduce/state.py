"""The state of a NetReduce worker: its own words, its queue pairs' agent, buffers, tensors.

The agent of its queue pairs is an rc agent (`ringleaf.hosts.rc`), which reports to a ring of the
worker's. Messages are numbered through all tensors; number m uses buffers m mod CREDITS.
"""

from __future__ import annotations

from typing import NamedTuple

from ringleaf.core.arena import Arena, Store, Words
from ringleaf.core.compiled import address_of, inline
from ringleaf.core.headers import UDP_DST_AT, put16
from ringleaf.core.views import window
from ringleaf.hosts import rc
from ringleaf.hosts.agent import AGENT_WORDS, make_agent, make_ring
from ringleaf.hosts.rc.state import QP_WORDS, QPS_AT, TEMPLATE_AT
from ringleaf.hosts.rc.wire import HEAD_BYTES
from ringleaf.ina.netreduce.wire import udp_port
from ringleaf.ina.tensors import TENSORS_WORDS, TensorQueue, make_tensors, open_tensors

# The worker's words.
RC = 0  # block of its queue pairs' agent
LANES = 1
PACKETS = 2  # of a full message
SENDS_AT = 3  # in arena.memory: buffers of messages that go out
RECEIVES_AT = 4  # likewise, of sums that come in
POSTED = 5  # messages
SENT = 6
RECEIVED = 7
CURRENT = 8  # number of the tensor that the next message is of
OFFSET = 9  # of that message's elements
MESSAGES = 10  # by buffer: row of the tensor, first element, elements
REPORTS = 11  # the ring that the rc agent reports to
RC_RECEIVE = 12  # addresses of the rc agent's handlers
RC_TRANSMIT = 13
RC_FIRE = 14
TENSORS = 15
OWN_WORDS = TENSORS + TENSORS_WORDS

CREDITS = 4
"""Messages that a worker may have sent whose sums it lacks."""

MESSAGE_WORDS = 3


class NetReduceWorker(NamedTuple):
    """A NetReduce worker: its numbers, its messages in flight, and its tensors."""

    state: Words  # (OWN_WORDS,)
    messages: Words  # (CREDITS, MESSAGE_WORDS), flat
    tensors: TensorQueue


def make_worker(
    store: Store,
    *,
    host: int,
    ring: int,
    job: int,
    lanes: int,
    window: int,
    min_timeout_ps: int,
    rnr_wait_ps: int,
    quiet_ps: int = 0,
) -> int:
    """Return the offset of a worker whose two queue pairs `join_ring` connects.

    Args:
        store: The store that holds its state.
        host: Its host's index.
        ring: Completion ring it reports to.
        job: The job's number, 1 to 255; jobs of one host differ modulo 16 (their UDP ports).
        lanes: Values in a packet.
        window: Packets in flight, at most.
        min_timeout_ps: Floor of the queue pairs' timeout.
        rnr_wait_ps: Time that a queue pair waits where no receive was posted.
        quiet_ps: Time for which the network may answer nothing although nothing is lost.
    """
    port = udp_port(job)
    at = make_agent(store, OWN_WORDS, host=host, ring=ring, udp_ports=(port, port))
    reports = make_ring(store, rc.RING)
    block = rc.make_rc(
        store,
        host=host,
        ring=reports,
        mtu=4 * lanes,
        window=window,
        min_timeout_ps=min_timeout_ps,
        rnr_wait_ps=rnr_wait_ps,
        quiet_ps=quiet_ps,
        udp_port=port,
    )
    rc.add_qps(store, block, 2)
    packets = max(1, 2 * window // CREDITS)  # so that credits are for two windows
    size = CREDITS * packets * 4 * lanes
    sends_at, receives_at = (store.register_memory(size) for _ in range(2))
    messages_at = store.allocate("words", CREDITS * MESSAGE_WORDS)
    make_tensors(store, at + AGENT_WORDS + TENSORS)
    words = store.arena.words
    state = words[at + AGENT_WORDS :][:OWN_WORDS]
    state[RC], state[LANES], state[PACKETS] = block, lanes, packets
    state[SENDS_AT], state[RECEIVES_AT], state[MESSAGES] = sends_at, receives_at, messages_at
    state[REPORTS] = reports
    for word, function in (
        (RC_RECEIVE, rc.receive),
        (RC_TRANSMIT, rc.transmit),
        (RC_FIRE, rc.fire_timer),
    ):
        state[word] = address_of(function)
    return at


def join_ring(store: Store, job: int, ends: list[rc.QpEnd]) -> None:
    """Connect queue pairs, and have their packets go to the job's UDP port."""
    rc.connect_qps(store, ends)
    words = store.arena.words
    for end in ends:
        qp = int(words[end.agent + QPS_AT]) + end.number * QP_WORDS
        head = window(store.arena.bytes, int(words[qp + TEMPLATE_AT]), HEAD_BYTES)
        put16(head, UDP_DST_AT, udp_port(job))


@inline
def open_worker(arena: Arena, at: int) -> NetReduceWorker:
    """Return the worker of the agent at word `at`, as views of the arena."""
    own = at + AGENT_WORDS
    return NetReduceWorker(
        window(arena.words, own, OWN_WORDS),
        window(arena.words, arena.words[own + MESSAGES], CREDITS * MESSAGE_WORDS),
        open_tensors(arena, own + TENSORS),
    )
