"""OmniReduce's aggregator: an agent that adds up blocks, and names the next ones.

For each slot it knows the round that is under way. Updates of that round are kept; when the last
worker's comes, blocks are added up in the order of ranks, whatever order they came in, and all
workers get the result. An update of the round before says that a worker has not got its result:
it is sent again. A worker that sends an update of a round has the result of the one before, so
when a round is complete, no worker asks for the result of the one before any more, and it is
overwritten. (The
paper adds blocks as they come, and so needs a shadow for each slot. It tells rounds apart by one
bit, which is right where packets stay in order; their number tells older copies, too, however
late they come.)
"""

from __future__ import annotations

from ringleaf.core.arena import Arena, Bytes
from ringleaf.core.compiled import copy_items, handler, inline
from ringleaf.core.headers import ECN_CAPABLE, ECN_MASK, IP_TOS_AT, get16, get32, put16, put32
from ringleaf.core.packets import Packet, allocate_packet, open_packet
from ringleaf.hosts.agent import READY, RETRANSMISSIONS
from ringleaf.hosts.fifo import FIFO_COUNT, fifo_pop, fifo_push
from ringleaf.ina.omnireduce.ledger import (
    AGGREGATORS,
    ARRIVED,
    COLUMNS,
    GIVEN_AT,
    JOB,
    KIND,
    LEAST,
    NEXTS,
    NUMBER,
    PART_WORDS,
    PRESENT,
    ROUND,
    ROW_WORDS,
    SEEN,
    SLOTS,
    SUMMED,
    SUMS_AT,
    TEMPLATES_AT,
    WAITS,
    WORKERS,
    OmniReduceAggregator,
    open_aggregator,
)
from ringleaf.ina.omnireduce.state import TEMPLATE_BYTES
from ringleaf.ina.omnireduce.values import add_block, bytes_from, clear, copy_values
from ringleaf.ina.omnireduce.wire import (
    BLOCK_BYTES,
    COLUMNS_AT,
    JOB_AT,
    MESSAGE_AT,
    NEXT_AT,
    PRESENT_AT,
    RESULT,
    ROUND_AT,
    ROUND_MASK,
    SLOT_AT,
    UPDATE,
    WORKER_AT,
    count_bits,
    values_at,
)
from ringleaf.ina.omnireduce.worker import refer


@inline
def answer(aggregator: OmniReduceAggregator, slot: int, worker: int) -> None:
    """Queue the last complete round's result for a worker, once."""
    place = slot * aggregator.state[WORKERS] + worker
    if not aggregator.parts[place * PART_WORDS + WAITS]:
        aggregator.parts[place * PART_WORDS + WAITS] = 1
        fifo_push(aggregator.answers, place)


@inline
def sums_at(aggregator: OmniReduceAggregator, slot: int) -> int:
    """Return the address of the blocks of the slot's result."""
    state = aggregator.state
    return int(state[SUMS_AT] + slot * state[COLUMNS] * BLOCK_BYTES)


@inline
def is_ours(aggregator: OmniReduceAggregator, view: Packet) -> bool:
    """Return whether a packet is a whole update for this aggregator."""
    state = aggregator.state
    head = view.head
    first = values_at(state[COLUMNS])
    if bytes_from(view, first) < 0 or head[COLUMNS_AT] != state[COLUMNS]:
        return False
    slot = get16(head, SLOT_AT)
    return bool(
        head[MESSAGE_AT] >> 4 == UPDATE
        and head[JOB_AT] == state[JOB]
        and slot % state[AGGREGATORS] == state[NUMBER]
        and slot // state[AGGREGATORS] < state[SLOTS]
        and get16(head, WORKER_AT) < state[WORKERS]
        and bytes_from(view, first) >= count_bits(int(head[PRESENT_AT])) * BLOCK_BYTES
    )


@inline
def keep_update(
    arena: Arena, aggregator: OmniReduceAggregator, slot: int, worker: int, view: Packet
) -> None:
    """Keep a worker's update for the round that is under way."""
    state, rows = aggregator.state, aggregator.rows
    row = slot * ROW_WORDS
    columns = state[COLUMNS]
    place = slot * state[WORKERS] + worker
    present = int(view.head[PRESENT_AT])
    aggregator.parts[place * PART_WORDS + SEEN] = rows[row + ROUND]
    aggregator.parts[place * PART_WORDS + PRESENT] = present
    target = state[GIVEN_AT] + place * columns * BLOCK_BYTES
    size = count_bits(present) * BLOCK_BYTES
    copy_values(arena, view, values_at(columns), 0, target, size)
    for column in range(columns):
        position = get32(view.head, NEXT_AT + 4 * column)
        if rows[row + ARRIVED] > 0:
            position = min(position, rows[row + LEAST + column])
        rows[row + LEAST + column] = position
    rows[row + ARRIVED] += 1


@inline
def givers(aggregator: OmniReduceAggregator, slot: int, column: int) -> int:
    """Return how many workers have a block in this column."""
    state = aggregator.state
    count = 0
    for worker in range(state[WORKERS]):
        place = slot * state[WORKERS] + worker
        count += aggregator.parts[place * PART_WORDS + PRESENT] >> column & 1
    return count


@inline
def sum_column(
    arena: Arena, aggregator: OmniReduceAggregator, slot: int, column: int, target: int, dtype: int
) -> None:
    """Add up the column's blocks, worker after worker.

    A missing block is all zeros. As they turn -0.0 into 0.0, one such block is added, first.
    """
    state, memory = aggregator.state, arena.memory
    is_empty = givers(aggregator, slot, column) == state[WORKERS]
    if not is_empty:
        clear(memory, target, target + BLOCK_BYTES)
    for worker in range(state[WORKERS]):
        place = slot * state[WORKERS] + worker
        present = aggregator.parts[place * PART_WORDS + PRESENT]
        if present >> column & 1:
            before = count_bits(present & ((1 << column) - 1))
            source = state[GIVEN_AT] + (place * state[COLUMNS] + before) * BLOCK_BYTES
            if is_empty:
                copy_items(memory, target, memory, source, BLOCK_BYTES)
            else:
                add_block(memory, target, source, BLOCK_BYTES, dtype)
            is_empty = False


@inline
def complete_round(arena: Arena, aggregator: OmniReduceAggregator, slot: int, head: Bytes) -> None:
    """Make the result of a round whose updates are all there, and queue it for all workers."""
    state, rows = aggregator.state, aggregator.rows
    row = slot * ROW_WORDS
    number = rows[row + ROUND]
    target = sums_at(aggregator, slot)
    dtype = int(head[MESSAGE_AT]) & 0xF
    summed = 0
    for column in range(state[COLUMNS]):
        rows[row + NEXTS + column] = rows[row + LEAST + column]
        if givers(aggregator, slot, column) > 0:
            sum_column(arena, aggregator, slot, column, target, dtype)
            target += BLOCK_BYTES
            summed |= 1 << column
    rows[row + SUMMED] = summed
    rows[row + KIND] = (int(head[IP_TOS_AT]) & ~ECN_MASK | ECN_CAPABLE) << 8 | dtype
    rows[row + ROUND], rows[row + ARRIVED] = number + 1, 0
    for worker in range(state[WORKERS]):
        answer(aggregator, slot, worker)


@handler
def receive(arena: Arena, at: int, packet: int, now_ps: int) -> int:
    """Take an update."""
    aggregator = open_aggregator(arena, at)
    state, view = aggregator.state, open_packet(arena, packet)
    if not is_ours(aggregator, view):
        return 0
    slot, worker = get16(view.head, SLOT_AT) // state[AGGREGATORS], get16(view.head, WORKER_AT)
    number = aggregator.rows[slot * ROW_WORDS + ROUND]
    ahead = (get32(view.head, ROUND_AT) - number) & ROUND_MASK  # serial arithmetic, RFC 1982
    place = slot * state[WORKERS] + worker
    if ahead == 0 and aggregator.parts[place * PART_WORDS + SEEN] != number:
        keep_update(arena, aggregator, slot, worker, view)
        if aggregator.rows[slot * ROW_WORDS + ARRIVED] == state[WORKERS]:
            complete_round(arena, aggregator, slot, view.head)
    elif ahead == ROUND_MASK and aggregator.parts[place * PART_WORDS + SEEN] == number - 1:
        answer(aggregator, slot, worker)
        arena.words[at + RETRANSMISSIONS] += 1
    arena.words[at + READY] = aggregator.answers.state[FIFO_COUNT] > 0
    return 0


@inline
def make_result(arena: Arena, aggregator: OmniReduceAggregator, slot: int, worker: int) -> int:
    """Return a worker's copy of the last complete round's result, as a packet."""
    state = aggregator.state
    columns = state[COLUMNS]
    row = slot * ROW_WORDS
    number = aggregator.rows[row + ROUND] - 1
    packet = allocate_packet(arena)
    view = open_packet(arena, packet)
    head = view.head
    end = values_at(columns)
    copy_items(head, 0, arena.bytes, state[TEMPLATES_AT] + worker * TEMPLATE_BYTES, end)
    kind = aggregator.rows[row + KIND]
    head[IP_TOS_AT] = kind >> 8
    head[MESSAGE_AT] = RESULT << 4 | (kind & 0xF)
    head[PRESENT_AT] = aggregator.rows[row + SUMMED]
    put16(head, SLOT_AT, slot * state[AGGREGATORS] + state[NUMBER])
    put32(head, ROUND_AT, number & ROUND_MASK)
    for column in range(columns):
        put32(head, NEXT_AT + 4 * column, aggregator.rows[row + NEXTS + column])
    refer(view, end, sums_at(aggregator, slot), aggregator.rows[row + SUMMED])
    return packet


@handler
def transmit(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Return the result that has waited longest."""
    aggregator = open_aggregator(arena, at)
    packet = -1
    if aggregator.answers.state[FIFO_COUNT] > 0:
        place = fifo_pop(aggregator.answers)
        aggregator.parts[place * PART_WORDS + WAITS] = 0
        workers = aggregator.state[WORKERS]
        packet = make_result(arena, aggregator, place // workers, place % workers)
    arena.words[at + READY] = aggregator.answers.state[FIFO_COUNT] > 0
    return packet


@handler
def fire_timer(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Do nothing: workers see to it that lost packets are sent again."""
    return 0
