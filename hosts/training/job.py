"""A data-parallel training job as a state machine, which computes and reports ready gradients.

Sans-I/O: the job is told the time and the reduced pieces. All ranks compute alike, but for jitter.
A layer's forward pass waits for its gradient of the iteration before (which updates its weights),
so communication overlaps with the backward pass, and with the forward passes of layers in front.
Jobs that have one accelerator compute in turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.training.accelerator import Accelerator
from ringleaf.hosts.training.jitter import Jitter
from ringleaf.hosts.training.model import Model
from ringleaf.hosts.training.pieces import GradientPiece
from ringleaf.hosts.training.steps import BackwardStep, backward_steps, made_by


@dataclass(slots=True)
class JobIteration:
    """The measured times of one iteration, in picoseconds."""

    start_ps: int
    end_ps: int = FOREVER_PS  # when all of its gradients are reduced, and its passes over
    backward_ps: int = FOREVER_PS  # when its backward pass ended
    waits_ps: list[int] = field(default_factory=list)  # per layer: its forward pass had no sum
    starts_ps: list[int] = field(default_factory=list)  # of forward passes, then of steps


class TrainingJob:
    """One training job.

    Args:
        model: The model that is trained.
        pieces: The pieces of its gradient, as `pieces.cut` gives them.
        iterations: Number of iterations; None: without end.
        start_ps: Start time of the job.
        steps: The steps of a backward pass; None: as `backward_steps` gives them.
        jitter: What makes passes longer; None: nothing.
    """

    def __init__(
        self,
        model: Model,
        pieces: list[GradientPiece],
        *,
        iterations: int | None,
        start_ps: int = 0,
        steps: Sequence[BackwardStep] | None = None,
        jitter: Jitter | None = None,
    ) -> None:
        self.model = model
        self._jitter = jitter or Jitter()
        self.pieces = pieces
        self.iterations = iterations
        self.start_ps = start_ps
        self.history: list[JobIteration] = []
        self._lacking = [0] * len(model.layers)  # pieces not reduced yet, by layer
        self._pieces_left = 0
        self.steps = backward_steps(model) if steps is None else list(steps)
        self._made = made_by(self.steps, pieces)
        self._until_ps = _until_made(self.steps, self._made)
        self._step = -1  # of the backward pass; -1: forward
        self.left_elements = 0  # of the iteration's gradient that is under way, or to come
        self.reducing = -1  # the iteration whose gradients are under way, or were last
        self._ready: list[GradientPiece] = []
        self._waiting_since_ps = -1
        self._layer = -1
        self._next_ps = start_ps
        self._time_ps = 0  # of the present computation
        self.accelerator: Accelerator | None = None  # that it shares with others

    def hold(self, until_ps: int) -> None:
        """Let the first iteration begin no sooner than this; it waits from its start on."""
        assert not self.history
        self._next_ps = max(self.start_ps, until_ps)

    @property
    def computing_backward(self) -> bool:
        """Whether a backward pass goes on."""
        return self._step >= 0

    @property
    def reached_layer(self) -> int:
        """The layer that the next forward pass has come to; if none will come, the number of them.

        It is -1 before the first iteration, and in backward passes.
        """
        if self.history and len(self.history) == self.iterations and self._layer < 0:
            return len(self.model.layers)
        return -1 if self.computing_backward else self._layer

    @property
    def next_gradient_ps(self) -> int:
        """When the backward pass will have made more; `FOREVER_PS`: it has made all."""
        if self._step < 0 or self._until_ps[self._step] == FOREVER_PS:
            return FOREVER_PS
        return min(self._next_ps + self._until_ps[self._step], FOREVER_PS)

    @property
    def done(self) -> bool:
        """Whether the last gradient of the job is reduced."""
        return len(self.history) == self.iterations and self.history[-1].end_ps < FOREVER_PS

    def next_ps(self) -> int:
        """Return the end of the present computation; `FOREVER_PS` while waiting for others."""
        return self._next_ps

    def take_ready(self) -> list[GradientPiece]:
        """Return the pieces that have become ready, each once."""
        ready, self._ready = self._ready, []
        return ready

    def reach(self, now_ps: int) -> None:
        """End the present computation, and go on with the next."""
        assert now_ps >= self._next_ps
        if self._layer < 0:
            self._start_iteration(now_ps)
            return
        if self._step >= 0:
            self._end_step(now_ps)
        else:
            self._end_forward(now_ps)
        if self.accelerator is not None:
            self.accelerator.leave(now_ps)

    def begin(self, now_ps: int) -> None:
        """Begin the present computation."""
        self.history[-1].starts_ps.append(now_ps)
        self._next_ps = now_ps + self._time_ps

    def reduced(self, piece: GradientPiece, now_ps: int) -> None:
        """Note that all ranks have a piece's sum."""
        for layer in piece.layers:
            self._lacking[layer] -= 1
        self._pieces_left -= 1
        self.left_elements -= piece.elements
        self._end_iteration(now_ps)
        if self._waiting_since_ps >= 0 and not self._lacking[self._layer]:
            self._begin_forward(now_ps)

    def _end_iteration(self, now_ps: int) -> None:
        """Note the end once the backward pass is over and all pieces, if any, are reduced."""
        iteration = self.history[self.reducing]
        if not self._pieces_left and iteration.backward_ps < FOREVER_PS:
            iteration.end_ps = now_ps

    def _start_iteration(self, now_ps: int) -> None:
        self.history.append(JobIteration(now_ps))
        self._layer = 0
        self._want_forward(now_ps)

    def _want_forward(self, now_ps: int) -> None:
        """Begin a layer's forward pass, once its weights are up to date."""
        self._waiting_since_ps = now_ps
        if self._lacking[self._layer]:
            self._next_ps = FOREVER_PS
        else:
            self._begin_forward(now_ps)

    def _begin_forward(self, now_ps: int) -> None:
        self.history[-1].waits_ps.append(now_ps - self._waiting_since_ps)
        self._waiting_since_ps = -1
        self._compute(self.model.layers[self._layer].forward_ps, now_ps)

    def _compute(self, time_ps: int, now_ps: int) -> None:
        """Compute for `time_ps`, from now on or when the accelerator is free."""
        self._time_ps = self._jitter.longer(time_ps)
        if self.accelerator is None:
            self.begin(now_ps)
        else:
            self._next_ps = FOREVER_PS
            self.accelerator.ask(self, now_ps)

    def _end_forward(self, now_ps: int) -> None:
        if self._layer + 1 < len(self.model.layers):
            self._layer += 1
            self._want_forward(now_ps)
            return
        self._step = 0  # all weights are new, so nothing of the last iteration is under way
        self.reducing = len(self.history) - 1
        for piece in self.pieces:
            for layer in piece.layers:
                self._lacking[layer] += 1
        self._pieces_left = len(self.pieces)
        self.left_elements = sum(piece.elements for piece in self.pieces)
        self._compute(self.steps[0].time_ps, now_ps)

    def _end_step(self, now_ps: int) -> None:
        self._ready += self._made[self._step]
        self._step += 1
        if self._step < len(self.steps):
            self._compute(self.steps[self._step].time_ps, now_ps)
            return
        self._step = -1
        self.history[-1].backward_ps = now_ps
        self._end_iteration(now_ps)
        self._layer = -1
        last = len(self.history) == self.iterations
        self._next_ps = FOREVER_PS if last else now_ps


def _until_made(
    steps: Sequence[BackwardStep], by_step: Sequence[Sequence[GradientPiece]]
) -> list[int]:
    """Return, by step, the time from its end until the next piece is complete."""
    times_ps = [FOREVER_PS] * len(steps)
    for place in reversed(range(len(steps))):
        if by_step[place]:
            times_ps[place] = 0
        elif place + 1 < len(steps) and times_ps[place + 1] < FOREVER_PS:
            times_ps[place] = steps[place + 1].time_ps + times_ps[place + 1]
    return times_ps
