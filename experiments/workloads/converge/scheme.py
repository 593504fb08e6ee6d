"""Ways to train: what each of them has at hand, and what it reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ringleaf.collectives.compression.program import CompressedProgram
from ringleaf.core.registry import Registry
from ringleaf.core.tensors import Array
from ringleaf.experiments.workloads.converge.carrier import ExchangeCarrier
from ringleaf.experiments.workloads.converge.models import DealtModel


@dataclass
class Setup:
    """A training, the network below it, and what ranks do with gradients.

    Attributes:
        training: Model and data.
        carrier: Carries exchanges, and knows their cost.
        program: Makes a rank's side of a compressed allreduce: by rank, and number of ranks.
        rate: The learning rate.
        steps: The number of steps, of every rank.
        compute_ps: The time that a rank takes for a gradient, simulated.
        settings: The scheme's own, by name.
    """

    training: DealtModel
    carrier: ExchangeCarrier
    program: Callable[[int, int], CompressedProgram]
    rate: float
    steps: int
    compute_ps: int = 0
    settings: dict[str, float] = field(default_factory=dict)

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self.training.ranks

    def programs(self) -> list[CompressedProgram]:
        """Return all ranks' programs."""
        return [self.program(rank, self.ranks) for rank in range(self.ranks)]

    def setting(self, name: str, default: float) -> float:
        """Return a setting of the scheme."""
        return self.settings.get(name, default)


@dataclass(frozen=True)
class Moment:
    """The state after some steps.

    Attributes:
        step: Gradients that each rank has computed, on average.
        parameters: The parameters that are judged: those of all ranks, or their mean.
        compute_ps: The time of computing since the last moment, as far as ranks wait for it.
        elapsed_ps: The time since the start, if exchanges overlap; None: their times add up.
    """

    step: float
    parameters: Array
    compute_ps: int
    elapsed_ps: int | None = None


Scheme = Callable[[Setup], Iterator[Moment]]


@dataclass(frozen=True, slots=True)
class ByMessages:
    """A scheme whose ranks send messages as they are, and have no allreduce.

    So neither a method nor an algorithm is of use to it.

    Attributes:
        train: The scheme.
    """

    train: Scheme

    def __call__(self, setup: Setup) -> Iterator[Moment]:
        """Return its moments."""
        return self.train(setup)


SCHEMES: Registry[Scheme] = Registry(
    "schemes", "training scheme", "experiments/workloads/converge/schemes", "SCHEME"
)
"""The ways to train by name: who sends what to whom, and when."""
