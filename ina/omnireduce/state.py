"""The state of an OmniReduce worker: its own words, a row per slot, its flight and tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ringleaf.core.arena import Arena, Store, Words
from ringleaf.core.compiled import inline
from ringleaf.core.headers import put16, write_udp
from ringleaf.core.views import window
from ringleaf.errors import ConfigError
from ringleaf.hosts.agent import AGENT_WORDS, make_agent
from ringleaf.ina.flight import FLIGHT_WORDS, Flight, make_flight, open_flight
from ringleaf.ina.job_numbers import check_job
from ringleaf.ina.omnireduce.wire import (
    BLOCK,
    BLOCK_BYTES,
    COLUMNS_AT,
    JOB_AT,
    MAX_COLUMNS,
    MAX_SLOTS,
    NONE,
    WORKER_AT,
    aggregator_port,
    values_at,
    worker_port,
)
from ringleaf.ina.tensors import TENSORS_WORDS, TensorQueue, make_tensors, open_tensors

# The worker's words.
JOB = 0
RANK = 1
SLOTS = 2
COLUMNS = 3
AGGREGATORS = 4  # slot s is at aggregator s mod so many
TEMPLATES_AT = 5  # in arena.bytes: heads of updates, by aggregator
STAGING_AT = 6  # in arena.memory: the blocks of each slot's update
ROWS_AT = 7
NEXT_SLOT = 8  # of the next tensor's first column
FLIGHT = 9
TENSORS = FLIGHT + FLIGHT_WORDS
OWN_WORDS = TENSORS + TENSORS_WORDS

# A slot's words.
ROUND = 0  # whole here, modulo 2^32 on the wire
IS_BUSY = 1
PRESENT = 2  # columns whose blocks are in this round's update
TENSOR = 3  # number of the tensor; of the next one that will be posted if it is not busy
POSITIONS = 4  # by column: position of this round's block, or NONE
NEXTS = POSITIONS + MAX_COLUMNS  # by column: position of the worker's next block that is not zero
ROW_WORDS = NEXTS + MAX_COLUMNS

TEMPLATE_BYTES = 128


class OmniReduceWorker(NamedTuple):
    """One worker; two-dimensional arrays are flat."""

    state: Words  # (OWN_WORDS,)
    rows: Words  # (slots, ROW_WORDS)
    flight: Flight
    tensors: TensorQueue


class OmniReduceAddress(NamedTuple):
    """The addresses of a host's port."""

    mac: int
    ip: int


def check_lanes(where: str, lanes: int) -> int:
    """Return how many columns a slot has, for packets of so many values.

    Raises:
        ConfigError: If they don't make columns.
    """
    if lanes % BLOCK or not 0 < lanes <= BLOCK * MAX_COLUMNS:
        most = BLOCK * MAX_COLUMNS
        raise ConfigError(
            f"{where}: lanes must be a multiple of {BLOCK} up to {most}, got {lanes!r}"
        )
    return lanes // BLOCK


def make_worker(
    store: Store,
    *,
    host: int,
    ring: int,
    job: int,
    rank: int,
    own: OmniReduceAddress,
    aggregators: Sequence[OmniReduceAddress],
    slots: int,
    lanes: int,
    min_timeout_ps: int,
    quiet_ps: int = 0,
    first_round: int = 0,
) -> int:
    """Return the offset of a worker that has no tensor yet.

    Args:
        store: The store that holds its state.
        host: Its host's index.
        ring: Completion ring it reports to.
        job: The job's number, 1 to 255; jobs of one host differ modulo 16 (their UDP ports).
        rank: Its rank in the job.
        own: Its host's address.
        aggregators: Addresses of the job's aggregators.
        slots: Packets in flight, at most. As `lanes`, the same for all workers of the job.
        lanes: Values in a full packet.
        min_timeout_ps: Floor of the retransmission timeout.
        quiet_ps: Time for which the network may answer nothing although nothing is lost.
        first_round: Rounds that the slots have behind them.

    Raises:
        ConfigError: If a number is out of range.
    """
    where = f"omnireduce worker on h{host}"
    check_job(where, job)
    columns = check_lanes(where, lanes)
    if not 0 < slots <= MAX_SLOTS:
        raise ConfigError(f"{where}: slots must be 1 to {MAX_SLOTS}, got {slots!r}")
    port = worker_port(job)
    at = make_agent(store, OWN_WORDS, host=host, ring=ring, udp_ports=(port, port))
    own_at = at + AGENT_WORDS
    rows_at = store.allocate("words", slots * ROW_WORDS)
    templates_at = store.allocate("bytes", len(aggregators) * TEMPLATE_BYTES)
    staging_at = store.register_memory(slots * columns * BLOCK_BYTES)
    ways = len(aggregators)
    make_flight(
        *(store, own_at + FLIGHT, slots, min_timeout_ps), ways=ways, quiet_ps=quiet_ps, host=host
    )
    make_tensors(store, own_at + TENSORS)
    state = store.arena.words[own_at:][:OWN_WORDS]
    state[JOB], state[RANK], state[SLOTS], state[COLUMNS] = job, rank, slots, columns
    state[AGGREGATORS], state[TEMPLATES_AT] = len(aggregators), templates_at
    state[STAGING_AT], state[ROWS_AT] = staging_at, rows_at
    rows = store.arena.words[rows_at:][: slots * ROW_WORDS].reshape(slots, ROW_WORDS)
    rows[:, ROUND] = first_round
    rows[:, POSITIONS:] = NONE
    for number, peer in enumerate(aggregators):
        head = store.arena.bytes[templates_at + number * TEMPLATE_BYTES :][:TEMPLATE_BYTES]
        ports = (worker_port(job), aggregator_port(job))
        write_udp(head, (own.mac, peer.mac), (own.ip, peer.ip), ports, values_at(columns))
        head[JOB_AT], head[COLUMNS_AT] = job, columns
        put16(head, WORKER_AT, rank)
    return at


@inline
def open_worker(arena: Arena, at: int) -> OmniReduceWorker:
    """Return the worker of the agent at word `at`, as views of the arena."""
    words = arena.words
    own = at + AGENT_WORDS
    return OmniReduceWorker(
        window(words, own, OWN_WORDS),
        window(words, words[own + ROWS_AT], words[own + SLOTS] * ROW_WORDS),
        open_flight(arena, own + FLIGHT),
        open_tensors(arena, own + TENSORS),
    )
