"""Messages as flows: when they begin, how much is left of them, when they and their answers arrive.

A queue pair's messages are carried one after the other, without gaps, as those of packets are. So
the queue pair is the flow, and rates change only when it falls idle, or ceases to be.
"""

from __future__ import annotations

import ringleaf.networks.flow.fill_tables as f
import ringleaf.networks.flow.state as n
import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import inline
from ringleaf.core.headers import PRIORITIES
from ringleaf.core.heap import COUNT, event_at, push_event
from ringleaf.core.units import FOREVER_PS, PS_PER_S
from ringleaf.core.views import as_floats, prefetch
from ringleaf.hosts.agent import HOST, PROGRESS, READY, REFUSALS, complete
from ringleaf.hosts.fifo import FIFO_COUNT, FIFO_WORDS, fifo_pop, open_fifo
from ringleaf.hosts.rc.landing import ASKED, choose_landing, land
from ringleaf.hosts.rc.queue import has_credit, owe
from ringleaf.hosts.rc.sender import packets_of
from ringleaf.hosts.rc.state import (
    ACKED_PSN,
    ADVERTISED,
    ANSWERS_AT,
    EAGER,
    GAP_REPORTED,
    HAS_DATA,
    IN_SENDERS,
    LEFT,
    LEVELS,
    LIMIT,
    NEXT_PSN,
    OVERRUN,
    PRIORITY,
    RECEIVED,
    RECEIVES_AT,
    RECEIVES_END,
    RECEIVES_FIRST,
    REQUEST_WORDS,
    RING,
    SENDERS_AT,
    SENDS_AT,
    SENDS_CURRENT,
    SENDS_END,
    SENDS_FIRST,
    SENT,
    SYNDROME,
    Qp,
    qp_at,
)
from ringleaf.hosts.rc.wire import (
    ACK,
    CREDITS,
    FRAME_OVERHEAD_BYTES,
    PACKET_OVERHEAD_BYTES,
    credit_code,
)
from ringleaf.networks.flow.balancing import wait_ps
from ringleaf.networks.flow.counting import count_bytes
from ringleaf.networks.flow.filling import solve_changes
from ringleaf.networks.flow.queues import balance
from ringleaf.networks.flow.windows import (
    backlog_of,
    come_to_rest,
    is_long,
    left_of,
    move_on,
    send,
    unacknowledged,
)
from ringleaf.networks.virtual.lines import line_bytes

# Events: kind | flow << 3.
END = 0  # of a message: its last bit has been carried
ARRIVE = 1  # its last bit is at the receiver
ANSWER = 2  # the acknowledgement of the oldest message is at the sender
CREDIT = 3  # an acknowledgement that brings credit only is there
SUMMED = 4  # all workers have the sum of the switches
FULL = 5  # a window is in flight


@inline
def bytes_on_line(size_bytes: int, mtu: int) -> int:
    """Return the line time of a message's packets in bytes, their headers and gaps included."""
    packets = packets_of(size_bytes, mtu)
    last = size_bytes - (packets - 1) * mtu
    whole = (packets - 1) * (mtu + FRAME_OVERHEAD_BYTES)
    return whole + line_bytes(last + PACKET_OVERHEAD_BYTES)


@inline
def qp_of(arena: Arena, at: int, flow: int) -> Qp:
    """Return the queue pair that sends a flow."""
    return qp_at(arena, arena.words[n.flow_at(arena.words, at, flow) + n.QP_AT])


@inline
def fetch_ahead(words: Words, at: int) -> None:
    """Have the processor fetch what the next events will need, as large runs miss its caches."""
    heap = words[words[at + n.NET_AT] + s.HEAP_AT]
    if words[heap + COUNT] > 0:
        fetch_next(words, at, event_at(words, heap, 0))
    # Those that may come after it are fetched blindly: their flows are mostly in no near cache, so
    # that looking for what they refer to would take longer than it saves.
    for row in range(1, 5):
        soon = n.flow_at(words, at, event_at(words, heap, row) >> 3)
        prefetch(words, soon)
        prefetch(words, soon + n.ANSWER_PS)


@inline
def fetch_next(words: Words, at: int, event: int) -> None:
    """Have all fetched that the next event will need; its flow is there, as it has been near."""
    kind, row = event & 7, n.flow_at(words, at, event >> 3)
    if words[row + n.AGENT] == 0:
        return
    qp = words[row + n.QP_AT]
    if kind == END:
        prefetch(words, words[qp + SENDS_AT] + words[qp + SENDS_CURRENT] % RING * REQUEST_WORDS)
    elif kind == ARRIVE:
        peer = words[n.flow_at(words, at, words[row + n.BACK]) + n.QP_AT]
        request = words[peer + RECEIVES_FIRST] % RING * REQUEST_WORDS
        prefetch(words, words[qp + SENDS_AT] + request)
        prefetch(words, words[words[peer + RECEIVES_AT] + request + 2])
    elif kind == ANSWER:
        request = words[qp + SENDS_FIRST] % RING * REQUEST_WORDS
        prefetch(words, words[words[qp + SENDS_AT] + request + 2])


@inline
def push(words: Words, at: int, time_ps: int, kind: int, flow: int) -> None:
    """Add an event of a flow; those of one time come in the order of flows."""
    push_event(words, words[words[at + n.NET_AT] + s.HEAP_AT], time_ps, kind | flow << 3, 0)


@inline
def stir(words: Words, at: int, agent: int, now_ps: int) -> None:
    """Have an agent looked at when the instant is over."""
    host = words[agent + HOST]
    words[at + n.NOW_PS] = now_ps
    if not words[words[at + n.IS_STIRRED_AT] + host]:
        words[words[at + n.IS_STIRRED_AT] + host] = 1
        words[words[at + n.STIRRED_AT] + words[at + n.STIRRED]] = agent
        words[at + n.STIRRED] += 1


@inline
def start(arena: Arena, at: int, flow: int, now_ps: int) -> None:
    """Begin to carry a queue pair's next message, if there is one with credit."""
    words = arena.words
    row = n.flow_at(words, at, flow)
    qp = qp_of(arena, at, flow)
    if words[row + n.IS_ON] or not may_send(qp):
        return
    words[row + n.IS_ON] = 1
    words[f.flow_row(words, words[at + n.FILLING_AT], flow) + f.LEVEL] = qp.state[PRIORITY]
    in_flight = unacknowledged(words, at, flow, now_ps)
    come_to_rest(words, row, in_flight)
    begin(arena, at, row, qp, now_ps)
    as_floats(words)[row + n.BEFORE] = in_flight
    words[row + n.HAS_WINDOW] = in_flight >= words[row + n.WINDOW] and is_long(words, row)
    if not words[row + n.IS_CUT]:
        f.set_count(words, words[at + n.FILLING_AT], flow, 1)
        count_flow(words, at, flow, words[row + n.BACK], 1)


@inline
def may_send(qp: Qp) -> bool:
    """Return whether a queue pair has a message to send, and credit for it."""
    return bool(qp.state[SENDS_CURRENT] < qp.state[SENDS_END] and has_credit(qp))


@inline
def begin(arena: Arena, at: int, row: int, qp: Qp, now_ps: int) -> None:
    """Begin with the message that is next; the rate stays as it is."""
    words = arena.words
    request = (qp.state[SENDS_CURRENT] % RING) * REQUEST_WORDS
    size = bytes_on_line(qp.sends[request + 1], words[row + n.PAYLOAD_BYTES])
    floats = as_floats(words)
    floats[row + n.BEFORE] += floats[row + n.SIZE]
    floats[row + n.REST] = floats[row + n.SIZE] = 8.0 * size
    words[row + n.FROM_PS] = words[row + n.BEGAN_PS] = now_ps


@inline
def count_flow(words: Words, at: int, flow: int, back: int, more: int) -> None:
    """Count one more flow, or one less, on its links, and its acknowledgements on theirs."""
    filling = words[at + n.FILLING_AT]
    entry = f.first_entry(words, filling, flow)
    words[n.link_at(words, at, words[entry + f.LINK]) + n.CARRIES] += more * f.times(words, entry)
    answer(words, at, back, more)


@inline
def answer(words: Words, at: int, back: int, more: int) -> None:
    """Count one more flow, or one less, whose acknowledgements go the way of another one."""
    filling = words[at + n.FILLING_AT]
    row = f.flow_row(words, filling, back)
    first = words[row + f.FIRST_ENTRY]
    for entry in range(first, first + words[row + f.ENTRY_COUNT]):
        link = words[f.entry_row(words, filling, entry) + f.LINK]
        here = n.link_at(words, at, link)
        words[here + n.ANSWERED] += more
        if more > 0:
            f.put_in(words, filling, entry, f.FIRST_ANSWER, f.NEXT_ANSWER)
        else:
            f.take_out(words, filling, entry, f.FIRST_ANSWER, f.NEXT_ANSWER)
        floats = as_floats(words)
        if more > 0 and words[here + n.ANSWERED] == 1:
            f.set_capacity(words, filling, link, floats[here + n.REDUCED])
        elif words[here + n.ANSWERED] == 0:
            f.set_capacity(words, filling, link, floats[here + n.FULL])


@inline
def predict(words: Words, at: int, flow: int, now_ps: int) -> None:
    """Foretell when the message that is carried will end, at its rate."""
    floats, row = as_floats(words), n.flow_at(words, at, flow)
    rate = floats[row + n.RATE]
    if rate <= 0:
        words[row + n.END_PS] = FOREVER_PS
        return
    left_ps = floats[row + n.REST] * PS_PER_S / rate
    whole_ps = int(left_ps)
    words[row + n.END_PS] = now_ps + whole_ps + (left_ps > whole_ps)
    expect(words, at, flow)


@inline
def expect(words: Words, at: int, flow: int) -> None:
    """Have an event no later than a message's end; if it comes too early, it is put off."""
    row = n.flow_at(words, at, flow)
    if words[row + n.END_PS] < words[row + n.EXPECTED_PS]:
        words[row + n.EXPECTED_PS] = words[row + n.END_PS]
        push(words, at, words[row + n.END_PS], END, flow)


@inline
def is_over(words: Words, at: int, flow: int, now_ps: int) -> bool:
    """Return whether the message that is carried ends now, as an event has come for it."""
    row = n.flow_at(words, at, flow)
    if words[row + n.EXPECTED_PS] != now_ps:
        return False  # it was to end later once
    words[row + n.EXPECTED_PS] = FOREVER_PS
    if words[row + n.END_PS] > now_ps:
        expect(words, at, flow)
    return bool(words[row + n.IS_ON] and words[row + n.END_PS] == now_ps)


@inline
def foretell(words: Words, at: int, flow: int, now_ps: int) -> None:
    """Have a host send a flow, and foretell when its window will be used up, if it will."""
    row = n.flow_at(words, at, flow)
    if words[row + n.AGENT] == 0 or words[row + n.HAS_WINDOW] or not is_long(words, row):
        return
    before_ps = words[row + n.FULL_PS]
    send(words, at, flow, now_ps)
    if words[row + n.FULL_PS] not in (before_ps, FOREVER_PS):
        push(words, at, words[row + n.FULL_PS], FULL, flow)


@inline
def note_queue(words: Words, at: int, link: int, now_ps: int) -> None:
    """Note how much packets might queue in front of a link that not all flows fit through.

    A host's flows share its own link before, so they come no faster than that. What comes too fast
    is in the queue, until all windows are.
    """
    filling, floats = words[at + n.FILLING_AT], as_floats(words)
    here, row = n.link_at(words, at, link), f.link_row(words, filling, link)
    if words[here + n.IS_OF_HOST]:
        return
    inflow = 0.0
    entry = words[row + f.FIRST]
    while entry != f.NONE:
        there = f.entry_row(words, filling, entry)
        inflow += floats[there + f.USE] * may_come(words, at, words[there + f.FLOW])
        entry = words[there + f.NEXT]
    if inflow > floats[here + n.FULL]:
        queued = may_be_in_flight(words, at, row, now_ps) * (1 - floats[here + n.FULL] / inflow)
        floats[here + n.MOST_QUEUED] = max(floats[here + n.MOST_QUEUED], queued)


@inline
def may_be_in_flight(words: Words, at: int, row: int, now_ps: int) -> float:
    """Return the most bits of a link's flows that may be under way, given the solver's row."""
    filling, floats = words[at + n.FILLING_AT], as_floats(words)
    bits = 0.0
    entry = words[row + f.FIRST]
    while entry != f.NONE:
        there = f.entry_row(words, filling, entry)
        mine = n.flow_at(words, at, words[there + f.FLOW])
        left = left_of(words, mine, now_ps)
        bits += floats[there + f.USE] * min(left, words[mine + n.WINDOW])
        entry = words[there + f.NEXT]
    return bits


@inline
def may_come(words: Words, at: int, flow: int) -> float:
    """Return the rate at which a flow's packets may leave its host, whose link others share."""
    filling, floats = words[at + n.FILLING_AT], as_floats(words)
    row = f.flow_row(words, filling, flow)
    first = n.link_at(words, at, words[f.first_entry(words, filling, flow) + f.LINK])
    shared = floats[first + n.FULL] / max(words[first + n.CARRIES], 1)
    return min(floats[row + f.PEAK], shared)


@inline
def solve(words: Words, at: int, now_ps: int) -> None:
    """Give all flows their rates, and foretell the ends of those whose rates have changed."""
    filling, floats = words[at + n.FILLING_AT], as_floats(words)
    solve_changes(words, filling)
    has_queues = balance(words, at)
    for i in range(words[filling + f.MET_LINKS]):
        note_queue(words, at, words[words[filling + f.MET_LINKS_AT] + i], now_ps)
    for i in range(words[filling + f.MET_FLOWS]):
        flow = words[words[filling + f.MET_FLOWS_AT] + i]
        row = n.flow_at(words, at, flow)
        if not has_queues or words[row + n.FLOW_STAMP] != words[at + n.STAMP]:
            rate = floats[f.flow_row(words, filling, flow) + f.RATE]
            set_rate(words, at, flow, rate, now_ps)
    if has_queues:
        for i in range(words[at + n.MET_FLOWS]):
            flow = words[words[at + n.MET_FLOWS_AT] + i]
            rate = floats[n.flow_at(words, at, flow) + n.FITTING]
            set_rate(words, at, flow, rate, now_ps)
        for i in range(words[at + n.MET_FLOWS]):
            foretell(words, at, words[words[at + n.MET_FLOWS_AT] + i], now_ps)
    for i in range(words[filling + f.MET_FLOWS]):
        foretell(words, at, words[words[filling + f.MET_FLOWS_AT] + i], now_ps)


@inline
def set_rate(words: Words, at: int, flow: int, rate: float, now_ps: int) -> None:
    """Give a flow another rate."""
    floats, row = as_floats(words), n.flow_at(words, at, flow)
    if rate != floats[row + n.RATE]:
        move_on(words, row, now_ps)
        floats[row + n.RATE] = rate
        predict(words, at, flow, now_ps)


@inline
def end(arena: Arena, at: int, flow: int, now_ps: int) -> None:
    """Let a message arrive later whose last bit has been carried, and go on with the next one."""
    words = arena.words
    row = n.flow_at(words, at, flow)
    qp = qp_of(arena, at, flow)
    request = (qp.state[SENDS_CURRENT] % RING) * REQUEST_WORDS
    size, mtu = qp.sends[request + 1], words[row + n.PAYLOAD_BYTES]
    frame = line_bytes(min(size, mtu) + PACKET_OVERHEAD_BYTES)
    tail_ps = words[row + n.TAIL_PS] + round(as_floats(words)[row + n.STORE_PS] * (8 * frame))
    words[row + n.LAST_PS] = max(words[row + n.LAST_PS], now_ps + tail_ps)
    push(words, at, words[row + n.LAST_PS], ARRIVE, flow)
    count_bytes(words, at, flow, bytes_on_line(size, mtu), packets_of(size, mtu), now_ps)
    if qp.state[EAGER]:
        agent = words[row + n.AGENT]
        complete(arena, agent, LEFT, words[row + n.QP], qp.sends[request + 2], now_ps)
    qp.state[SENDS_CURRENT] += 1
    qp.state[NEXT_PSN] += packets_of(size, mtu)
    qp.state[ACKED_PSN] = qp.state[NEXT_PSN]  # no window is closed
    if may_send(qp):
        as_floats(words)[row + n.BACKLOG] = backlog_of(words, row, now_ps)
        begin(arena, at, row, qp, now_ps)
        predict(words, at, flow, now_ps)
        foretell(words, at, flow, now_ps)
    else:
        words[row + n.IS_ON] = 0
        words[row + n.IDLE_PS] = words[at + n.NOW_PS] = now_ps
        f.set_count(words, words[at + n.FILLING_AT], flow, 0)
        count_flow(words, at, flow, words[row + n.BACK], -1)


@inline
def arrive(arena: Arena, at: int, flow: int, now_ps: int) -> None:
    """Give a message to its receiver, which answers when the instant is over."""
    words = arena.words
    back = words[n.flow_at(words, at, flow) + n.BACK]
    row = n.flow_at(words, at, back)
    agent = words[row + n.AGENT]
    qp = qp_of(arena, at, back)
    if qp.state[RECEIVES_FIRST] == qp.state[RECEIVES_END]:
        words[row + n.HELD] += 1
        words[agent + REFUSALS] += 1
        qp.state[GAP_REPORTED] = 1  # so that it answers as soon as a receive is posted
        return
    take(arena, at, flow, qp, agent, words[row + n.QP], now_ps)
    stir(words, at, agent, now_ps)


@inline
def take(arena: Arena, at: int, flow: int, qp: Qp, agent: int, number: int, now_ps: int) -> None:
    """Let the oldest message that is on its way land in the receive that was posted first."""
    words = arena.words
    sender = qp_of(arena, at, flow)
    source = (qp.state[RECEIVES_FIRST] % RING) * REQUEST_WORDS
    row = source  # both ends count the same messages
    size, tag = sender.sends[source + 1], qp.receives[row + 2]
    target, how = qp.receives[row], qp.receives[row + 3]
    if how == ASKED and words[agent + HAS_DATA]:
        target, how = choose_landing(arena, target)
    if size > qp.receives[row + 1]:
        complete(arena, agent, OVERRUN, number, tag, now_ps)
    elif words[agent + HAS_DATA]:
        land(arena, how, target, arena.memory, sender.sends[source], size)
    qp.state[RECEIVES_FIRST] += 1
    words[agent + PROGRESS] += 1
    complete(arena, agent, RECEIVED, number, tag, now_ps, size)
    owe(arena, agent, number, qp, ACK)


@inline
def flush(arena: Arena, at: int) -> None:
    """Send the answers that are owed, and begin messages, of all agents that were stirred."""
    words = arena.words
    now_ps = words[at + n.NOW_PS]
    for i in range(words[at + n.STIRRED]):
        agent = words[words[at + n.STIRRED_AT] + i]
        words[words[at + n.IS_STIRRED_AT] + words[agent + HOST]] = 0
    count = words[at + n.STIRRED]
    words[at + n.STIRRED] = 0
    for i in range(count):
        serve(arena, at, words[words[at + n.STIRRED_AT] + i], now_ps)


@inline
def serve(arena: Arena, at: int, agent: int, now_ps: int) -> None:
    """Send what an agent owes, and begin what it may send."""
    words = arena.words
    first = words[words[at + n.HOSTS_AT] + words[agent + HOST]]
    answers = open_fifo(arena, agent + ANSWERS_AT)
    while answers.state[FIFO_COUNT] > 0:
        number = fifo_pop(answers)
        give_answer(arena, at, words[words[at + n.BY_QP_AT] + first + number], now_ps)
    levels = words[agent + LEVELS]
    for level in range(PRIORITIES):
        if levels >> level & 1 == 0:
            continue
        senders = open_fifo(arena, agent + SENDERS_AT + level * FIFO_WORDS)
        while senders.state[FIFO_COUNT] > 0:
            flow = words[words[at + n.BY_QP_AT] + first + fifo_pop(senders)]
            qp_of(arena, at, flow).state[IN_SENDERS] = 0
            start(arena, at, flow, now_ps)
    words[agent + LEVELS] = words[agent + READY] = 0


@inline
def give_answer(arena: Arena, at: int, flow: int, now_ps: int) -> None:
    """Acknowledge what a queue pair has received, and say how many receives it has posted."""
    words = arena.words
    row = n.flow_at(words, at, flow)
    sender = words[row + n.BACK]
    qp, peer = qp_of(arena, at, flow), qp_of(arena, at, sender)
    state = qp.state
    while words[row + n.HELD] > 0 and state[RECEIVES_FIRST] < state[RECEIVES_END]:
        words[row + n.HELD] -= 1
        state[SYNDROME] = ACK  # it is about to answer, so `owe` must not queue it again
        take(arena, at, sender, qp, words[row + n.AGENT], words[row + n.QP], now_ps)
    state[SYNDROME], state[GAP_REPORTED] = -1, words[row + n.HELD] > 0
    code = credit_code(state[RECEIVES_END] - state[RECEIVES_FIRST])
    state[ADVERTISED] = state[RECEIVES_FIRST] + CREDITS[code]
    waits_ps = int(wait_ps(words, at, flow))
    arrival_ps = now_ps + words[n.flow_at(words, at, sender) + n.ANSWER_PS] + waits_ps
    if words[row + n.TOLD] == state[RECEIVES_FIRST]:
        words[row + n.OFFERED] = state[ADVERTISED]
        push(words, at, arrival_ps, CREDIT, sender)
    while words[row + n.TOLD] < state[RECEIVES_FIRST]:
        peer.sends[(words[row + n.TOLD] % RING) * REQUEST_WORDS + 3] = state[ADVERTISED]
        words[row + n.TOLD] += 1
        push(words, at, arrival_ps, ANSWER, sender)


@inline
def take_answer(arena: Arena, at: int, flow: int, now_ps: int) -> None:
    """Report that the oldest message has arrived, and use the credit that its answer brings."""
    words = arena.words
    row = n.flow_at(words, at, flow)
    qp, agent = qp_of(arena, at, flow), words[row + n.AGENT]
    request = (qp.state[SENDS_FIRST] % RING) * REQUEST_WORDS
    words[agent + PROGRESS] += 1
    complete(arena, agent, SENT, words[row + n.QP], qp.sends[request + 2], now_ps)
    qp.state[SENDS_FIRST] += 1
    take_credit(arena, at, flow, qp.sends[request + 3], now_ps)


@inline
def take_credit(arena: Arena, at: int, flow: int, limit: int, now_ps: int) -> None:
    """Note credit for messages, and begin one that has waited for it."""
    qp = qp_of(arena, at, flow)
    if limit > qp.state[LIMIT]:
        qp.state[LIMIT] = limit
    arena.words[at + n.NOW_PS] = now_ps
    start(arena, at, flow, now_ps)
