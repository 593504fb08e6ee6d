"""The members of registries that cases are drawn from: a new one is drawn by being there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.errors import ConfigError
from ringleaf.hosts.congestion.registry import CONTROLLERS
from ringleaf.ina.registry import SYSTEMS, program_of
from ringleaf.ina.systems import LANES

OTHER_CONTROLLERS = tuple(sorted(set(CONTROLLERS) - {"fixed"}))
"""Congestion controllers that are not the default."""


@cache
def by_hosts() -> tuple[str, ...]:
    """Return the names of all allreduces that hosts do, sorted."""
    return tuple(name for name in _of_hosts() if _is_allreduce(name))


@cache
def other_collectives() -> tuple[str, ...]:
    """Return the names of the algorithms of collectives other than allreduce, sorted."""
    return tuple(name for name in _of_hosts() if not _is_allreduce(name))


def _of_hosts() -> Iterator[str]:
    return (name for name in ALGORITHMS if name not in SYSTEMS)


def _is_allreduce(name: str) -> bool:
    return ALGORITHMS[name].collective is Collective.ALLREDUCE


def draw_systems(random: Random, most: int) -> tuple[list[str], str]:
    """Return up to `most` systems that take the same elements, and the compressor of these.

    The first is any system, each as likely as others.
    """
    names = _shuffled(random)
    compress = SYSTEMS[names[0]].compress
    found = [name for name in names if SYSTEMS[name].compress in ("", compress)]
    return found[: random.randint(1, most)], compress


def draw_together(random: Random, most: int) -> tuple[tuple[str, ...], int]:
    """Return up to `most` systems that one P4 program serves, and the lanes it is built for."""
    lanes, found = random.choice(LANES), tuple[str, ...]()
    wanted = random.randint(0, most)
    for name in _shuffled(random):
        if len(found) < wanted and are_served((*found, name), lanes):
            found = (*found, name)
    return found, lanes


def are_served(names: tuple[str, ...], lanes: int) -> bool:
    """Return whether a P4 program serves all these systems' jobs at once."""
    try:
        program_of([SYSTEMS[name] for name in names], lanes)
    except ConfigError:
        return False
    return True


def _shuffled(random: Random) -> list[str]:
    return random.sample(sorted(SYSTEMS), len(SYSTEMS))
