"""A host's side of SwitchML: an agent that streams tensors through the switches.

A tensor's blocks (64 or 256 elements, as many as a packet has lanes) are dealt to slots in turn,
beginning where those of the tensor before end: a slot goes on to its next tensor without waiting
for others. It has one packet in flight, and the result of one releases the next, so the workers
keep in step (self-clocking). A slot's rounds alternate between two versions of its
state in the switches, through all tensors of the job: a switch's state of one round is
overwritten in the round after next, which a worker begins only when it has the next round's
result, to which every worker contributed after it had this round's.

A packet without result is sent again when three packets sent later have theirs, or after a
timeout from the measured round trip (`ringleaf.ina.flight`).
"""

from __future__ import annotations

from ringleaf.core.arena import Arena, Bytes
from ringleaf.core.compiled import handler, inline
from ringleaf.core.packets import HEAD_LEN, open_packet
from ringleaf.hosts.agent import PROGRESS, READY, RETRANSMISSIONS, TIMER_AT_PS
from ringleaf.ina.flight import (
    ATTEMPTS,
    OUT_OF_TURN,
    back_off,
    deadline_ps,
    end_backoff,
    forget_sendings,
    has_waiting,
    link_slot,
    note_answer,
    pop_slot,
    push_first,
    queue_overdue,
    queue_passed,
    take_sample,
    unlink_slot,
)
from ringleaf.ina.flight import SLOT_WORDS as FLIGHT_SLOT_WORDS
from ringleaf.ina.switchml.blocks import (
    begin_round,
    deal_blocks,
    end_dealing,
    next_tensor,
    row_of,
    tree_of,
)
from ringleaf.ina.switchml.fetching import fetch_for_result, fetch_next
from ringleaf.ina.switchml.keeping import (
    keep_packet,
    note_moved,
    note_resumed,
    repeats,
    stop_repeating,
)
from ringleaf.ina.switchml.state import (
    IDLE,
    LANES,
    POSITION,
    ROUND,
    SLOT_WORDS,
    SLOTS,
    TENSOR,
    SwitchMLWorker,
    open_worker,
)
from ringleaf.ina.switchml.updates import (
    awaited_slot,
    make_update,
    read_lanes,
)
from ringleaf.ina.switchml.wire import (
    EXPONENT_AT,
    VALUES_AT,
)
from ringleaf.ina.tensors import (
    BLOCKS,
    LEFT,
    PRIORITY,
    end_tensor,
)


@handler
def begin_tensor(arena: Arena, at: int, row: int, now_ps: int) -> int:
    """Deal a new tensor's blocks to slots; an empty one is done at once."""
    worker = open_worker(arena, at)
    slots, first = worker.state[SLOTS], deal_blocks(worker, row)
    for i in range(slots):
        slot = (first + i) % slots
        # A busy slot comes to this tensor by itself, when its blocks of the tensors before are
        # done.
        if worker.slots[slot * SLOT_WORDS + POSITION] == IDLE:
            next_tensor(arena, worker, slot)
    end_dealing(arena, at, worker, row, now_ps)
    return 0


@inline
def send_slot(arena: Arena, at: int, worker: SwitchMLWorker, slot: int, now_ps: int) -> int:
    """Return the slot's packet; -1 if its result came before the retransmission was sent."""
    if not has_packet(arena, worker, slot):
        return -1
    packet = make_update(arena, worker, slot)
    note_sending(arena, at, worker, slot, packet, now_ps)
    return int(packet)


@inline
def has_packet(arena: Arena, worker: SwitchMLWorker, slot: int) -> bool:
    """Return whether a slot that was queued has a packet: no result came meanwhile."""
    is_idle = worker.slots[slot * SLOT_WORDS + POSITION] == IDLE
    return bool(not is_idle or repeats(arena, worker, slot))


@inline
def note_sending(
    arena: Arena, at: int, worker: SwitchMLWorker, slot: int, packet: int, now_ps: int
) -> None:
    """Count a packet of the slot as on the line, keep it if need be, and set the timer."""
    keep_packet(arena, worker, slot, packet)
    # `link_slot` counts this attempt below, so here are those before it.
    if worker.flight.slots[slot * FLIGHT_SLOT_WORDS + ATTEMPTS] > 0:
        arena.words[at + RETRANSMISSIONS] += 1
    priority = worker.tensors.rows[row_of(worker, slot) + PRIORITY]
    link_slot(worker.flight, slot, tree_of(worker, slot), priority, now_ps)
    arena.words[at + TIMER_AT_PS] = deadline_ps(worker.flight)


@handler
def transmit(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Return the packet of the slot that has waited longest."""
    worker = open_worker(arena, at)
    packet = -1
    while packet < 0 and has_waiting(worker.flight):
        packet = send_slot(arena, at, worker, pop_slot(worker.flight), now_ps)
    arena.words[at + READY] = has_waiting(worker.flight)
    fetch_next(arena, worker)
    return packet


@inline
def take_result(
    arena: Arena, at: int, worker: SwitchMLWorker, slot: int, head: Bytes, now_ps: int
) -> None:
    """Keep a result's values, and let the slot send its next block, if any."""
    # The first round of a float tensor in a slot has a position below 0. It carries no values, only
    # the exponent of the block after it.
    if worker.slots[slot * SLOT_WORDS + POSITION] >= 0:
        read_lanes(arena, worker, slot, head[VALUES_AT : VALUES_AT + 4 * worker.state[LANES]])
    move_on(arena, at, worker, slot, head, now_ps)


@inline
def move_on(
    arena: Arena, at: int, worker: SwitchMLWorker, slot: int, head: Bytes, now_ps: int
) -> None:
    """Let a slot that has its result's values send its next block, if any."""
    state, tensors = worker.state, worker.tensors
    row, tensor = slot * SLOT_WORDS, row_of(worker, slot)
    position = worker.slots[row + POSITION]
    if position >= 0:
        tensors.rows[tensor + LEFT] -= 1
    # Rounds go on through all tensors. Their lowest bit is the version in the switches, which must
    # alternate where one tensor ends and the next begins, too.
    worker.slots[row + ROUND] += 1
    if position + state[SLOTS] < tensors.rows[tensor + BLOCKS]:
        # The switches have taken the maximum of this exponent over all workers, so all of them
        # scale the next block alike.
        begin_round(arena, worker, slot, position + state[SLOTS], int(head[EXPONENT_AT]))
    else:
        worker.slots[row + TENSOR] += 1
        next_tensor(arena, worker, slot)
    end_tensor(arena, at, tensors, tensor, now_ps)


@inline
def take_answer(
    arena: Arena, at: int, worker: SwitchMLWorker, slot: int, head: Bytes, now_ps: int
) -> None:
    """Take the result that a slot awaits, and draw conclusions about other packets."""
    note_arrival(arena, at, worker, slot, now_ps)
    take_result(arena, at, worker, slot, head, now_ps)
    end_answer(arena, at, worker, now_ps)


@inline
def note_arrival(arena: Arena, at: int, worker: SwitchMLWorker, slot: int, now_ps: int) -> None:
    """Draw conclusions from the arrival of the result that a slot awaits."""
    arena.words[at + PROGRESS] += 1
    note_resumed(arena, worker, now_ps)
    unlink_slot(worker.flight, slot)
    if worker.slots[slot * SLOT_WORDS + POSITION] >= 0:  # an exponent alone is much faster
        take_sample(worker.flight, slot, now_ps)
    end_backoff(worker.flight)
    note_answer(worker.flight, slot, now_ps)


@inline
def end_answer(arena: Arena, at: int, worker: SwitchMLWorker, now_ps: int) -> None:
    """Queue packets that must be lost by now, after a result was taken."""
    queue_passed(worker.flight, now_ps)
    arena.words[at + TIMER_AT_PS] = deadline_ps(worker.flight)
    arena.words[at + READY] = has_waiting(worker.flight)


@inline
def end_repeat(arena: Arena, at: int, worker: SwitchMLWorker, slot: int, now_ps: int) -> bool:
    """Let a slot that has repeated a round go on; return False if it has not.

    The result's values were taken when it came first, and so was what it says of the next block.
    """
    if not repeats(arena, worker, slot):
        return False
    note_arrival(arena, at, worker, slot, now_ps)
    stop_repeating(arena, worker, slot)
    worker.slots[slot * SLOT_WORDS + ROUND] += 1
    if worker.slots[slot * SLOT_WORDS + POSITION] != IDLE:
        push_first(worker.flight, slot)
    end_answer(arena, at, worker, now_ps)
    return True


@inline
def count_sent(arena: Arena, worker: SwitchMLWorker) -> int:
    """Return the number of slots whose packet has been sent, and would have to be again."""
    count = 0
    for slot in range(worker.state[SLOTS]):
        is_sent = worker.flight.slots[slot * FLIGHT_SLOT_WORDS + ATTEMPTS] > 0
        if repeats(arena, worker, slot) or (is_sent and has_packet(arena, worker, slot)):
            count += 1
    return count


@handler
def begin_again(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Queue all packets in flight as if none had been sent: their numbers are others now.

    The timer, which is due at once, has the first one sent.
    """
    queue_all(arena, at, open_worker(arena, at), now_ps)
    return 0


@inline
def queue_all(arena: Arena, at: int, worker: SwitchMLWorker, now_ps: int) -> None:
    """Do what `begin_again` does."""
    arena.words[at + RETRANSMISSIONS] += count_sent(arena, worker)
    forget_sendings(worker.flight)
    note_moved(arena, worker)
    worker.flight.state[OUT_OF_TURN] = 1
    for slot in range(worker.state[SLOTS]):
        if has_packet(arena, worker, slot):
            push_first(worker.flight, slot)
    worker.flight.state[OUT_OF_TURN] = 0
    arena.words[at + TIMER_AT_PS] = now_ps
    arena.words[at + READY] = 0


@handler
def receive(arena: Arena, at: int, packet: int, now_ps: int) -> int:
    """Take a result."""
    worker = open_worker(arena, at)
    view = open_packet(arena, packet)
    slot = awaited_slot(arena, worker, view.head, view.row[HEAD_LEN])
    if slot >= 0 and not end_repeat(arena, at, worker, slot, now_ps):
        take_answer(arena, at, worker, slot, view.head, now_ps)
    return 0


@handler
def fetch_ahead(arena: Arena, at: int, packet: int, _now_ps: int) -> int:
    """Fetch what a result will need: its slot, where its values go, and the slot's next blocks."""
    fetch_for_result(arena, at, packet)
    return 0


@handler
def fire_timer(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Queue overdue packets."""
    worker = open_worker(arena, at)
    # Only a timeout doubles the timeout. Packets that were passed by are resent at once, and show
    # that others get through.
    if queue_overdue(worker.flight, now_ps):
        back_off(worker.flight, now_ps)
    arena.words[at + TIMER_AT_PS] = deadline_ps(worker.flight)
    arena.words[at + READY] = has_waiting(worker.flight)
    return 0
