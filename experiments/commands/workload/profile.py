"""Profile a module's passes: when each layer's forward pass begins, and its gradient is ready.

A layer is a module that has parameters of its own. Operations between layers (activations,
pooling) count for the layer before them, so layers' costs add up to the whole pass. A layer's
gradient is ready when its last parameter's has been accumulated, which is when PyTorch's DDP would
send it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.workload.torch_module import BROKEN, Feed, brief

Meter = Callable[[], float]
"""A function that returns the cost so far: seconds, or FLOPs."""

WARM_UPS = 2


@dataclass(slots=True)
class OwnModule:
    """A module, and the parameters that are its own."""

    name: str
    module: nn.Module
    parameters: list[nn.Parameter] = field(default_factory=list)

    @property
    def elements(self) -> int:
        """Return the number of elements of the module's own parameters, and so of its gradient."""
        return sum(parameter.numel() for parameter in self.parameters)


@dataclass(frozen=True, slots=True)
class LayerCost:
    """The cost of a layer, in the meter's unit."""

    forward: float
    backward: float


class Profiler:
    """A profiler that runs a module on random samples.

    Args:
        module: The module, in training mode from now on; its weights are not changed.
        feed: The samples that it is fed with.
        where: The beginning of error messages.

    Raises:
        ConfigError: If it can't be run on them, or none of its parameters gets a gradient.
    """

    def __init__(self, module: nn.Module, feed: Feed, where: str) -> None:
        self._module = module.train()
        self._feed = feed
        self._where = where
        self._device = next(module.parameters()).device
        self.parts = self._find_parts()

    def seconds(
        self, runs: int, follow: Callable[[Sequence[int]], Iterable[int]]
    ) -> list[LayerCost]:
        """Return the layers' median times of several runs, after `WARM_UPS`.

        `follow` wraps the iteration over all runs, to show progress.
        """
        sample = self._feed.draw(self._device)
        costs = [self._measure(sample, self._clock) for _ in follow(range(WARM_UPS + runs))]
        return [
            LayerCost(
                median(c.forward for c in layer_costs), median(c.backward for c in layer_costs)
            )
            for layer_costs in zip(*costs[WARM_UPS:], strict=True)
        ]

    def flops(self) -> list[LayerCost]:
        """Return FLOPs of convolutions and matrix products: two samples', times half the batch."""
        batch = min(self._feed.batch, 2)  # batch norms refuse a single sample
        times = self._feed.batch / batch
        with FlopCounterMode(display=False) as counter:
            costs = self._measure(
                self._feed.draw(self._device, batch), lambda: float(counter.get_total_flops())
            )
        return [LayerCost(cost.forward * times, cost.backward * times) for cost in costs]

    def _clock(self) -> float:
        if self._device.type != "cpu":
            torch.accelerator.synchronize(self._device)
        return time.perf_counter()

    def _find_parts(self) -> list[OwnModule]:
        """Return the layers, in the order in which a forward pass comes to them.

        Parameters of modules that are never called (`MultiheadAttention.out_proj`) belong to the
        nearest around them; shared ones to the first layer that has them, whose gradient is last.
        """
        order: dict[str, OwnModule] = {}
        hooks = [
            module.register_forward_pre_hook(
                lambda module, _, name=name: (
                    order.setdefault(name, OwnModule(name, module)) and None
                )
            )
            for name, module in self._module.named_modules()
        ]
        sample = self._feed.draw(self._device, min(self._feed.batch, 2))
        try:
            self._forward(sample).backward()
        finally:
            _remove(hooks)
        ranks = {name: rank for rank, name in enumerate(order)}
        owners: dict[nn.Parameter, str] = {}
        for path, parameter in self._module.named_parameters(remove_duplicate=False):
            if parameter.grad is None:
                continue
            owner = _around(path, ranks)
            if ranks[owner] < ranks[owners.setdefault(parameter, owner)]:
                owners[parameter] = owner
        for parameter, owner in owners.items():
            order[owner].parameters.append(parameter)
        return [part for part in order.values() if part.parameters]

    def _forward(self, sample: torch.Tensor) -> torch.Tensor:
        """Return the value to differentiate: the sum of all outputs."""
        self._module.zero_grad(set_to_none=True)
        try:
            leaves = [leaf for leaf in _tensors(self._module(sample)) if leaf.requires_grad]
        except BROKEN as error:
            raise ConfigError(
                f"{self._where}: input of shape {list(sample.shape)} does not fit, "
                f"got {brief(error)}; give a sample's shape, as --input 3,224,224"
            ) from error
        if not leaves:
            raise ConfigError(
                f"{self._where}: output must depend on parameters, got none that does"
            )
        return torch.stack([leaf.float().sum() for leaf in leaves]).sum()

    def _measure(self, sample: torch.Tensor, meter: Meter) -> list[LayerCost]:
        starts: list[tuple[int, float]] = []
        ready = [0.0] * len(self.parts)
        hooks = []
        for index, part in enumerate(self.parts):

            def begin(*_: object, index: int = index) -> None:
                starts.append((index, meter()))

            def accumulated(_: object, index: int = index) -> None:
                ready[index] = meter()

            hooks.append(part.module.register_forward_pre_hook(begin))
            hooks += [p.register_post_accumulate_grad_hook(accumulated) for p in part.parameters]
        try:
            start = meter()
            loss = self._forward(sample)
            middle = meter()
            loss.backward()
            end = meter()
        finally:
            _remove(hooks)
        forward = _between(starts, start, middle, len(ready))
        return [LayerCost(*both) for both in zip(forward, _steps(ready, middle, end), strict=True)]


def _remove(hooks: Iterable[torch.utils.hooks.RemovableHandle]) -> None:
    for hook in hooks:
        hook.remove()


def _around(path: str, called: Mapping[str, int]) -> str:
    """Return the innermost called module around a parameter; the root is ''."""
    name = path.rpartition(".")[0]
    while name not in called:
        name = name.rpartition(".")[0]
    return name


def _between(
    starts: Sequence[tuple[int, float]], first: float, last: float, layers: int
) -> list[float]:
    """Return each layer's cost, from its starts to the next layers'; it may have several starts."""
    edges = [first, *(at for _, at in starts[1:]), last]
    costs = [0.0] * layers
    for (index, _), (begin, end) in zip(starts, pairwise(edges), strict=True):
        costs[index] += end - begin
    return costs


def _steps(ready: Sequence[float], first: float, last: float) -> list[float]:
    """Return the cost between layers' gradients being ready, from the last layer to the first."""
    costs = [0.0] * len(ready)
    at = first
    for index in reversed(range(len(ready))):
        done = max(at, ready[index]) if index else last
        costs[index] = done - at
        at = done
    return costs


def _tensors(output: object) -> list[torch.Tensor]:
    """Return the tensors of a module's output, in tuples and mappings, too."""
    if isinstance(output, torch.Tensor):
        return [output]
    if isinstance(output, Mapping):
        output = list(output.values())
    if isinstance(output, tuple | list):
        return [leaf for each in output for leaf in _tensors(each)]
    return []
