"""A rank's account of itself: iterations, the times of modules, and that it is alive."""

from __future__ import annotations

import threading
import time
from typing import Any
from weakref import ReferenceType, ref

from torch import nn
from torch.nn.parallel.distributed import _find_tensors

from ringleaf.experiments.workloads.train.clock import Compute, flops_ps, main_thread_ns
from ringleaf.experiments.workloads.train.link import FabricError, RankConnection
from ringleaf.experiments.workloads.train.wire import (
    BACKWARD,
    FORWARD,
    ITERATION,
    SPANS,
    TIMED,
    WAITED,
)

PULSE_S = 0.1
_WORKED_NS = 1_000_000  # in a pulse, by which a rank shows that it works
_ALIVE_S = 1.0  # between words that say so

WRAPPERS = frozenset({"_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_orig_mod"})
"""What FSDP, activation checkpointing and `torch.compile` call the module that they wrap."""

MOST_SPANS = 20_000
"""The most spans that a rank notes for the timeline."""

TOGETHER = 200


class ScriptObserver:
    """Watches this rank's script, and tells the fabric.

    Args:
        link: The rank's link.
        compute: How computing takes time.
        timeline: Whether modules' passes and waits are noted.
    """

    def __init__(self, link: RankConnection, compute: Compute, *, timeline: bool) -> None:
        self._link = link
        self._clock = link.clock
        self._compute = compute
        self._timeline = timeline
        self._names: dict[int, str] = {}
        self._timed: set[str] = set()
        self._open: list[tuple[nn.Module, int]] = []
        self._spans: list[list[Any]] = []
        self._count = 0
        self._exposed_ps = 0
        self._optimizer: ReferenceType[Any] | None = None
        self._steps: list[int] = []  # under way, of optimizers; an inner one behind its outer one
        self._backward: tuple[str, int] | None = None  # under way: its module, and its start

    def begin(self) -> None:
        """Begin to watch."""
        from torch.nn.modules.module import (
            register_module_forward_hook,
            register_module_forward_pre_hook,
        )
        from torch.optim.optimizer import (
            register_optimizer_step_post_hook,
            register_optimizer_step_pre_hook,
        )

        register_optimizer_step_pre_hook(self._begin_step)
        register_optimizer_step_post_hook(self._step)
        if self._timeline or self._compute.modules is not None:
            register_module_forward_pre_hook(self._enter)
            register_module_forward_hook(self._leave, always_call=True)
        if self._timeline:
            self._link.on_wait = self._wait
        if self._compute.flops:
            self._count_flops()
        threading.Thread(target=self._pulse, daemon=True).start()

    # Iterations.

    def _begin_step(self, optimizer: Any, *_: Any) -> None:
        """Take note of a step, and forget one of the same optimizer that has failed."""
        at = id(optimizer)
        if at in self._steps:
            del self._steps[self._steps.index(at) :]
        self._steps.append(at)

    def _step(self, optimizer: Any, *_: Any) -> None:
        """Note the end of an iteration: a step of the optimizer that took the first one.

        If the script has that one no more, as after another stage of training, it is the next's. A
        step within another's, as of `ZeroRedundancyOptimizer`, is a part of that.
        """
        while self._steps and self._steps.pop() != id(optimizer):
            pass
        if self._steps:
            return
        if self._optimizer is None or self._optimizer() is None:
            self._optimizer = ref(optimizer)
        if self._optimizer() is optimizer:
            with self._clock:
                self._end_backward()
                exposed_ps = self._link.exposed_ps
                self._link.note(ITERATION, self._clock.now_ps, exposed_ps - self._exposed_ps)
                self._exposed_ps = exposed_ps
                self._send_spans()

    # Modules.

    def _enter(self, module: nn.Module, _: Any) -> None:
        with self._clock:
            self._end_backward()
            if not self._open:
                self._learn_names(module)
            self._open.append((module, self._clock.now_ps))

    def _leave(self, module: nn.Module, _: Any, output: Any) -> None:
        with self._clock:
            start_ps = self._clock.now_ps
            while self._open:
                each, began_ps = self._open.pop()
                if each is module:
                    start_ps = began_ps
                    break
            times = self._times_of(module)
            is_leaf = next(module.children(), None) is None
            if times is not None:
                start_ps = start_ps if is_leaf else self._clock.now_ps
                self._clock.advance(times.forward_ps)
            if is_leaf or times is not None:
                self._note(FORWARD, self._name(module), start_ps)
            if is_leaf or times is not None:
                self._watch_backward(module, output)

    def _watch_backward(self, module: nn.Module, output: Any) -> None:
        """Note when a module's backward pass begins: a gradient of its output is there.

        FSDP gathers a module's weights then, in a hook of the tensor, which goes before the node's.
        """
        has_begun = False

        def begin(_: object) -> None:
            nonlocal has_begun
            if has_begun:
                return
            has_begun = True
            with self._clock:
                self._end_backward()
                self._backward = self._name(module), self._clock.now_ps
                times = self._times_of(module)
                if times is not None:
                    self._clock.advance(times.backward_ps)

        for tensor in _find_tensors(output):
            if tensor.grad_fn is not None:
                tensor.grad_fn.register_prehook(begin)
            elif tensor.requires_grad:
                tensor.register_hook(begin)

    def _end_backward(self, end_ps: int | None = None) -> None:
        """Note a backward pass: it lasts until the next thing that this rank is seen to do."""
        if self._backward is not None:
            name, start_ps = self._backward
            self._backward = None
            self._note(BACKWARD, name, start_ps, end_ps)

    def _times_of(self, module: nn.Module) -> Any:
        if self._compute.modules is None:
            return None
        modules = self._compute.modules
        classes = (each.__name__ for each in type(module).__mro__)  # fully_shard derives classes
        names = (self._name(module), *classes)
        known = next((name for name in names if name in modules), None)
        if known is None:
            return None
        if known not in self._timed:
            self._timed.add(known)
            self._link.note(TIMED, known)
        return modules[known]

    def _learn_names(self, root: nn.Module) -> None:
        for path, module in root.named_modules():
            if not WRAPPERS & module._modules.keys():  # else the path is the wrapped module's
                parts = [part for part in path.split(".") if part not in WRAPPERS]
                name = ".".join(parts).removeprefix("module.") or type(module).__name__
                self._names.setdefault(id(module), name)

    def _name(self, module: nn.Module) -> str:
        return self._names.get(id(module), type(module).__name__)

    # Spans.

    def _wait(self, start_ps: int, end_ps: int, names: list[str]) -> None:
        self._end_backward(start_ps)
        self._note(WAITED, ", ".join(names[:4]), start_ps, end_ps)

    def _note(self, kind: str, name: str, start_ps: int, end_ps: int | None = None) -> None:
        """Note a stretch of time; None: it ends now."""
        if not self._timeline or self._count == MOST_SPANS:
            return
        self._spans.append([kind, name, start_ps, self._clock.now_ps if end_ps is None else end_ps])
        self._count += 1
        if len(self._spans) >= TOGETHER:
            self._send_spans()

    def _send_spans(self) -> None:
        if self._spans:
            self._link.note(SPANS, self._spans)
            self._spans = []

    # Other meters.

    def _count_flops(self) -> None:
        from ringleaf.experiments.workloads.train.flops import FlopMeter

        clock, rate = self._clock, self._compute.flops
        FlopMeter(lambda count: clock.advance(flops_ps(count, rate))).__enter__()

    def _pulse(self) -> None:
        """Say every now and then that this process works, while it says nothing else.

        A main thread that does not, although futures are open, waits for them in C++, where nobody
        can see it. So this thread waits in its place.
        """
        before_ns, said_s = main_thread_ns(), 0.0
        while True:
            time.sleep(PULSE_S)
            worked_ns = main_thread_ns()
            try:
                if worked_ns - before_ns > _WORKED_NS:
                    if time.monotonic() - said_s > _ALIVE_S:
                        self._link.say_alive()
                        said_s = time.monotonic()
                elif self._link.watched:
                    self._link.wait_watched(is_soft=True)
            except (OSError, FabricError):
                return  # the fabric has gone, which the main thread notices, too
            before_ns = worked_ns
