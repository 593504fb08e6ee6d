"""Live hosts that stand still while the trees of their jobs become others.

The process that leads them has each say its workers' rounds, and serve nothing until it is told
the rounds of the last ones. Meanwhile switches are told. Frames that come wait in the kernel.
"""

from __future__ import annotations

import socket
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

import ringleaf.networks.virtual.loop as loop
from ringleaf.core.arena import Store
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import HOST
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.live.engine import Engine
from ringleaf.networks.live.members import HostProcess, hear, listen, say


class TreeCalls(Protocol):
    """A process that calls for hosts to stand still, and then tells switches."""

    @property
    def call(self) -> int:
        """The descriptor that becomes readable when it calls."""

    def hear_groups(self) -> list[int]:
        """Return the groups whose hosts must stand still."""

    def write_trees(self) -> None:
        """Have switches told, and wait until they are."""


def move_trees(
    calls: TreeCalls, members: Sequence[HostProcess], note: Callable[[int, dict[str, Any]], None]
) -> int:
    """Answer a call: have hosts stand still, switches told, and hosts go on.

    Args:
        calls: The process that calls.
        members: All hosts' processes.
        note: Is given a host's number and what it says besides.

    Returns:
        The time of the monotonic clock at which hosts were told, in nanoseconds.
    """
    groups = calls.hear_groups()
    for member in members:
        say(member.control, {"halt": groups})
    rounds: dict[int, list[list[int]]] = defaultdict(list)
    for number, member in enumerate(members):
        while "rounds" not in (message := hear(member)):
            note(number, message)
        for group, mine in message["rounds"]:
            rounds[group].append(mine)
    calls.write_trees()
    least = [[group, np.min(each, axis=0).tolist()] for group, each in rounds.items()]
    for member in members:
        say(member.control, {"go_on": least})
    return time.monotonic_ns()


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


def resumed_ps(number: int, endpoints: Endpoints, store: Store) -> int | None:
    """Return when the last of a host's workers had a result after its last change of trees.

    None if one has none yet, or none has had a change.
    """
    arena = store.arena
    times = [
        each.resumed_ps(arena, at)
        for each in endpoints.rebuilders.values()
        for at in each.workers
        if arena.words[at + HOST] == number
    ]
    last_ps = max(times, default=0)
    return last_ps if 0 < last_ps < FOREVER_PS else None
