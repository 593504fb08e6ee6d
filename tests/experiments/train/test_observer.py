"""Times of modules, by their paths and classes, for passes that count by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

from ringleaf.experiments.workloads.train.account import Account, RankIteration
from ringleaf.experiments.workloads.train.clock import Compute, ModuleTimes, RankClock
from ringleaf.experiments.workloads.train.observer import ScriptObserver
from ringleaf.experiments.workloads.train.results import TrainResults

TIMES = ModuleTimes(forward_ps=3, backward_ps=5)


class Noted:
    """A link that leads nowhere."""

    def __init__(self) -> None:
        self.clock = RankClock(worked_ns=lambda: 0)
        self.account = Account(1)
        self.exposed_ps = 0

    def note(self, *what: Any) -> None:
        self.account.note(0, what)


class Several(nn.Module):  # type: ignore[misc]
    """A layer with results in a form that scripts have."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.layer, self.form = nn.Linear(2, 2), form

    def forward(self, values: torch.Tensor) -> Any:
        result = self.layer(values)
        return {
            "tuple": (None, result),
            "dict": {"ids": torch.ones(2), "logits": result},
            "nested": [[result.detach()], (result, 2 * result)],
        }[self.form]


def observed(model: nn.Module, times: dict[str, ModuleTimes]) -> Noted:
    """Return the link of a rank that watches a model, without hooks of all modules."""
    link: Any = Noted()
    observer = ScriptObserver(link, Compute(modules=times), timeline=False)
    for module in model.modules():
        module.register_forward_pre_hook(observer._enter)
        module.register_forward_hook(observer._leave)
    noted: Noted = link
    return noted


@pytest.mark.parametrize("form", ["tuple", "dict", "nested"])
def test_a_backward_pass_takes_its_time_whatever_form_results_have(form: str) -> None:
    model = Several(form)
    link = observed(model, {"Several": TIMES})

    results = model(torch.ones(1, 2))
    assert link.clock.now_ps == 3

    last = {"tuple": lambda: results[1], "dict": lambda: results["logits"]}
    last.get(form, lambda: sum(results[1]))().sum().backward()
    assert link.clock.now_ps == 3 + 5


def test_modules_have_their_paths_whatever_wraps_them() -> None:
    block = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model = nn.Sequential(checkpoint_wrapper(block), nn.Linear(2, 2))
    link = observed(model, {"0": TIMES, "0.1": TIMES, "0.2": TIMES})

    with torch.no_grad():
        model(torch.ones(1, 2))

    assert link.clock.now_ps == 2 * 3  # the block's, once, and one layer's
    results = TrainResults(about=[], is_virtual=True, ranks=1, untimed=["0", "0.1", "0.2"])
    results.take(link.account, [])
    assert list(results.foot())[-2] == (
        "without effect here: 1 entry for modules, as none that was called has such a path or "
        "class: 0.2"
    )


def test_iterations_are_those_of_the_rank_that_has_most() -> None:
    """As with DDP's join, or where one rank keeps the parameters, and no other has an optimizer."""
    results = TrainResults(about=[], is_virtual=True, ranks=3)
    results.iterations = [
        [RankIteration(10, 2), RankIteration(20, 4)],
        [],
        [RankIteration(11, 4), RankIteration(22, 8), RankIteration(36, 5)],
    ]
    assert results.steps() == [(11, 3), (11, 6), (14, 5)]
    results.iterations = [[RankIteration(10, 2), RankIteration(20, 4)], [RankIteration(30, 0)], []]
    assert results.steps() == [(30, 1), (0, 4)]


def test_an_iteration_ends_with_the_outer_step_of_the_first_optimizer_that_is_left() -> None:
    class Optimizer:
        pass

    link: Any = Noted()
    observer = ScriptObserver(link, Compute(), timeline=False)

    def step(*optimizers: Optimizer) -> int:
        """Take steps, each within the one before it; return the iterations so far."""
        for each in optimizers:
            observer._begin_step(each)
        for each in reversed(optimizers):
            observer._step(each)
        return len(link.account.iterations[0])

    outer, inner, other = Optimizer(), Optimizer(), Optimizer()
    assert [step(outer, inner), step(other), step(outer, inner)] == [1, 1, 2]
    observer._begin_step(outer)  # fails
    assert step(outer, inner) == 3
    del outer
    assert [step(other), step(inner), step(other)] == [4, 4, 5]
