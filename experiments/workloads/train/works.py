"""Calls under way as scripts see them: `torch.distributed.Work` and its future."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import Work
from torch.futures import Future

from ringleaf.experiments.workloads.train.link import RankConnection


class FabricFuture(Future[Any]):
    """A future of a call, by which Python code waits in virtual time."""

    def __init__(self, settle: Callable[[], object]) -> None:
        super().__init__()
        self._settle = settle

    def wait(self) -> Any:
        """Wait in virtual time, and return the value."""
        if not self.done():
            self._settle()
        return super().wait()

    def then(self, callback: Callable[[Any], Any]) -> FabricFuture:
        """Return a future of what a function makes of this one."""
        future = FabricFuture(self._settle)

        def go_on(this: Future[Any]) -> None:
            try:
                future.set_result(callback(this))
            except Exception as error:  # noqa: BLE001 - it belongs to who waits
                future.set_exception(error)

        self.add_done_callback(go_on)
        return future


class FabricWork(Work):
    """A call under way, or several that were made together.

    Args:
        link: The link that carries it.
        results: The tensors that it writes to.
        group: The name of the process group.

    Attributes:
        end_ps: The time at which the last of its calls that are over was over.
        writes: The tensors that its calls write to.
    """

    def __init__(
        self, link: RankConnection, results: Sequence[torch.Tensor], group: str = ""
    ) -> None:
        super().__init__()
        self.group = group
        self.end_ps = 0
        self.writes: list[torch.Tensor] = []
        self._link = link
        self._results = list(results)
        self._numbers: list[int] = []
        self._left = 0
        self._future: FabricFuture | None = None
        self._source = -1

    def add(self, number: int, writes: Sequence[torch.Tensor]) -> None:
        """Belong to one more call, which writes to these tensors."""
        self._numbers.append(number)
        self.writes += writes
        self._left += 1

    def finish_one(self, end_ps: int) -> None:
        """Take note that one of the calls is over, and since when."""
        self._left -= 1
        self.end_ps = max(self.end_ps, end_ps)
        if not self._left and self._future is not None:
            self._future.set_result(self._results)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Have the current stream wait; the fabric ends waits that would last for ever."""
        del timeout
        if (sought := getattr(_sought, "works", None)) is not None:
            sought.append(self)
            return True
        if self._link.streams is None or not self._link.streams.defer(self):
            self.settle()
        return True

    def settle(self, *, quietly: bool = False) -> None:
        """Wait in virtual time; quietly: the process waits, and the rank's clock stands."""
        with self._link.clock:
            self._link.wait(self._numbers, quietly=quietly)
            if not quietly:
                self._link.reach(self.end_ps)

    def get_future(self) -> FabricFuture:
        """Return the future of the results."""
        if self._future is None:
            self._future = FabricFuture(self.settle)
            if self._left:
                for number in self._numbers:
                    self._link.watch(number)
                settle_after_backward(self._link)
            else:
                self._future.set_result(self._results)
        return self._future

    def is_completed(self) -> bool:
        """Return whether it is over at this time; if not, the look takes a microsecond."""
        if self._left:
            with self._link.clock:
                for number in self._numbers:
                    if not self._link.look(number):
                        return False
        return True

    def is_success(self) -> bool:
        """Return whether it is over; what fails ends the run."""
        return self._left == 0

    def exception(self) -> None:
        """Return nothing, as what fails ends the run."""

    def result(self) -> list[torch.Tensor]:
        """Return the tensors that it writes to."""
        return self._results

    def synchronize(self) -> None:
        """Wait."""
        self.wait()

    def source_rank(self) -> int:
        """Return the rank that a message came from."""
        return self._source

    _source_rank = source_rank

    def set_source(self, rank: int) -> None:
        """Note the rank that a message came from."""
        self._source = rank


HANDED_ON = (
    *("is_completed", "is_success", "exception", "result", "synchronize"),
    *("source_rank", "_source_rank"),
)
"""The methods that PyTorch's wrapper of a work does not hand on to it."""

_sought = threading.local()


def answer_for_wrappers() -> None:
    """Have the works that PyTorch makes of ours answer as ours do.

    In releases after 2.13, scripts get a wrapper of our work that hands on `wait` and `get_future`
    alone. So a wait finds the work behind it.
    """
    for name in HANDED_ON:
        setattr(Work, name, _handed_on(name, getattr(Work, name)))


def _handed_on(name: str, usual: Callable[..., Any]) -> Callable[..., Any]:
    def ask(work: Work, *args: Any) -> Any:
        _sought.works = works = list[FabricWork]()
        try:
            work.wait()
        finally:
            _sought.works = None
        return getattr(works[0], name)(*args) if works else usual(work, *args)

    return ask


def settle_after_backward(link: RankConnection) -> None:
    """Have a backward pass that is under way end with a wait for all futures.

    DDP waits for its futures in C++, where nobody can tell the fabric that this rank waits. It does
    so in a callback at the end of the pass; ours is queued before it.
    """
    task = torch._C._current_graph_task_id()
    if task == -1 or link.settled_task == task:
        return
    link.settled_task = task

    def settle() -> None:
        link.settled_task = -1
        with link.clock:
            link.wait(link.watched)

    torch.autograd.Variable._execution_engine.queue_callback(settle)
