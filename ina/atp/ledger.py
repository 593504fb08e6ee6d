"""The state of a parameter server: its own words, and an entry per block that may be under way.

A worker may be a window ahead of another, and results are kept until all workers have them, so
there are two windows of entries, found by sequence number modulo their count.

The values in an entry's sum are noted in bits, as packets have them: in `arrived`, a row per rack,
and those of the job first (`roster.py`). A whole rack is a bit of the job, however its values came.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from ringleaf.core.arena import Arena, Lanes, Store, Words
from ringleaf.core.compiled import inline
from ringleaf.core.ethernet import group_mac
from ringleaf.core.headers import write_udp
from ringleaf.core.views import window
from ringleaf.errors import ConfigError
from ringleaf.hosts.agent import AGENT_WORDS, make_agent
from ringleaf.hosts.fifo import FIFO_ROOM, FIFO_ROWS, FIFO_WORDS, Fifo
from ringleaf.ina.atp.limits import MAX_WORKERS
from ringleaf.ina.atp.roster import Roster
from ringleaf.ina.atp.state import AtpAddress
from ringleaf.ina.atp.wire import (
    HEADER_BYTES,
    JOB_AT,
    MESSAGE_AT,
    PARAMETER,
    SERVER_AT,
    SIZES,
    VALUES_AT,
    gradient_port,
    group_address,
    parameter_port,
    worker_set,
)
from ringleaf.ina.job_numbers import check_job

# The server's words.
JOB = 0
LANES = 1
RACKS = 2  # rows of bits per entry: those of the job, and of its racks
ENTRIES = 3
ROWS_AT = 4
SUMS_AT = 5  # in arena.words
RESULTS_AT = 6  # in arena.lanes
SCRATCH_AT = 7  # in arena.lanes
TEMPLATES_AT = 8  # in arena.bytes: heads of parameters to all workers, and to each
NUMBER = 9
PROPOSALS_AT = 10  # all aggregators, shuffled
AGGREGATORS = 11
PROPOSED = 12  # proposals made
RTT_PS = 13  # so long after a result, resent packets may have been sent before it came
SIZE = 14  # code of LANES
WORKERS = 15
ECMP = 16  # 1: a probe may overtake values that another worker's probe brings along
ARRIVED_AT = 17
MISSED_AT = 18
COMPLETE_AT = 19
PLACES_AT = 20
RESUMED_PS = 21  # when results were repeated after the last change of trees
ANSWERS = 22  # fifo of answers to send
OWN_WORDS = ANSWERS + FIFO_WORDS

# An entry's words.
SEQUENCE = 0  # modulo 2^32; -1 before the first
TOUCHED = 1  # bits of the job of which anything is in the sum
IS_RAW = 2  # 1: raw values are summed up, as fixed-point ones do not fit
IS_DONE = 3  # 1: the result is there
COLLIDED = 4  # 1: some switch had no aggregator for a gradient
IS_CONGESTED = 5  # 1: a gradient had met a long queue
INTEGERS = 6
AGGREGATOR = 7
PROPOSAL = 8
ANSWERED_PS = 9  # when the result was sent to all
DSCP = 10  # of a gradient, in the upper 6 of 8 bits; parameters copy it
IS_MENDED = 11  # 1: a worker was asked to resend a lost packet
IS_WANTED = 12  # 1: another block wanted an aggregator of this one
IS_LATE = 13  # 1: a worker sent its gradient late
ENTRY_WORDS = 14

# An answer is entry | kind << 24 | (0: all, or 1 + worker) << 28.
RESULT = 0
ASK = 1  # for raw values
AGAIN = 2  # for a lost packet
KIND_SHIFT = 24
TARGET_SHIFT = 28

# A worker's place is its bit | rack << 6.
RACK_SHIFT = 6
BIT_MASK = (1 << RACK_SHIFT) - 1


class ParameterServer(NamedTuple):
    """One parameter server; two-dimensional arrays are flat."""

    state: Words  # (OWN_WORDS,)
    rows: Words  # (entries, ENTRY_WORDS)
    arrived: Words  # (entries, racks), workers whose values are in the sum; whole racks in row 0
    missed: Words  # (entries, racks), workers that have probed before their gradient came
    complete: Words  # (racks,), all bits
    places: Words  # (workers,)
    sums: Words  # (entries, lanes), int64, or the bits of float64
    results: Lanes  # (entries, lanes)
    scratch: Lanes  # (lanes,)
    answers: Fifo


def shuffled(job: int, number: int, aggregators: int) -> list[int]:
    """Return all aggregators in the order in which a server proposes them."""
    order = list(range(aggregators))
    Random(f"{job} {number}").shuffle(order)
    return order


def make_server(
    store: Store,
    *,
    host: int,
    ring: int,
    job: int,
    number: int,
    own: AtpAddress,
    workers: Sequence[AtpAddress],
    roster: Roster,
    positions: int,
    aggregators: int,
    lanes: int,
    rtt_ps: int,
    ecmp: bool,
) -> int:
    """Return the offset of a parameter server.

    Args:
        store: The store that holds its state.
        host: Its host's index.
        ring: Completion ring; servers report nothing.
        job: The job's number, as the workers have it.
        number: The server's number in the job, from 0.
        own: Its host's address.
        workers: The job's workers, by number.
        roster: The bits that name them to this server.
        positions: The workers' window.
        aggregators: Number of aggregators that the switches have.
        lanes: Values in a packet, 64 or 256.
        rtt_ps: A round trip: a resent gradient that comes sooner after a result is not answered.
        ecmp: Whether packets of switches may take another way than a worker's own.

    Raises:
        ConfigError: If a number is out of range.
    """
    where = f"atp server on h{host}"
    check_job(where, job)
    if not 0 < len(workers) <= MAX_WORKERS:
        raise ConfigError(f"{where}: workers must be 1 to {MAX_WORKERS}, got {len(workers)}")
    port = gradient_port(job)
    entries = 2 * positions
    at = make_agent(store, OWN_WORDS, host=host, ring=ring, udp_ports=(port, port))
    state_at = at + AGENT_WORDS
    room = 4 * entries + len(workers)  # answers that do not fit are asked for again
    racks = len(roster.complete)
    rows_at = store.allocate("words", entries * ENTRY_WORDS)
    arrived_at = store.allocate("words", entries * racks)
    missed_at = store.allocate("words", entries * racks)
    complete_at = store.allocate("words", racks)
    places_at = store.allocate("words", len(workers))
    sums_at = store.allocate("words", entries * lanes)
    answers_at = store.allocate("words", room)
    proposals_at = store.allocate("words", aggregators)
    results_at = store.allocate("lanes", entries * lanes)
    scratch_at = store.allocate("lanes", lanes)
    templates_at = store.allocate("bytes", VALUES_AT * (1 + len(workers)))
    words = store.arena.words
    state = words[state_at : state_at + OWN_WORDS]
    state[JOB], state[NUMBER], state[LANES] = job, number, lanes
    state[RACKS], state[ENTRIES] = racks, entries
    state[ARRIVED_AT], state[MISSED_AT] = arrived_at, missed_at
    state[COMPLETE_AT], state[PLACES_AT] = complete_at, places_at
    state[ROWS_AT], state[SUMS_AT], state[RESULTS_AT] = rows_at, sums_at, results_at
    state[SCRATCH_AT], state[TEMPLATES_AT] = scratch_at, templates_at
    state[PROPOSALS_AT], state[AGGREGATORS] = proposals_at, aggregators
    state[RTT_PS], state[SIZE], state[WORKERS] = rtt_ps, SIZES[lanes], len(workers)
    state[ECMP] = ecmp
    state[ANSWERS + FIFO_ROWS], state[ANSWERS + FIFO_ROOM] = answers_at, room
    words[rows_at : rows_at + entries * ENTRY_WORDS : ENTRY_WORDS] = -1
    words[complete_at : complete_at + racks] = [worker_set(bits) for bits in roster.complete]
    words[places_at : places_at + len(workers)] = [
        place.rack << RACK_SHIFT | place.bit for place in roster.places
    ]
    words[proposals_at : proposals_at + aggregators] = shuffled(job, number, aggregators)
    group_ipv4 = group_address(job, number)
    group = AtpAddress(group_mac(group_ipv4), group_ipv4)
    for target, address in enumerate([group, *workers]):
        head = store.arena.bytes[templates_at + VALUES_AT * target :][:VALUES_AT]
        macs, addresses = (own.mac, address.mac), (own.ipv4, address.ipv4)
        ports = (port, parameter_port(job))
        write_udp(head, macs, addresses, ports, HEADER_BYTES)
        head[MESSAGE_AT] = PARAMETER << 4
        head[JOB_AT], head[SERVER_AT] = job, number
    return at


@inline
def open_server(arena: Arena, at: int) -> ParameterServer:
    """Return the parameter server of the agent at word `at`, as views of the arena."""
    words = arena.words
    own = at + AGENT_WORDS
    entries, lanes, answers = words[own + ENTRIES], words[own + LANES], own + ANSWERS
    racks = words[own + RACKS]
    return ParameterServer(
        window(words, own, OWN_WORDS),
        window(words, words[own + ROWS_AT], entries * ENTRY_WORDS),
        window(words, words[own + ARRIVED_AT], entries * racks),
        window(words, words[own + MISSED_AT], entries * racks),
        window(words, words[own + COMPLETE_AT], racks),
        window(words, words[own + PLACES_AT], words[own + WORKERS]),
        window(words, words[own + SUMS_AT], entries * lanes),
        window(arena.lanes, words[own + RESULTS_AT], entries * lanes),
        window(arena.lanes, words[own + SCRATCH_AT], lanes),
        Fifo(
            window(words, answers, FIFO_WORDS),
            window(words, words[answers + FIFO_ROWS], words[answers + FIFO_ROOM]),
        ),
    )
