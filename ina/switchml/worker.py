"""A host's side of SwitchML: an agent that streams tensors through the switches.

Of a tensor's blocks (64 or 256 elements, as many as a packet has lanes), block k goes through
slot k mod slots. A slot has one packet in flight, and the result of one releases the next, so
the workers keep in step (self-clocking). A slot's rounds alternate between two versions of its
state in the switches, through all tensors of the job: what a switch has of one round is
overwritten in the round after next, which a worker begins only when it has the next round's
result, to which every worker contributed after it had this round's.

A packet without result is sent again after a timeout from the measured round trip (RFC 6298).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from hosts.agent import (
    AGENT_WORDS,
    READY,
    RETRANSMISSIONS,
    TIMER_AT_PS,
    complete,
    make_agent,
)
from ina.switchml.scaling import (
    dequantise,
    fill_nan,
    headroom_bits,
    max_exponent,
    pack,
    quantise,
    shift_of,
    unpack,
)
from ina.switchml.wire import (
    BLOCK_AT,
    BLOCK_MASK,
    EXPONENT_AT,
    HEADER_BYTES,
    JOB_AT,
    MAX_SLOTS,
    MESSAGE_AT,
    POOL_INDEX_AT,
    RESULT,
    SIZE_NONE,
    SIZES,
    SPECIAL,
    UPDATE,
    VALUES_AT,
    VERSION_SHIFT,
    check_job,
    group_address,
    group_mac,
    udp_port,
)
from ringleaf.arena import Arena, Bytes, Store, Words
from ringleaf.compiled import ARENA, compiled, copy_items, handler, inline
from ringleaf.errors import ConfigError
from ringleaf.headers import get16, get32, put16, put32, write_udp
from ringleaf.packets import HEAD_LEN, allocate_packet, open_packet
from ringleaf.units import FOREVER_PS

REDUCED = 1
"""What a worker reports of each tensor. a: count of its elements, b: its tag."""

FLOAT32 = 0
INT32 = 1

# The worker's words.
JOB = 0
SLOTS = 1
LANES = 2
BITS = 3  # headroom_bits of the job's workers
SLOTS_AT = 4
FIFO_AT = 5  # ring of slots that have a packet to send
FIFO_FIRST = 6
FIFO_COUNT = 7
TENSORS_AT = 8  # ring of tensors that wait for the current one
TENSORS_FIRST = 9
TENSORS_COUNT = 10
TEMPLATES_AT = 11  # in arena.bytes: heads of packets without and with lanes
BLOCKS = 12  # of the current tensor
BLOCKS_LEFT = 13  # without result; 0 while there is no tensor
MIN_TIMEOUT_PS = 14
TIMEOUT_PS = 15  # the present one
SMOOTHED_PS = 16  # round trip; 0 before the first sample
VARIATION_PS = 17
BACKED_OFF_PS = 18  # when the timeout was last doubled
CURRENT = 19  # the current tensor: TENSOR_WORDS
OWN_WORDS = 24

# A slot's words. Slots in flight are a doubly linked ring, in the order of sending; row
# `slots` holds its ends.
ROUND = 0
POSITION = 1  # block of the current tensor; below 0: only the exponent of block + slots
EXPONENT = 2  # the workers' largest, of the block at POSITION
SENT_PS = 3
ATTEMPTS = 4  # packets sent in this round
WAITS = 5  # 1 while in the fifo
NEXT = 6  # slot sent after this one, or NOT_IN_FLIGHT
PREVIOUS = 7
SLOT_WORDS = 8
NOT_IN_FLIGHT = -1
IDLE = FOREVER_PS  # a position behind all blocks

# A tensor's words.
SOURCE_AT = 0  # bytes in arena.memory
TARGET_AT = 1
COUNT = 2
DTYPE = 3
TAG = 4
TENSOR_WORDS = 5
TENSORS = 64

TEMPLATE_BYTES = 64
FIRST_TIMEOUTS = 4  # times the least timeout, before there is a sample
MAX_BACKOFF = 64  # times the least timeout


class Worker(NamedTuple):
    """One worker; rows are flat."""

    state: Words  # (OWN_WORDS,)
    slots: Words  # (slots + 1, SLOT_WORDS)
    fifo: Words  # (slots,)
    tensors: Words  # (TENSORS, TENSOR_WORDS)


def make_worker(
    store: Store,
    *,
    host: int,
    ring: int,
    job: int,
    workers: int,
    slots: int,
    lanes: int,
    mac: int,
    address: int,
    min_timeout_ps: int,
    first_round: int = 0,
) -> int:
    """Return the offset of a worker that has no tensor yet.

    Args:
        store: Where it lives.
        host: Its host's index.
        ring: Completion ring it reports to.
        job: The job's number, 1 to 255; jobs of one host differ modulo 16 (their UDP ports).
        workers: Ranks of the job. As `slots` and `lanes`, the same for all of them.
        slots: Packets in flight, at most.
        lanes: Values in a packet, 64 or 256.
        mac: The host's Ethernet address.
        address: The host's IPv4 address.
        min_timeout_ps: Floor of the retransmission timeout; 4 times as much is its value
            before any sample, and 64 times as much its most.
        first_round: Rounds that the job's slots have behind them in the switches.

    Raises:
        ConfigError: If a number is out of range.
    """
    where = f"switchml worker on h{host}"
    check_job(where, job)
    if lanes not in SIZES:
        raise ConfigError(f"{where}: lanes must be one of {list(SIZES)}, got {lanes!r}")
    if not 0 < slots <= MAX_SLOTS:
        raise ConfigError(f"{where}: slots must be 1 to {MAX_SLOTS}, got {slots!r}")
    if min_timeout_ps < 1:
        raise ConfigError(f"{where}: min_timeout_ps must be above 0, got {min_timeout_ps!r}")
    bits = headroom_bits(workers)
    port = udp_port(job)
    at = make_agent(store, OWN_WORDS, host=host, ring=ring, udp_ports=(port, port))
    slots_at = store.allocate("words", (slots + 1) * SLOT_WORDS)
    fifo_at = store.allocate("words", slots)
    tensors_at = store.allocate("words", TENSORS * TENSOR_WORDS)
    templates_at = store.allocate("bytes", 2 * TEMPLATE_BYTES)
    state = store.arena.words[at + AGENT_WORDS :][:OWN_WORDS]
    state[JOB], state[SLOTS], state[LANES], state[BITS] = job, slots, lanes, bits
    state[SLOTS_AT], state[FIFO_AT], state[TENSORS_AT] = slots_at, fifo_at, tensors_at
    state[TEMPLATES_AT] = templates_at
    state[MIN_TIMEOUT_PS], state[TIMEOUT_PS] = min_timeout_ps, FIRST_TIMEOUTS * min_timeout_ps
    rows = store.arena.words[slots_at:][: (slots + 1) * SLOT_WORDS].reshape(-1, SLOT_WORDS)
    rows[:, ROUND] = first_round
    rows[:, POSITION] = IDLE
    rows[:, NEXT] = NOT_IN_FLIGHT
    rows[slots, [NEXT, PREVIOUS]] = slots
    for has_lanes in (0, 1):
        template = store.arena.bytes[templates_at + has_lanes * TEMPLATE_BYTES :][:TEMPLATE_BYTES]
        payload_bytes = HEADER_BYTES + has_lanes * 4 * lanes
        macs, addresses = (mac, group_mac(job)), (address, group_address(job))
        write_udp(template, macs, addresses, (port, port), payload_bytes)
        template[MESSAGE_AT] = UPDATE << 4 | (SIZES[lanes] if has_lanes else SIZE_NONE)
        template[JOB_AT] = job
    return at


@inline
def open_worker(arena: Arena, at: int) -> Worker:
    words = arena.words
    own = at + AGENT_WORDS
    slots = words[own + SLOTS]
    slots_at, fifo_at = words[own + SLOTS_AT], words[own + FIFO_AT]
    tensors_at = words[own + TENSORS_AT]
    return Worker(
        words[own : own + OWN_WORDS],
        words[slots_at : slots_at + (slots + 1) * SLOT_WORDS],
        words[fifo_at : fifo_at + slots],
        words[tensors_at : tensors_at + TENSORS * TENSOR_WORDS],
    )


@inline
def begin_tensors(arena: Arena, at: int, worker: Worker, now_ps: int) -> None:
    """Fill the slots with the next tensor that waits; empty ones are done at once."""
    state = worker.state
    while state[TENSORS_COUNT] > 0 and state[BLOCKS_LEFT] == 0:
        row = state[TENSORS_FIRST] * TENSOR_WORDS
        for i in range(TENSOR_WORDS):
            state[CURRENT + i] = worker.tensors[row + i]
        state[TENSORS_FIRST] = (state[TENSORS_FIRST] + 1) % TENSORS
        state[TENSORS_COUNT] -= 1
        blocks = (state[CURRENT + COUNT] + state[LANES] - 1) // state[LANES]
        state[BLOCKS] = state[BLOCKS_LEFT] = blocks
        before = state[SLOTS] if state[CURRENT + DTYPE] == FLOAT32 else 0
        for slot in range(min(state[SLOTS], blocks)):
            begin_round(worker, slot, slot - before, 0)
            arena.words[at + READY] = 1
        if blocks == 0:
            report_tensor(arena, at, worker, now_ps)


@inline
def report_tensor(arena: Arena, at: int, worker: Worker, now_ps: int) -> None:
    state = worker.state
    complete(arena, at, REDUCED, state[CURRENT + COUNT], state[CURRENT + TAG], now_ps)


@inline
def begin_round(worker: Worker, slot: int, position: int, exponent: int) -> None:
    """Have the slot send what belongs to `position`, a block of this largest exponent."""
    row = slot * SLOT_WORDS
    worker.slots[row + POSITION] = position
    worker.slots[row + EXPONENT] = exponent
    worker.slots[row + ATTEMPTS] = 0
    push_slot(worker, slot)


@inline
def push_slot(worker: Worker, slot: int) -> None:
    """Queue the slot for sending, once."""
    state = worker.state
    row = slot * SLOT_WORDS
    if worker.slots[row + WAITS]:
        return
    worker.slots[row + WAITS] = 1
    place = state[FIFO_FIRST] + state[FIFO_COUNT]
    if place >= state[SLOTS]:
        place -= state[SLOTS]
    worker.fifo[place] = slot
    state[FIFO_COUNT] += 1


@inline
def pop_slot(worker: Worker) -> int:
    state = worker.state
    slot = worker.fifo[state[FIFO_FIRST]]
    worker.slots[slot * SLOT_WORDS + WAITS] = 0
    state[FIFO_COUNT] -= 1
    state[FIFO_FIRST] += 1
    if state[FIFO_FIRST] == state[SLOTS]:
        state[FIFO_FIRST] = 0
    return slot


@inline
def link_slot(worker: Worker, slot: int, now_ps: int) -> None:
    """Put the slot behind all others in flight."""
    slots = worker.slots
    row = slot * SLOT_WORDS
    ends = worker.state[SLOTS] * SLOT_WORDS
    last = slots[ends + PREVIOUS]
    slots[row + SENT_PS] = now_ps
    slots[row + PREVIOUS] = last
    slots[row + NEXT] = worker.state[SLOTS]
    slots[last * SLOT_WORDS + NEXT] = slot
    slots[ends + PREVIOUS] = slot


@inline
def unlink_slot(worker: Worker, slot: int) -> None:
    slots = worker.slots
    row = slot * SLOT_WORDS
    after, before = slots[row + NEXT], slots[row + PREVIOUS]
    if after != NOT_IN_FLIGHT:
        slots[before * SLOT_WORDS + NEXT] = after
        slots[after * SLOT_WORDS + PREVIOUS] = before
        slots[row + NEXT] = NOT_IN_FLIGHT


@inline
def set_timer(arena: Arena, at: int, worker: Worker) -> None:
    """The slot that was sent first is overdue first, as all have the same timeout."""
    state = worker.state
    first = worker.slots[state[SLOTS] * SLOT_WORDS + NEXT]
    if first == state[SLOTS]:
        arena.words[at + TIMER_AT_PS] = FOREVER_PS
    else:
        sent_ps = worker.slots[first * SLOT_WORDS + SENT_PS]
        arena.words[at + TIMER_AT_PS] = sent_ps + state[TIMEOUT_PS]


@inline
def block_number(worker: Worker, slot: int) -> int:
    """The wire's number of the block that the slot has in flight."""
    return (worker.slots[slot * SLOT_WORDS + ROUND] * worker.state[SLOTS] + slot) & BLOCK_MASK


@compiled(types.boolean(ARENA, *[types.int64] * 7))
def start_tensor(
    arena: Arena,
    at: int,
    source_at: int,
    target_at: int,
    count: int,
    dtype: int,
    tag: int,
    now_ps: int,
) -> bool:
    """Sum a tensor over all workers; False, and nothing is done, while 64 wait already.

    All workers of a job start the same tensors in the same order. REDUCED is reported when the
    sum is there; until then the source must stay as it is.

    Args:
        arena: Where the worker is.
        at: The worker.
        source_at: Offset of the elements in arena.memory.
        target_at: Offset of the sum; may be `source_at`, and must not overlap it otherwise.
        count: Elements of 4 bytes, none to any number.
        dtype: FLOAT32 (see `scaling` for what is lost) or INT32 (wraps around).
        tag: Given back with REDUCED.
        now_ps: The time.
    """
    worker = open_worker(arena, at)
    state = worker.state
    if state[TENSORS_COUNT] == TENSORS:
        return False
    row = (state[TENSORS_FIRST] + state[TENSORS_COUNT]) % TENSORS * TENSOR_WORDS
    worker.tensors[row + SOURCE_AT] = source_at
    worker.tensors[row + TARGET_AT] = target_at
    worker.tensors[row + COUNT] = count
    worker.tensors[row + DTYPE] = dtype
    worker.tensors[row + TAG] = tag
    state[TENSORS_COUNT] += 1
    if state[BLOCKS_LEFT] == 0:
        begin_tensors(arena, at, worker, now_ps)
    return True


@inline
def block_start(worker: Worker, position: int) -> int:
    """Bytes from the start of the current tensor to a block."""
    return 4 * position * worker.state[LANES]


@inline
def block_end(worker: Worker, position: int) -> int:
    """Bytes from the start of the current tensor to the end of a block, less in the last one."""
    state = worker.state
    return 4 * min((position + 1) * state[LANES], state[CURRENT + COUNT])


@inline
def own_exponent(arena: Arena, worker: Worker, position: int) -> int:
    """The exponent of this worker's block at `position`; 0 where there is none."""
    state = worker.state
    if state[CURRENT + DTYPE] != FLOAT32 or position >= state[BLOCKS]:
        return 0
    source = state[CURRENT + SOURCE_AT]
    start, end = block_start(worker, position), block_end(worker, position)
    return max_exponent(arena.memory[source + start : source + end].view(np.float32))


@inline
def write_lanes(arena: Arena, worker: Worker, slot: int, lanes: Bytes) -> None:
    """Write the slot's block into a packet, zeros behind its end."""
    state = worker.state
    row = slot * SLOT_WORDS
    position, exponent = worker.slots[row + POSITION], worker.slots[row + EXPONENT]
    start, end = block_start(worker, position), block_end(worker, position)
    source = state[CURRENT + SOURCE_AT]
    block = arena.memory[source + start : source + end]
    size = block.size
    if exponent == SPECIAL:
        size = 0
    elif state[CURRENT + DTYPE] == FLOAT32:
        quantise(block.view(np.float32), lanes, shift_of(exponent, state[BITS]))
    else:
        pack(block.view(np.int32), lanes)
    for i in range(size, 4 * state[LANES]):
        lanes[i] = 0


@inline
def read_lanes(arena: Arena, worker: Worker, slot: int, lanes: Bytes) -> None:
    """Write the result of the slot's block to where the sum goes."""
    state = worker.state
    row = slot * SLOT_WORDS
    position, exponent = worker.slots[row + POSITION], worker.slots[row + EXPONENT]
    start, end = block_start(worker, position), block_end(worker, position)
    target = state[CURRENT + TARGET_AT]
    block = arena.memory[target + start : target + end]
    if exponent == SPECIAL:
        fill_nan(block.view(np.float32))
    elif state[CURRENT + DTYPE] == FLOAT32:
        dequantise(lanes, block.view(np.float32), shift_of(exponent, state[BITS]))
    else:
        unpack(lanes, block.view(np.int32))


@inline
def make_update(arena: Arena, worker: Worker, slot: int) -> int:
    """Return the packet of the slot's round."""
    state = worker.state
    row = slot * SLOT_WORDS
    position, version = worker.slots[row + POSITION], worker.slots[row + ROUND] & 1
    packet = allocate_packet(arena)
    view = open_packet(arena, packet)
    head = view.head
    template = state[TEMPLATES_AT] + (TEMPLATE_BYTES if position >= 0 else 0)
    copy_items(head, 0, arena.bytes, template, VALUES_AT)
    put32(head, BLOCK_AT, block_number(worker, slot))
    put16(head, POOL_INDEX_AT, version << VERSION_SHIFT | slot)
    head[EXPONENT_AT] = own_exponent(arena, worker, position + state[SLOTS])
    end = VALUES_AT
    if position >= 0:
        end += 4 * state[LANES]
        write_lanes(arena, worker, slot, head[VALUES_AT:end])
    view.row[HEAD_LEN] = end
    return packet


@handler
def transmit(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Return the packet of the slot that has waited longest."""
    worker = open_worker(arena, at)
    state = worker.state
    packet = -1
    while packet < 0 and state[FIFO_COUNT] > 0:
        slot = pop_slot(worker)
        row = slot * SLOT_WORDS
        if worker.slots[row + POSITION] == IDLE:
            continue  # the result came before the retransmission was sent
        packet = make_update(arena, worker, slot)
        if worker.slots[row + ATTEMPTS] > 0:
            arena.words[at + RETRANSMISSIONS] += 1
        worker.slots[row + ATTEMPTS] += 1
        link_slot(worker, slot, now_ps)
        set_timer(arena, at, worker)
    arena.words[at + READY] = state[FIFO_COUNT] > 0
    return packet


@inline
def is_awaited(worker: Worker, head: Bytes, size: int) -> bool:
    """Whether a packet is the result of a round that is under way, and whole.

    A duplicate is not: the switches also answer retransmissions.
    """
    state = worker.state
    if size < VALUES_AT or head[JOB_AT] != state[JOB] or head[MESSAGE_AT] >> 4 != RESULT:
        return False
    pool_index = get16(head, POOL_INDEX_AT)
    slot = pool_index & (MAX_SLOTS - 1)
    if slot >= state[SLOTS]:
        return False
    position = worker.slots[slot * SLOT_WORDS + POSITION]
    if position == IDLE or get32(head, BLOCK_AT) != block_number(worker, slot):
        return False
    is_whole = size >= VALUES_AT + 4 * state[LANES]
    return is_whole if position >= 0 else head[MESSAGE_AT] & 7 == SIZE_NONE


@inline
def take_sample(worker: Worker, slot: int, now_ps: int) -> None:
    """Update the averages from a round trip (RFC 6298), one of `slots` in the same time.

    As many samples per round trip would make the averages forget within a fraction of
    one, hence the smaller gains (RFC 7323, appendix G). Rounds of an exponent alone, which are
    much shorter, don't count, and neither do ambiguous ones (Karn).
    """
    state = worker.state
    row = slot * SLOT_WORDS
    if worker.slots[row + ATTEMPTS] != 1 or worker.slots[row + POSITION] < 0:
        return
    sample_ps = now_ps - worker.slots[row + SENT_PS]
    if state[SMOOTHED_PS] == 0:
        state[SMOOTHED_PS] = sample_ps
        state[VARIATION_PS] = sample_ps // 2
    else:
        error_ps = sample_ps - state[SMOOTHED_PS]
        state[VARIATION_PS] += (abs(error_ps) - state[VARIATION_PS]) // (4 * state[SLOTS])
        state[SMOOTHED_PS] += error_ps // (8 * state[SLOTS])


@inline
def end_backoff(worker: Worker) -> None:
    """Set the timeout as the averages say: a result has shown that packets get through.

    Karn would keep a doubled timeout until there is a round trip without retransmission. But
    with many workers and links, each block is sent again by somebody even at modest loss.
    """
    state = worker.state
    if state[SMOOTHED_PS] == 0:
        state[TIMEOUT_PS] = FIRST_TIMEOUTS * state[MIN_TIMEOUT_PS]
    else:
        timeout_ps = state[SMOOTHED_PS] + 4 * state[VARIATION_PS]
        state[TIMEOUT_PS] = max(timeout_ps, state[MIN_TIMEOUT_PS])


@inline
def take_result(arena: Arena, worker: Worker, slot: int, head: Bytes) -> None:
    """Keep what a result holds, and have the slot send its next block, if any."""
    state = worker.state
    row = slot * SLOT_WORDS
    position = worker.slots[row + POSITION]
    if position >= 0:
        read_lanes(arena, worker, slot, head[VALUES_AT : VALUES_AT + 4 * state[LANES]])
        state[BLOCKS_LEFT] -= 1
    worker.slots[row + ROUND] += 1
    if position + state[SLOTS] < state[BLOCKS]:
        begin_round(worker, slot, position + state[SLOTS], int(head[EXPONENT_AT]))
    else:
        worker.slots[row + POSITION] = IDLE


@handler
def receive(arena: Arena, at: int, packet: int, now_ps: int) -> int:
    """Take a result."""
    worker = open_worker(arena, at)
    view = open_packet(arena, packet)
    head = view.head
    if is_awaited(worker, head, view.row[HEAD_LEN]):
        slot = get16(head, POOL_INDEX_AT) & (MAX_SLOTS - 1)
        unlink_slot(worker, slot)
        take_sample(worker, slot, now_ps)
        end_backoff(worker)
        take_result(arena, worker, slot, head)
        if worker.state[BLOCKS_LEFT] == 0:
            report_tensor(arena, at, worker, now_ps)
            begin_tensors(arena, at, worker, now_ps)
        set_timer(arena, at, worker)
        arena.words[at + READY] = worker.state[FIFO_COUNT] > 0
    return 0


@inline
def queue_overdue(worker: Worker, now_ps: int) -> bool:
    """Queue the slots whose timeout is over; return whether there are any."""
    state = worker.state
    ends = state[SLOTS] * SLOT_WORDS
    slot = worker.slots[ends + NEXT]
    is_overdue = False
    while slot != state[SLOTS]:
        if worker.slots[slot * SLOT_WORDS + SENT_PS] + state[TIMEOUT_PS] > now_ps:
            break
        is_overdue = True
        unlink_slot(worker, slot)
        push_slot(worker, slot)
        slot = worker.slots[ends + NEXT]
    return is_overdue


@handler
def fire_timer(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Queue what is overdue, and double the timeout, once per timeout (RFC 6298, 5.5)."""
    worker = open_worker(arena, at)
    state = worker.state
    if queue_overdue(worker, now_ps):
        arena.words[at + READY] = 1
        if state[BACKED_OFF_PS] + state[TIMEOUT_PS] <= now_ps:
            state[BACKED_OFF_PS] = now_ps
            most_ps = MAX_BACKOFF * state[MIN_TIMEOUT_PS]
            state[TIMEOUT_PS] = min(2 * state[TIMEOUT_PS], most_ps)
    set_timer(arena, at, worker)
    return 0
