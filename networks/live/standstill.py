"""Live hosts that stand still while the trees of their jobs become others.

The process that leads them has each say its workers' rounds, and serve nothing until it is told
the rounds of the last ones. Meanwhile switches are told. Frames that come wait in the kernel.
"""

from __future__ import annotations

import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

import ringleaf.networks.virtual.loop as loop
from ringleaf.core.arena import Store
from ringleaf.core.units import FOREVER_PS, PS_PER_NS
from ringleaf.hosts.agent import HOST
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.live.engine import Engine
from ringleaf.networks.live.members import listen, say
from ringleaf.networks.outcome import TreeRebuilt


class TreeCalls(Protocol):
    """A process that calls for hosts to stand still, and then tells switches."""

    @property
    def call(self) -> int:
        """The descriptor that becomes readable when it calls."""

    def hear_groups(self) -> list[int]:
        """Return the groups whose hosts must stand still."""

    def write_trees(self) -> None:
        """Have switches told, and wait until they are."""


class Leader(Protocol):
    """The process that leads hosts."""

    @property
    def count(self) -> int:
        """The number of hosts."""

    def tell(self, message: dict[str, Any]) -> None:
        """Send all hosts a message."""

    def hear(self, number: int) -> dict[str, Any]:
        """Return a host's next message."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A change of trees: when hosts were told, by the monotonic clock, and the trees' groups."""

    told_ns: int
    groups: tuple[int, ...]


def move_trees(
    calls: TreeCalls, leader: Leader, note: Callable[[int, dict[str, Any]], None]
) -> Moved:
    """Answer a call: have hosts stand still, switches told, and hosts go on.

    Args:
        calls: The process that calls.
        leader: Leads the hosts.
        note: Is given a host's number and what it says besides.
    """
    groups = calls.hear_groups()
    leader.tell({"halt": groups})
    rounds: dict[int, list[list[int]]] = defaultdict(list)
    for number in range(leader.count):
        while "rounds" not in (message := leader.hear(number)):
            note(number, message)
        for group, mine in message["rounds"]:
            rounds[group].append(mine)
    calls.write_trees()
    least = [[group, np.min(each, axis=0).tolist()] for group, each in rounds.items()]
    leader.tell({"go_on": least})
    return Moved(time.monotonic_ns(), tuple(groups))


def stand_still(
    groups: Sequence[int],
    number: int,
    endpoints: Endpoints,
    store: Store,
    *,
    engine: Engine,
    control: socket.socket,
) -> None:
    """Say the rounds of a host's workers of these groups, and go on as told."""
    arena = store.arena
    mine = [
        (group, endpoints.rebuilders[group], at)
        for group in groups
        for at in endpoints.rebuilders[group].workers
        if arena.words[at + HOST] == number
    ]
    rounds = [[group, each.rounds(arena, at).tolist()] for group, each, at in mine]
    say(control, {"rounds": rounds})
    message = listen(control)
    if message is None:  # nobody leads any more
        return
    least = dict(message["go_on"])
    for group, rebuilder, at in mine:
        now_ps = engine.now_ps
        rebuilder.go_on(arena, at, np.array(least[group], np.int64), now_ps)
        loop.wake(arena, engine.at, at, now_ps)


def resumed_ps(number: int, endpoints: Endpoints, store: Store) -> dict[int, int | None]:
    """Return when the last of a host's workers had a result after its last change of trees.

    By group; None if one has none yet, or has had no change.
    """
    arena = store.arena
    times: dict[int, int | None] = {}
    for group, each in endpoints.rebuilders.items():
        mine = [at for at in each.workers if arena.words[at + HOST] == number]
        if mine:
            last_ps = max(each.resumed_ps(arena, at) for at in mine)
            times[group] = last_ps if 0 < last_ps < FOREVER_PS else None
    return times


def rebuilt(
    moves: Sequence[Moved], start_ns: int, counters: Sequence[Mapping[str, Any]]
) -> tuple[TreeRebuilt, ...]:
    """Return the changes of trees, of which hosts know when they had results after the last.

    Args:
        moves: The changes.
        start_ns: When the run began, by the monotonic clock.
        counters: Those of all hosts, with `resumed`.
    """
    return tuple(_rebuilt(moves, start_ns, counters))


def _rebuilt(
    moves: Sequence[Moved], start_ns: int, counters: Sequence[Mapping[str, Any]]
) -> Iterator[TreeRebuilt]:
    resumed: dict[int, list[int | None]] = defaultdict(list)
    for counted in counters:
        for group, resumed_ps in counted["resumed"]:
            resumed[group].append(resumed_ps)
    last = {group: move for move in moves for group in move.groups}
    for move in moves:
        for group in move.groups:  # as each has a tree
            known = [each for each in resumed[group] if each is not None]
            is_known = move is last[group] and known and len(known) == len(resumed[group])
            at_ps = (move.told_ns - start_ns) * PS_PER_NS
            yield TreeRebuilt(at_ps, max(known) if is_known else None)
