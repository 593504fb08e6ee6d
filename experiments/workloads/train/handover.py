"""A rank's calls as PyTorch makes them: tensors go into shared memory, and results come out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.distributed import ReduceOp

from ringleaf.core.tensors import Array
from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.experiments.workloads.train.calls import (
    ANY,
    PAIRED,
    RECEIVE,
    CollectiveCall,
    RefusedCallError,
)
from ringleaf.experiments.workloads.train.elements import Reduction
from ringleaf.experiments.workloads.train.layout import buffer_bytes
from ringleaf.experiments.workloads.train.link import RankConnection
from ringleaf.experiments.workloads.train.works import FabricWork

AVERAGE = "avg"

_OPS = {
    ReduceOp.SUM: "sum",
    ReduceOp.AVG: AVERAGE,
    ReduceOp.PRODUCT: "product",
    ReduceOp.MIN: "min",
    ReduceOp.MAX: "max",
    ReduceOp.BAND: "band",
    ReduceOp.BOR: "bor",
    ReduceOp.BXOR: "bxor",
}

Tensors = Sequence[torch.Tensor]


def dtype_name(dtype: torch.dtype) -> str:
    """Return a type's name: `float32`."""
    return str(dtype).removeprefix("torch.")


class GroupCalls:
    """The calls of one process group, as the fabric takes them.

    Args:
        link: The link to the fabric.
        group: The group's name, the same on all its ranks.
        rank: This rank in it.
        ranks: Its number of ranks.
    """

    def __init__(self, link: RankConnection, group: str, rank: int, ranks: int) -> None:
        self._link = link
        self._group = group
        self.rank_here = rank
        self.ranks = ranks

    def work(self, results: Tensors) -> FabricWork:
        """Return a work that calls to come belong to, and the tensors that they write to."""
        return FabricWork(self._link, results, self._group)

    def make(
        self,
        kind: str,
        inputs: Tensors,
        outputs: Tensors,
        *,
        like: torch.Tensor | None = None,
        op: Any = None,
        root: int = 0,
        tag: int = 0,
        count: int | None = None,
        sends: Sequence[int] = (),
        takes: Sequence[int] = (),
        work: FabricWork | None = None,
    ) -> FabricWork:
        """Make a call.

        Args:
            kind: One of `calls.KINDS`.
            inputs: The tensors that this rank gives, one behind the other.
            outputs: The tensors that it gets.
            like: A tensor of the call's type; by default the first of these.
            op: The reduction, as PyTorch has it.
            root: The root, or the peer.
            tag: The tag of a message.
            count: Elements, as `CollectiveCall.count` has them; by default those of all inputs.
            sends: Elements for each rank of an all_to_all.
            takes: Elements from each.
            work: A work that this call belongs to; None: a new one.
        """
        with self._link.clock:
            sample = next(iter([*([] if like is None else [like]), *inputs, *outputs]))
            dtype = sample.dtype
            _check(kind, [*inputs, *outputs], dtype)
            _check_rank(kind, root, self.ranks)
            name, factor, divisor = _reduction(op, self.ranks, dtype)
            if name:
                _check_reduction(dtype, name)
            elements = sum(each.numel() for each in inputs) if count is None else count
            call = CollectiveCall(
                kind, dtype_name(dtype), name, elements, root, tag, tuple(sends), tuple(takes)
            )
            handle = work or self.work(outputs)
            streams = self._link.streams
            at_ps = streams.time_for(self._group, [*inputs, *outputs]) if streams else None
            tensors = _scaled(inputs, factor)
            self._send(call, tensors, outputs, dtype.itemsize, handle, divisor, at_ps)
        return handle

    def _send(
        self,
        call: CollectiveCall,
        inputs: Tensors,
        outputs: Tensors,
        item: int,
        work: FabricWork,
        divisor: int,
        at_ps: int | None,
    ) -> None:
        link = self._link
        number, buffer = link.buffer(max(buffer_bytes(call, self.ranks, item)))
        _copy_in(buffer, inputs)

        def end(source: int, end_ps: int) -> None:
            _copy_out(buffer, outputs)
            link.give(number)
            _divide(outputs, divisor)
            work.set_source(source)
            work.finish_one(end_ps)

        work.add(link.call(self._group, call, number, end, at_ps), outputs)


def _check(kind: str, tensors: Tensors, dtype: torch.dtype) -> None:
    for each in tensors:
        if each.dtype != dtype or each.device.type != "cpu" or each.layout != torch.strided:
            raise RefusedCallError(
                f"{kind}: tensors must be dense, on the CPU and of one type, got "
                f"{each.dtype} on {each.device}, {each.layout}"
            )


def _check_rank(kind: str, rank: int, ranks: int) -> None:
    if not 0 <= rank < ranks and (kind, rank) != (RECEIVE, ANY):
        what = "peer" if kind in PAIRED else "root"
        raise RefusedCallError(
            f"{kind}: {what} must be one of {format_count(ranks, 'rank')}, got {rank}"
        )


def _check_reduction(dtype: torch.dtype, name: str) -> None:
    try:
        Reduction(dtype_name(dtype), name)
    except ConfigError as error:
        raise RefusedCallError(str(error)) from None


def _reduction(op: Any, ranks: int, dtype: torch.dtype) -> tuple[str, Any, int]:
    """Return a reduction's name, the factor of what ranks give, and the divisor of the results.

    Averages are NCCL's: fractions are divided before they are added, so that no sum overflows, and
    whole numbers afterwards, towards zero (`hostToDevRedOp` in its `enqueue.cc`).
    """
    if op is None:
        return "", None, 1
    if op == ReduceOp.PREMUL_SUM:
        return "sum", op.__getstate__()[1], 1
    name = next((name for each, name in _OPS.items() if op == each), None)
    if name is None:
        raise RefusedCallError(f"reduce: unknown operation, got {op!r}")
    if name != AVERAGE:
        return name, None, 1
    has_fractions = dtype.is_floating_point or dtype.is_complex
    return ("sum", 1 / ranks, 1) if has_fractions else ("sum", None, ranks)


def _scaled(tensors: Tensors, factor: Any) -> Tensors:
    """Return what a rank gives to a reduction: its tensors times a factor, if there is one."""
    return tensors if factor is None else [each.detach() * factor for each in tensors]


def _divide(tensors: Tensors, divisor: int) -> None:
    """Divide results that are whole numbers."""
    if divisor != 1:
        for each in tensors:
            each.data.div_(divisor, rounding_mode="trunc")


def _copy_in(buffer: Array, tensors: Tensors) -> None:
    """Copy tensors to shared memory.

    Their own `numpy()` would do, but for ever forbid that their storage is resized, as FSDP does.
    """
    for each, part in _with_parts(buffer, tensors):
        part.copy_(each.detach())


def _copy_out(buffer: Array, tensors: Tensors) -> None:
    """Copy results to tensors, past autograd and its count of versions, as PyTorch's backends do.

    So a script may reduce a loss before the backward pass for which autograd has kept it.
    """
    for each, part in _with_parts(buffer, tensors):
        each.data.copy_(part)


def _with_parts(buffer: Array, tensors: Tensors) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield each tensor with its part of a buffer, of its type and shape."""
    shared, at = torch.from_numpy(buffer), 0
    for each in tensors:
        size = each.numel() * each.element_size()
        yield each, shared[at : at + size].view(each.dtype).view(each.shape)
        at += size
