"""The options of `ringleaf step`, and a check of them that imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.registry import find_algorithm
from ringleaf.errors import ConfigError
from ringleaf.experiments.spec import kinds
from ringleaf.experiments.spec.choices import LANES
from ringleaf.experiments.spec.kinds import option
from ringleaf.experiments.workloads.collective.spec import CollectiveSpec

MOST_RANKS = 64  # more can't be told apart

PACKETS_ONLY = {
    "loss": "can be lost",
    **dict.fromkeys(("switch_delay", "host_delay", "message_overhead", "inject"), "take time"),
    **dict.fromkeys(("rate", "delay"), "take time"),
    "duplicate": "can be duplicated",
    "reorder": "can be late",
    "trees": "go by several trees",
}
"""Options that only packets have a use for, and why."""


class StepSpec(CollectiveSpec):
    """One collective to step through, with few numbers."""

    takes = (
        *("ranks", "elements", "topo", "segments", "root", "servers", "lanes", "slots"),
        *PACKETS_ONLY,
        *("detours", "seed"),
    )
    defaults: ClassVar = {
        "topo": "leafspine,leaves=1,spines=0",
        "lanes": str(LANES[0]),
        "slots": "2",
    }

    ranks: kinds.AnyCount = option(
        "", "Number of ranks; default: 4, or TOPO's hosts", flags="--ranks -n"
    )
    elements: kinds.AnyCount = option(
        "", "Numbers per rank; default: two per chunk", flags="--elements"
    )
    segments: kinds.AnyCount = option(
        "", "Pieces in the pipelines of trees and chains", flags="--segments"
    )
    root: Annotated[int, kinds.whole(0)] = option(
        "0", "Root of a broadcast or reduce", flags="--root"
    )


@dataclass(frozen=True, slots=True)
class StepRequest:
    """A collective to step through.

    Attributes:
        algorithm: Its algorithm.
        spec: The options, every value checked.
        typed: The same as typed.
    """

    algorithm: Algorithm
    spec: StepSpec
    typed: Mapping[str, str]


def step_request(algo: str, **options: Any) -> StepRequest:
    """Return the request of options, as typed, that make sense by themselves.

    Torch is not loaded for it.

    Raises:
        ConfigError: If one does not, or can't go with the algorithm, or there is no such algorithm.
        TopologyError: If there is no such topology.
    """
    algorithm = find_algorithm(algo)
    typed = {name: str(value) for name, value in options.items() if value is not None}
    spec = StepSpec.read(typed).model_copy(update={"algos": (algo,)})
    if spec.ranks is not None:
        check_ranks(spec.ranks)
    if not algorithm.in_network:
        _check_transfers(spec, typed, algorithm)
    return StepRequest(algorithm, spec, typed)


def _check_transfers(spec: StepSpec, typed: Mapping[str, str], algorithm: Algorithm) -> None:
    """Refuse options of packets: transfers are shown in steps, which take no time."""
    usual = StepSpec.read({})
    for field, name in StepSpec.names().items():
        if name in PACKETS_ONLY and getattr(spec, field) != getattr(usual, field):
            raise ConfigError(
                f"step: only packets {PACKETS_ONLY[name]}, got {name} {typed[name]!r} for the "
                f"transfers of {algorithm.name}; take an algorithm that aggregates in the network"
            )


def check_ranks(ranks: int) -> None:
    """Check that so many ranks can be shown.

    Raises:
        ConfigError: If they can't.
    """
    if not 2 <= ranks <= MOST_RANKS:
        raise ConfigError(f"step: ranks must be 2 to {MOST_RANKS}, got {ranks}; give --ranks")
