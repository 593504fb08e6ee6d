"""The kernel of an embedding exchange on a NIC: forward and backward tasks (`nic/state.py`)."""

from __future__ import annotations

from ringleaf.core.arena import Arena
from ringleaf.core.compiled import handler
from ringleaf.hosts.nic.embedding.backward import (
    begin_backward,
    handle_backward,
    time_of_gradients,
)
from ringleaf.hosts.nic.embedding.forward import (
    FIRST,
    begin_forward,
    expect_task,
    handle_forward,
    time_of_lookups,
)
from ringleaf.hosts.nic.embedding.sizes import FORWARD
from ringleaf.hosts.nic.embedding.state import CAPACITY, PHASE, open_exchange
from ringleaf.hosts.nic.state import ARRIVED, BEGIN, PREPARE, SENT, TAG


@handler
def kernel(arena: Arena, at: int, event: int, now_ps: int) -> int:
    """Take note of an event; return the time to compute for a message that has come."""
    n = open_exchange(arena, at).numbers
    is_forward = n[PHASE] == FORWARD
    if event == PREPARE:
        expect_task(arena, at, n, 1 if is_forward else n[CAPACITY])
    elif event == BEGIN:
        if is_forward:
            begin_forward(arena, at, now_ps)
        else:
            begin_backward(arena, at, now_ps)
    elif event == ARRIVED:
        if arena.words[at + TAG] & 3 == FIRST:
            return time_of_lookups(arena, at, n) if is_forward else time_of_gradients(arena, at, n)
    elif event != SENT:
        if is_forward:
            handle_forward(arena, at, n, now_ps)
        else:
            handle_backward(arena, at, n, now_ps)
    return 0
