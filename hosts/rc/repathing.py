"""Other paths for queue pairs whose packets do not get through: a new UDP source port for ECMP.

Switches choose among equal paths by a hash of a packet's flow, so a host that changes the source
port leads its queue pair elsewhere, without a word to switches: protective reroute (Wetherall et
al., SIGCOMM 2023), and REPS's freezing of what still works (Bonato et al., 2024) for one path at a
time. A sender takes another port when probes have no answer. If they have come, their answers were
lost, and the sender asks again: so a receiver that is asked again in vain takes another one, too.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena
from ringleaf.core.compiled import inline
from ringleaf.core.headers import UDP_SRC_AT, get16, put16
from ringleaf.core.views import window
from ringleaf.hosts.agent import REPATHS
from ringleaf.hosts.rc.state import (
    EXPECTED_PSN,
    PROBED,
    PROBED_PSN,
    REPATH_AFTER,
    TEMPLATE_AT,
    UNANSWERED,
    Qp,
)
from ringleaf.hosts.rc.wire import HEAD_BYTES, SOURCE_PORT_LOW, SOURCE_PORTS


@inline
def next_port(port: int) -> int:
    """Return the source port after this one; all come in turn, and neighbours are far apart."""
    # A linear congruential generator whose period is the number of ports (Knuth, 3.2.1.2).
    return SOURCE_PORT_LOW + ((port - SOURCE_PORT_LOW) * 5 + 0xD4B) % SOURCE_PORTS


@inline
def repath(arena: Arena, at: int, qp: Qp) -> None:
    """Have all that the queue pair sends from now on take another path."""
    template = window(arena.bytes, qp.state[TEMPLATE_AT], HEAD_BYTES)
    put16(template, UDP_SRC_AT, next_port(get16(template, UDP_SRC_AT)))
    arena.words[at + REPATHS] += 1


@inline
def repath_if_unanswered(arena: Arena, at: int, qp: Qp) -> None:
    """Take another path if so many probes as are to be waited for have no answer."""
    after = arena.words[at + REPATH_AFTER]
    if after > 0 and qp.state[UNANSWERED] > 0 and qp.state[UNANSWERED] % after == 0:
        repath(arena, at, qp)


@inline
def repath_if_asked_again(arena: Arena, at: int, qp: Qp) -> None:
    """Take another path if more probes than are waited for have come, and nothing else."""
    state, after = qp.state, arena.words[at + REPATH_AFTER]
    if after == 0:
        return
    if state[PROBED_PSN] != state[EXPECTED_PSN]:
        state[PROBED_PSN], state[PROBED] = state[EXPECTED_PSN], 0
    state[PROBED] += 1
    if state[PROBED] > 1 and (state[PROBED] - 1) % after == 0:
        repath(arena, at, qp)
