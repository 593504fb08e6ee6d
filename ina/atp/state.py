"""The state of an ATP worker: its own words, a row per position of its window, and its tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ringleaf.core.arena import Arena, Lanes, Store, Words
from ringleaf.core.compiled import inline
from ringleaf.core.headers import write_udp
from ringleaf.core.views import window as view
from ringleaf.errors import ConfigError
from ringleaf.hosts.agent import AGENT_WORDS, make_agent
from ringleaf.ina import congestion
from ringleaf.ina.atp.limits import MAX_WORKERS
from ringleaf.ina.atp.roster import WorkerPlace
from ringleaf.ina.atp.wire import (
    GRADIENT,
    HEADER_BYTES,
    JOB_AT,
    MESSAGE_AT,
    RACK_AT,
    SENDER_AT,
    SENDER_SHIFT,
    SERVER_AT,
    SIZE_AT,
    SIZES,
    VALUES_AT,
    gradient_port,
    parameter_port,
    put_workers,
    worker_set,
)
from ringleaf.ina.flight import FLIGHT_WORDS, Flight, make_flight, open_flight
from ringleaf.ina.job_numbers import check_job
from ringleaf.ina.tensors import TENSORS_WORDS, TensorQueue, make_tensors, open_tensors

# The worker's words. Sequence numbers are whole here, and modulo 2^32 on the wire.
JOB = 0
SERVERS = 1
LANES = 2
WINDOW = 3  # positions, a power of two
TEMPLATES_AT = 4  # in arena.bytes: heads of gradients, by server
SCRATCH_AT = 5  # in arena.lanes
ROWS_AT = 6
CURRENT = 7  # number of the tensor that NEXT lies in, or behind
END = 8  # behind the last block of all tensors
BASE = 9  # all before it have their results
NEXT = 10  # the next one to send
ROUND_END = 11  # when BASE gets here, a round trip is over
CONTROL = 12  # the congestion window's block, as `congestion.py` has it
ALLOWED = CONTROL + congestion.WINDOW
INCREASE = CONTROL + congestion.GROWTH
MARKED = CONTROL + congestion.MARKED
RESULTS = CONTROL + congestion.RESULTS
SHARE = CONTROL + congestion.SHARE
WANTED = CONTROL + congestion.WANTED
TIMELY = CONTROL + congestion.TIMELY
BASE_PS = CONTROL + congestion.BASE_PS
IS_SHARED = CONTROL + congestion.CONTROL_WORDS  # 1: as `shares.py` says, like the following
LIMIT = IS_SHARED + 1  # all blocks before it have been allowed
SHARE_END = IS_SHARED + 2  # blocks before it may take aggregators
ROUND_PS = IS_SHARED + 3  # when this round began
IS_LATE = IS_SHARED + 4  # 1: the last result came later than a round trip after that
ECHO = IS_SHARED + 5  # 1: a result was marked on its way here
RESUMED_PS = IS_SHARED + 6  # when the first result came after the last change of trees
FLIGHT = IS_SHARED + 7
TENSORS = FLIGHT + FLIGHT_WORDS
OWN_WORDS = TENSORS + TENSORS_WORDS

# A position's words.
SEQUENCE = 0  # of the block that waits for its result, or ANSWERED
IS_RAW = 1  # 1: it must be sent as raw values
AGGREGATOR = 2
TENSOR = 3  # row of the block's tensor
IS_ALONE = 4  # 1: the block takes no aggregators
MARKS = 5  # of the last result
POSITION_WORDS = 6
ANSWERED = -1


class AtpWorker(NamedTuple):
    """One worker; two-dimensional arrays are flat."""

    state: Words  # (OWN_WORDS,)
    rows: Words  # (window, POSITION_WORDS)
    flight: Flight  # slots are positions, ways are servers
    tensors: TensorQueue
    scratch: Lanes  # (lanes,)


class AtpAddress(NamedTuple):
    """The addresses of a host's port."""

    mac: int
    ipv4: int


def make_worker(
    store: Store,
    *,
    host: int,
    ring: int,
    job: int,
    number: int,
    own: AtpAddress,
    servers: Sequence[AtpAddress],
    places: Sequence[WorkerPlace],
    aggregators: Sequence[int],
    lanes: int,
    min_timeout_ps: int,
    window: congestion.Window,
    base_ps: int,
    quiet_ps: int = 0,
    first_sequence: int = 0,
) -> int:
    """Return the offset of a worker that has no tensor yet.

    Args:
        store: The store that holds its state.
        host: Its host's index.
        ring: Completion ring it reports to.
        job: The job's number, 1 to 255; jobs of one host differ modulo 16 (their UDP ports).
        number: The worker's number in the job, from 0.
        own: Its host's address.
        servers: The job's parameter servers; the same for all workers.
        places: The bit that names this worker, by server.
        aggregators: The aggregators that the job begins with, one per position of the window;
            their number must be a power of two. They, and all that follows, are the same for all
            workers.
        lanes: Values in a packet, 64 or 256.
        min_timeout_ps: Floor of the retransmission timeout; 4 times as much is its value
            before any sample, and 64 times as much its most.
        window: The way in which the congestion window changes.
        base_ps: A round trip without queues.
        quiet_ps: Time for which the network may answer nothing although nothing is lost.
        first_sequence: Number of the job's first block.

    Raises:
        ConfigError: If a number is out of range.
    """
    where = f"atp worker on h{host}"
    check_job(where, job)
    positions = len(aggregators)
    if lanes not in SIZES:
        raise ConfigError(f"{where}: lanes must be one of {list(SIZES)}, got {lanes!r}")
    if not 0 <= number < MAX_WORKERS:
        raise ConfigError(f"{where}: number must be 0 to {MAX_WORKERS - 1}, got {number!r}")
    if positions < 1 or positions & (positions - 1):
        raise ConfigError(f"{where}: the window must be a power of two, got {positions}")
    if min_timeout_ps < 1:
        raise ConfigError(f"{where}: min_timeout_ps must be above 0, got {min_timeout_ps!r}")
    port = parameter_port(job)
    at = make_agent(store, OWN_WORDS, host=host, ring=ring, udp_ports=(port, port))
    state_at = at + AGENT_WORDS
    rows_at = store.allocate("words", positions * POSITION_WORDS)
    templates_at = store.allocate("bytes", VALUES_AT * len(servers))
    scratch_at = store.allocate("lanes", lanes)
    make_flight(
        *(store, state_at + FLIGHT, positions, min_timeout_ps),
        ways=len(servers),
        quiet_ps=quiet_ps,
        probes=True,
        host=host,
    )
    make_tensors(store, state_at + TENSORS)
    state = store.arena.words[state_at : state_at + OWN_WORDS]
    state[JOB], state[SERVERS], state[LANES], state[WINDOW] = job, len(servers), lanes, positions
    state[TEMPLATES_AT], state[SCRATCH_AT], state[ROWS_AT] = templates_at, scratch_at, rows_at
    state[END] = state[BASE] = state[NEXT] = first_sequence
    state[ROUND_END] = first_sequence
    congestion.begin_window(
        state[CONTROL:][: congestion.CONTROL_WORDS],
        window,
        most=positions,  # twice the capacity of a path
        growth=max(1, congestion.GROWTH_BYTES // (VALUES_AT + 4 * lanes)),
        base_ps=base_ps,
    )
    if window.has_share:
        state[IS_SHARED], state[LIMIT] = 1, first_sequence
        state[SHARE_END] = first_sequence + state[ALLOWED] + state[SHARE]
        state[ROUND_END] += state[ALLOWED]
    rows = store.arena.words[rows_at:][: positions * POSITION_WORDS].reshape(-1, POSITION_WORDS)
    rows[:, SEQUENCE] = ANSWERED
    rows[:, AGGREGATOR] = aggregators
    for server, address in enumerate(servers):
        head = store.arena.bytes[templates_at + VALUES_AT * server :][:VALUES_AT]
        macs, addresses = (own.mac, address.mac), (own.ipv4, address.ipv4)
        ports = (parameter_port(job), gradient_port(job))
        write_udp(head, macs, addresses, ports, HEADER_BYTES + 4 * lanes)
        head[MESSAGE_AT] = GRADIENT << 4
        head[JOB_AT], head[SERVER_AT], head[SIZE_AT] = job, server, SIZES[lanes]
        head[SIZE_AT] |= number >> 8 << SENDER_SHIFT
        head[SENDER_AT], head[RACK_AT] = number & 0xFF, places[server].rack
        put_workers(head, worker_set(1 << places[server].bit))
    return at


@inline
def open_worker(arena: Arena, at: int) -> AtpWorker:
    """Return the worker of the agent at word `at`, as views of the arena."""
    words = arena.words
    own = at + AGENT_WORDS
    return AtpWorker(
        view(words, own, OWN_WORDS),
        view(words, words[own + ROWS_AT], words[own + WINDOW] * POSITION_WORDS),
        open_flight(arena, own + FLIGHT),
        open_tensors(arena, own + TENSORS),
        view(arena.lanes, words[own + SCRATCH_AT], words[own + LANES]),
    )
