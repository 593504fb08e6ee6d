"""The class that PyTorch calls, on both of the bases that it may have."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist

from ringleaf.core.tensors import Array
from ringleaf.errors import ConfigError
from ringleaf.experiments.workloads.train.backend import base_class, make_class
from ringleaf.experiments.workloads.train.calls import CollectiveCall
from ringleaf.experiments.workloads.train.clock import RankClock
from ringleaf.experiments.workloads.train.hooks import Compression
from ringleaf.experiments.workloads.train.works import HANDED_ON, answer_for_wrappers


class Base:
    """A base as newer versions of PyTorch have it: a backend."""

    def __init__(self, rank: int, size: int) -> None:
        self.made = rank, size


class Link:
    """A link of one rank whose calls are over when it waits: each result is twice what it gave."""

    def __init__(self) -> None:
        self.clock = RankClock()
        self.calls: list[CollectiveCall] = []
        self.settled_task = -1
        self.streams = None
        self._open: dict[int, tuple[Array, Callable[[int, int], None]]] = {}
        self._buffer = np.zeros(0, np.uint8)

    def buffer(self, size_bytes: int) -> tuple[int, Array]:
        self._buffer = np.zeros(size_bytes + 16, np.uint8)
        return 0, self._buffer

    def give(self, number: int) -> None:
        pass

    def call(
        self,
        group: str,
        call: CollectiveCall,
        buffer: int,
        finish: Callable[[int, int], None],
        at_ps: int | None = None,
    ) -> int:
        self.calls.append(call)
        self._open[len(self.calls)] = self._buffer, finish
        return len(self.calls)

    def watch(self, number: int) -> None:
        pass

    def reach(self, time_ps: int) -> None:
        pass

    def look(self, number: int) -> bool:
        return number not in self._open

    def wait(self, numbers: list[int], *, quietly: bool = False) -> None:
        for number in numbers:
            if number in self._open:
                buffer, finish = self._open.pop(number)
                dtype = getattr(torch, self.calls[number - 1].dtype)
                torch.from_numpy(buffer).view(dtype).mul_(2)
                finish(0, 0)


def make(base: type[Any], ranks: int = 1) -> tuple[Link, Any]:
    link = Link()
    return link, make_class(base)(link, "g", 0, ranks)


@pytest.fixture(params=[Base, dist.ProcessGroup])
def base(request: pytest.FixtureRequest) -> type[Any]:
    found: type[Any] = request.param
    return found


def test_a_backend_is_inherited_where_pytorch_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert base_class() is dist.ProcessGroup or not hasattr(dist, "BackendBase")

    monkeypatch.setattr(dist, "BackendBase", Base, raising=False)

    assert base_class() is Base


def test_calls_work_on_both_bases(base: type[Any]) -> None:
    link, group = make(base)
    tensor = torch.ones(3)

    work = group.allreduce([tensor], SimpleNamespace(reduceOp=dist.ReduceOp.SUM))
    assert not work.is_success()
    assert work.wait()

    assert tensor.tolist() == [2.0] * 3
    assert work.get_future().wait() == [tensor]
    assert link.calls == [CollectiveCall("all_reduce", "float32", "sum", 3)]


class Wrapper(dist.Work):  # type: ignore[misc]
    """A work as newer versions of PyTorch give it to scripts: it hands on two calls."""

    def __init__(self, work: dist.Work) -> None:
        super().__init__()
        self._work = work

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        return bool(self._work.wait(timeout))

    def get_future(self) -> Any:
        return self._work.get_future()


def test_works_that_are_wrapped_answer_as_ours_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in HANDED_ON:
        monkeypatch.setattr(dist.Work, name, getattr(dist.Work, name))
    answer_for_wrappers()
    _, group = make(Base)
    tensor = torch.ones(3)
    ours = group.recv([tensor], 0)
    ours.set_source(2)
    work = Wrapper(ours)

    assert not work.is_completed()
    assert tensor.tolist() == [1.0] * 3, "asked, it does not wait"
    assert work.wait()
    assert work.is_completed()
    assert work.is_success()
    assert work.result() == [tensor]
    assert ours.source_rank() == work.source_rank() == work._source_rank()


def test_only_process_groups_hold_calls_together() -> None:
    assert make(dist.ProcessGroup)[1].supports_coalescing
    assert not make(Base)[1].supports_coalescing


def test_old_and_new_names_are_the_same_calls(base: type[Any]) -> None:
    link, group = make(base)
    for name in ("_allgather_base", "all_gather_single"):
        getattr(group, name)(torch.empty(2), torch.ones(2)).wait()
    for name in ("alltoall_base", "all_to_all_single"):
        getattr(group, name)(torch.empty(2), torch.ones(2), [], []).wait()
    for name in ("_reduce_scatter_base", "reduce_scatter_single"):
        getattr(group, name)(torch.empty(2), torch.ones(2)).wait()

    assert [call.kind for call in link.calls] == [
        *("all_gather", "all_gather", "all_to_all", "all_to_all"),
        *("reduce_scatter", "reduce_scatter"),
    ]


def test_averages_and_scaled_sums_are_sums() -> None:
    link, group = make(Base, ranks=4)
    mean, scaled = torch.full((2,), 6.0), torch.full((2,), 6.0)

    group.allreduce([mean], SimpleNamespace(reduceOp=dist.ReduceOp.AVG)).wait()
    factor = torch._C._distributed_c10d._make_nccl_premul_sum(0.5)
    group.allreduce([scaled], SimpleNamespace(reduceOp=factor)).wait()

    assert [call.op for call in link.calls] == ["sum", "sum"]
    assert mean.tolist() == [3.0, 3.0]
    assert scaled.tolist() == [6.0, 6.0]


@pytest.mark.parametrize(
    ("dtype", "value", "mean"),
    [
        (torch.float16, 4e4, 2e4),  # twice 40,000 would be infinite
        (torch.bfloat16, 2.0**127, 2.0**126),
        (torch.int32, -3, -1),  # -6 / 4, towards zero
    ],
)
def test_averages_are_those_of_nccl(dtype: torch.dtype, value: float, mean: float) -> None:
    _, group = make(Base, ranks=4)
    tensor = torch.full((2,), value, dtype=dtype)

    group.allreduce([tensor], SimpleNamespace(reduceOp=dist.ReduceOp.AVG)).wait()

    assert tensor.tolist() == [mean, mean]


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor([[3.0, 4.0]])[:, 0],  # of one element, and a stride of two
        torch.tensor([1 - 3j]).conj().imag,  # which PyTorch negates when it is read
        torch.tensor([[1.0, 5.0], [2.0, 6.0]]).t(),
        torch.tensor(3.0, dtype=torch.bfloat16),
        torch.zeros(0, 3),
    ],
    ids=["stride", "negative", "transposed", "scalar", "empty"],
)
def test_views_are_given_and_taken_as_they_look(tensor: torch.Tensor) -> None:
    _, group = make(Base)
    twice = (2 * tensor).tolist()

    group.allreduce([tensor], SimpleNamespace(reduceOp=dist.ReduceOp.SUM)).wait()

    assert tensor.tolist() == twice


def test_autograd_goes_on_where_what_it_has_kept_is_reduced() -> None:
    """As by Gloo and NCCL, which do not count it as another version of the tensor."""
    _, group = make(Base)
    x = torch.tensor([4.0], requires_grad=True)
    loss = x.sqrt()

    group.allreduce([loss.detach()], SimpleNamespace(reduceOp=dist.ReduceOp.SUM)).wait()
    loss.backward()

    assert loss.tolist() == [4.0]  # twice 2, as the link has it
    assert x.grad is not None


def test_uneven_parts_are_broadcast_or_reduced_one_by_one() -> None:
    """As by NCCL (`ProcessGroupNCCL::allgather`, `reduce_scatter`); Gloo refuses them."""
    link, group = make(Base, ranks=2)
    own, other, result = torch.ones(1), torch.zeros(2), torch.zeros(1)

    group.allgather([[result, other]], [own]).wait()
    assert link.calls == [
        CollectiveCall("broadcast", "float32", "", 1, root=0),
        CollectiveCall("broadcast", "float32", "", 2, root=1),
    ]
    assert result.tolist() == [1.0]

    options = SimpleNamespace(reduceOp=dist.ReduceOp.MAX)
    group.reduce_scatter([result], [[torch.full((1,), 3.0), torch.ones(2)]], options).wait()
    assert link.calls[2:] == [
        CollectiveCall("reduce", "float32", "max", 1, root=0),
        CollectiveCall("reduce", "float32", "max", 2, root=1),
    ]
    assert result.tolist() == [6.0]  # twice what was given, as the link has it


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda g: g.all_gather_single(torch.empty(3), torch.ones(2)),
            "all_gather: the large.*got 3 and 2",
        ),
        (
            lambda g: g.allgather([[torch.empty(1)]], [torch.ones(1)]),
            "must have 2 tensors, this rank's of 1 elem",
        ),
        (
            lambda g: g.all_to_all_single(torch.empty(3), torch.ones(3)),
            "multiple of 2 ranks, got 3",
        ),
        (
            lambda g: g.all_to_all_single(torch.empty(2), torch.ones(2), [1, 1], [1, 2]),
            r"splits must be 2 numbers that add up to 2 rows, got \[1, 2\]",
        ),
        (
            lambda g: g.broadcast([torch.ones(2, device="meta")], SimpleNamespace(rootRank=0)),
            "broadcast: tensors must be dense, on the CPU",
        ),
        (
            lambda g: g.broadcast([torch.ones(2)], SimpleNamespace(rootRank=2)),
            "broadcast: root must be one of 2 ranks, got 2",
        ),
        (
            lambda g: g.send([torch.ones(2)], -1),
            "send: peer must be one of 2 ranks, got -1",
        ),
    ],
)
def test_wrong_tensors_are_refused(call: Callable[[Any], Any], message: str) -> None:
    _, group = make(Base, ranks=2)

    with pytest.raises(ConfigError, match=message):
        call(group)


class Bucket:
    """A bucket of DDP's, as far as hooks use it."""

    def __init__(self, parameters: list[torch.Tensor], values: list[float]) -> None:
        self._parameters, self._values = parameters, torch.tensor(values)

    def index(self) -> int:
        return 0

    def buffer(self) -> torch.Tensor:
        return self._values

    def parameters(self) -> list[torch.Tensor]:
        return self._parameters


def test_what_a_hook_has_not_sent_follows_its_parameters_into_other_buckets() -> None:
    a, b = torch.empty(2), torch.empty(1)
    state = Compression("topk:1")

    first = state.carry(Bucket([a, b], [1.0, 5.0, 3.0]))
    second = state.carry(Bucket([b, a], [1.0, 0.0, 0.0]))
    third = state.carry(Bucket([a], [0.0, 0.0]))

    assert first.tolist() == [0.0, 5.0, 0.0]
    assert second.tolist() == [4.0, 0.0, 0.0]  # b's 1 and the 3 that was left of it
    assert third.tolist() == [1.0, 0.0]  # what was left of a from the beginning


@pytest.mark.parametrize(
    ("dtype", "op"),
    [
        (torch.float32, dist.ReduceOp.BAND),
        (torch.bfloat16, dist.ReduceOp.BXOR),
        (torch.complex64, dist.ReduceOp.MAX),
        (torch.float8_e4m3fn, dist.ReduceOp.SUM),
    ],
)
def test_a_script_may_try_what_can_not_be_reduced(dtype: torch.dtype, op: Any) -> None:
    """PyTorch's backends raise a RuntimeError, too, and nothing is sent."""
    link, group = make(Base)
    with pytest.raises(RuntimeError, match="reduce: "):
        group.allreduce([torch.zeros(3, dtype=dtype)], SimpleNamespace(reduceOp=op))
    assert link.calls == []
