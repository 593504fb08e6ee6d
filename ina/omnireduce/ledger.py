"""The state of an OmniReduce aggregator: its own words, and rows per slot and per worker's part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ringleaf.core.arena import Arena, Store, Words
from ringleaf.core.compiled import inline
from ringleaf.core.headers import put16, write_udp
from ringleaf.core.views import window
from ringleaf.errors import ConfigError
from ringleaf.hosts.agent import AGENT_WORDS, make_agent
from ringleaf.hosts.fifo import FIFO_ROOM, FIFO_ROWS, FIFO_WORDS, Fifo, open_fifo
from ringleaf.ina.job_numbers import check_job
from ringleaf.ina.omnireduce.state import TEMPLATE_BYTES, OmniReduceAddress, check_lanes
from ringleaf.ina.omnireduce.wire import (
    BLOCK_BYTES,
    COLUMNS_AT,
    JOB_AT,
    MAX_COLUMNS,
    MAX_WORKERS,
    WORKER_AT,
    aggregator_port,
    values_at,
    worker_port,
)

# The aggregator's words.
JOB = 0
WORKERS = 1
COLUMNS = 2
NUMBER = 3  # slots that are this modulo AGGREGATORS are its own
AGGREGATORS = 4
SLOTS = 5  # of its own
TEMPLATES_AT = 6  # in arena.bytes: heads of results, by worker
ROWS_AT = 7
PARTS_AT = 8
GIVEN_AT = 9  # in arena.memory: the workers' blocks of this round, by slot and worker
SUMS_AT = 10  # in arena.memory: the sums of the round before, by slot
ANSWERS = 11  # fifo of results to send: places in the table of parts
OWN_WORDS = ANSWERS + FIFO_WORDS

# A slot's words.
ROUND = 0  # the one that is not complete; whole here, modulo 2^32 on the wire
ARRIVED = 1  # updates of it
LEAST = 2  # by column: the least of their next positions
NEXTS = LEAST + MAX_COLUMNS  # by column: in the result of the round before
SUMMED = NEXTS + MAX_COLUMNS  # columns that have a block in it
KIND = SUMMED + 1  # type of service << 8 | data type, as its updates had them
ROW_WORDS = SUMMED + 2

# A part's words: a worker's share in a slot.
SEEN = 0  # the latest round whose update has come
PRESENT = 1  # columns that had a block in it
WAITS = 2  # 1: its result is in the fifo
PART_WORDS = 4


class OmniReduceAggregator(NamedTuple):
    """One aggregator; two-dimensional arrays are flat."""

    state: Words  # (OWN_WORDS,)
    rows: Words  # (slots, ROW_WORDS)
    parts: Words  # (slots, workers, PART_WORDS)
    answers: Fifo


def own_slots(number: int, aggregators: int, slots: int) -> int:
    """Return how many of a job's slots an aggregator has."""
    return (slots - number + aggregators - 1) // aggregators


def make_aggregator(
    store: Store,
    *,
    host: int,
    ring: int,
    job: int,
    number: int,
    aggregators: int,
    own: OmniReduceAddress,
    workers: Sequence[OmniReduceAddress],
    slots: int,
    lanes: int,
    first_round: int = 0,
) -> int:
    """Return the offset of an aggregator that has seen nothing yet.

    Args:
        store: The store that holds its state.
        host: Its host's index.
        ring: Completion ring of the host; an aggregator reports nothing.
        job: The job's number, 1 to 255.
        number: Its number among the job's aggregators, from 0.
        aggregators: The number of aggregators.
        own: Its host's address.
        workers: Addresses of the workers, by rank.
        slots: Slots of the whole job.
        lanes: Values in a full packet.
        first_round: As the workers have it.

    Raises:
        ConfigError: If a number is out of range.
    """
    where = f"omnireduce aggregator on h{host}"
    check_job(where, job)
    columns = check_lanes(where, lanes)
    if not 0 < len(workers) <= MAX_WORKERS:
        raise ConfigError(f"{where}: workers must be 1 to {MAX_WORKERS}, got {len(workers)}")
    port = aggregator_port(job)
    at = make_agent(store, OWN_WORDS, host=host, ring=ring, udp_ports=(port, port))
    slots, pairs = own_slots(number, aggregators, slots), len(workers)
    pairs *= slots
    room = columns * BLOCK_BYTES
    fifo_at = store.allocate("words", max(pairs, 1))
    rows_at = store.allocate("words", slots * ROW_WORDS)
    parts_at = store.allocate("words", pairs * PART_WORDS)
    templates_at = store.allocate("bytes", len(workers) * TEMPLATE_BYTES)
    given_at, sums_at = store.register_memory(pairs * room), store.register_memory(slots * room)
    state = store.arena.words[at + AGENT_WORDS :][:OWN_WORDS]
    state[JOB], state[WORKERS], state[COLUMNS] = job, len(workers), columns
    state[NUMBER], state[AGGREGATORS], state[SLOTS] = number, aggregators, slots
    state[TEMPLATES_AT], state[ROWS_AT], state[PARTS_AT] = templates_at, rows_at, parts_at
    state[GIVEN_AT], state[SUMS_AT] = given_at, sums_at
    state[ANSWERS + FIFO_ROWS], state[ANSWERS + FIFO_ROOM] = fifo_at, max(pairs, 1)
    words = store.arena.words
    words[rows_at : rows_at + slots * ROW_WORDS : ROW_WORDS] = first_round
    words[parts_at : parts_at + pairs * PART_WORDS : PART_WORDS] = first_round - 2
    for rank, peer in enumerate(workers):
        head = store.arena.bytes[templates_at + rank * TEMPLATE_BYTES :][:TEMPLATE_BYTES]
        ports = (aggregator_port(job), worker_port(job))
        write_udp(head, (own.mac, peer.mac), (own.ip, peer.ip), ports, values_at(columns))
        head[JOB_AT], head[COLUMNS_AT] = job, columns
        put16(head, WORKER_AT, rank)
    return at


@inline
def open_aggregator(arena: Arena, at: int) -> OmniReduceAggregator:
    """Return the aggregator of the agent at word `at`, as views of the arena."""
    words = arena.words
    own = at + AGENT_WORDS
    slots, workers = words[own + SLOTS], words[own + WORKERS]
    return OmniReduceAggregator(
        window(words, own, OWN_WORDS),
        window(words, words[own + ROWS_AT], slots * ROW_WORDS),
        window(words, words[own + PARTS_AT], slots * workers * PART_WORDS),
        open_fifo(arena, own + ANSWERS),
    )
