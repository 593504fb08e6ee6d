"""Trainings, and their courses."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TrainingCase:
    """One training.

    Attributes:
        part: The part of the file that it is of.
        model: The model's name.
        method: `none`, a compressor, `2x-` and a compressor that is used on sums, too, or a sparse
            allreduce, with its settings.
        algo: The algorithm of allreduces.
        workload: The way to train.
        steps: Gradients per rank.
        rate: The learning rate.
    """

    part: str
    model: str
    method: str
    algo: str
    workload: str  # the scheme
    steps: int
    rate: float

    @property
    def name(self) -> str:
        """Its name in lines of a run: `cnn-topk:1%-ring-sync`."""
        return f"{self.model}-{self.method}-{self.algo}-{self.workload}"


@dataclass
class Curve:
    """A training's course; each list has an entry per moment that was judged.

    Attributes:
        case: The training.
        steps: Gradients per rank so far.
        loss: Mean loss of samples that nobody trains on.
        right: Their share that is classified well.
        time_us: Simulated time since the start, computing included.
        bytes_sent: Bytes that the busiest rank has sent, headers included.
        wrong: Elements of all exchanges that were not as defined.
        longest_ps: The time of the longest exchange.
    """

    case: TrainingCase
    steps: list[float] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    right: list[float] = field(default_factory=list)
    time_us: list[float] = field(default_factory=list)
    bytes_sent: list[int] = field(default_factory=list)
    wrong: int = 0
    longest_ps: int = 0
