"""The options of `ringleaf step`, and a check of them that imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.registry import find_algorithm
from ringleaf.errors import ConfigError
from ringleaf.experiments.spec.network import LANES
from ringleaf.plausible import link_delay, link_rate
from ringleaf.topologies.registry import parse as parse_topology
from ringleaf.units import parse_fraction

MOST_RANKS = 64  # more can't be told apart
TIMED = ("switch_delay", "host_delay", "message_overhead", "inject")
"""Options that change only the times of packets."""


@dataclass(frozen=True, slots=True)
class StepRequest:
    """The collective to step through, and its options; None: a value that fits."""

    algo: str
    ranks: int | None = None
    elements: int | None = None
    topo: str | None = None
    segments: int | None = None
    root: int = 0
    servers: int = 0
    lanes: int = LANES[0]
    slots: int | None = None
    loss: str = "0"
    switch_delay: str = "0"
    host_delay: str = "0"
    message_overhead: str = "0"
    inject: str | None = None
    seed: int = 1


def check_request(request: StepRequest) -> None:
    """Check that the options make sense by themselves; torch is not loaded for it.

    Raises:
        ConfigError: If one does not, or can't go with the algorithm, or there is no such algorithm.
        TopologyError: If there is no such topology.
    """
    algorithm = find_algorithm(request.algo)
    _check_numbers(request)
    if not algorithm.in_network:
        _check_timeless(request, algorithm)
    if request.topo is not None:
        parse_topology(request.topo)
    if request.inject is not None:
        link_rate(request.inject, "step: inject")
    for name in ("switch_delay", "host_delay", "message_overhead"):
        link_delay(getattr(request, name), f"step: {name}")
    if parse_fraction(request.loss, "step: loss") and not algorithm.in_network:
        raise ConfigError(
            f"step: only packets can be lost, got loss {request.loss!r} for the transfers of "
            f"{algorithm.name}; take an algorithm that aggregates in the network"
        )


def _check_numbers(request: StepRequest) -> None:
    for name in ("ranks", "elements", "segments", "slots"):
        value = getattr(request, name)
        if value is not None and value < 1:
            raise ConfigError(f"step: {name} must be >= 1, got {value}")
    if request.ranks is not None:
        check_ranks(request.ranks)
    if request.servers < 0:
        raise ConfigError(f"step: servers must be >= 0, got {request.servers}")
    if request.lanes not in LANES:
        raise ConfigError(f"step: lanes must be one of {list(LANES)}, got {request.lanes}")


def _check_timeless(request: StepRequest, algorithm: Algorithm) -> None:
    """Refuse options of time: transfers are shown in steps, which take none."""
    for name in TIMED:
        value = getattr(request, name)
        if value not in ("0", None):
            raise ConfigError(
                f"step: only packets take time, got {name} {value!r} for the transfers of "
                f"{algorithm.name}; take an algorithm that aggregates in the network"
            )


def check_ranks(ranks: int) -> None:
    """Check that so many ranks can be shown.

    Raises:
        ConfigError: If they can't.
    """
    if not 2 <= ranks <= MOST_RANKS:
        raise ConfigError(f"step: ranks must be 2 to {MOST_RANKS}, got {ranks}; give --ranks")
