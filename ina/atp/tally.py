"""The bits that tell whose values are in a block's sum, as a parameter server keeps them."""

from __future__ import annotations

from ringleaf.core.compiled import inline
from ringleaf.ina.atp.ledger import (
    BIT_MASK,
    ENTRY_WORDS,
    RACK_SHIFT,
    RACKS,
    TOUCHED,
    ParameterServer,
)
from ringleaf.ina.atp.roster import OF_JOB

REFUSED = 0
BEGINS = 1
JOINS = 2


@inline
def empty_sum(server: ParameterServer, entry: int) -> None:
    """Note that nothing is in the sum."""
    racks = server.state[RACKS]
    server.rows[entry * ENTRY_WORDS + TOUCHED] = 0
    for i in range(entry * racks, (entry + 1) * racks):
        server.arrived[i] = 0


@inline
def has_all(server: ParameterServer, entry: int) -> bool:
    """Return whether the values of all workers are in the sum."""
    return bool(server.arrived[entry * server.state[RACKS]] == server.complete[OF_JOB])


@inline
def has_worker(server: ParameterServer, entry: int, worker: int) -> bool:
    """Return whether a worker's values are in the sum."""
    rack, bit = server.places[worker] >> RACK_SHIFT, server.places[worker] & BIT_MASK
    row = entry * server.state[RACKS]
    # A rack whose sum came as a whole is one bit of the job, without bits of its workers.
    if rack != OF_JOB and server.arrived[row] >> (rack - 1) & 1:
        return True
    return bool(server.arrived[row + rack] >> bit & 1)


@inline
def note_probe(server: ParameterServer, entry: int, worker: int) -> bool:
    """Note that a worker has probed, and return whether it had before."""
    rack, bit = server.places[worker] >> RACK_SHIFT, server.places[worker] & BIT_MASK
    at = entry * server.state[RACKS] + rack
    before = server.missed[at] >> bit & 1
    server.missed[at] |= 1 << bit
    return bool(before)


@inline
def admit(server: ParameterServer, entry: int, rack: int, workers: int) -> int:
    """Note that a packet's values are in the sum; return how they come there.

    They join it if it has none of these workers, and begin it anew if it is empty, or has only some
    of them. Otherwise they are refused. So each worker counts once.
    """
    row, touched_at = entry * server.state[RACKS], entry * ENTRY_WORDS + TOUCHED
    touched, whole = server.rows[touched_at], server.arrived[row]
    if rack == OF_JOB:
        here, beyond, is_same = touched, touched & ~workers, whole == workers
        bit = workers
    else:
        bit = 1 << (rack - 1)
        here = server.complete[rack] if whole & bit else server.arrived[row + rack]
        beyond, is_same = here & ~workers | touched & ~bit, here == workers
    if workers == 0:  # a probe that has brought nothing along
        return REFUSED
    if here & workers:
        # A packet that has all of these workers may take the sum's place, as nothing is lost by it.
        # One that lacks any of them may not, nor need one that has just the same.
        if beyond or is_same:
            return REFUSED
        empty_sum(server, entry)
        touched = 0
    server.rows[touched_at] = touched | bit
    server.arrived[row + rack] |= workers
    if rack != OF_JOB and server.arrived[row + rack] == server.complete[rack]:
        server.arrived[row] |= bit
    return JOINS if touched else BEGINS
