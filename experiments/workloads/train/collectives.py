"""The calls of `torch.distributed`, by the names that its process groups and backends have.

PyTorch newer than 2.13 has other names for some of them; one class has all names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed import ReduceOp

from ringleaf.core.units import format_count
from ringleaf.experiments.workloads.train import calls
from ringleaf.experiments.workloads.train.calls import ANY, RefusedCallError
from ringleaf.experiments.workloads.train.handover import GroupCalls, Tensors
from ringleaf.experiments.workloads.train.works import FabricWork


class Collectives:
    """All calls of `torch.distributed`, by the names that its process groups and backends have."""

    calls: GroupCalls
    _batch: FabricWork | None = None  # of calls that are coalesced

    def allreduce(self, tensors: Tensors, opts: Any = None) -> FabricWork:
        """Reduce a tensor on all ranks."""
        return self._make(calls.ALL_REDUCE, tensors, tensors, op=_op(opts))

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> FabricWork:
        """Reduce several tensors in one call."""
        return self._make(calls.ALL_REDUCE, tensors, tensors, op=_op(opts))

    def reduce(self, tensors: Tensors, opts: Any) -> FabricWork:
        """Reduce a tensor on one rank."""
        root = opts.rootRank
        outputs = tensors if self.calls.rank_here == root else []
        return self._make(calls.REDUCE, tensors, outputs, op=opts.reduceOp, root=root)

    def broadcast(self, tensors: Tensors, opts: Any) -> FabricWork:
        """Copy one rank's tensor to all."""
        is_root = self.calls.rank_here == opts.rootRank
        count = sum(each.numel() for each in tensors)
        inputs, outputs = (tensors, []) if is_root else ([], tensors)
        work = self.calls.work(tensors)
        return self._make(
            calls.BROADCAST,
            *(inputs, outputs),
            like=tensors[0],
            root=opts.rootRank,
            count=count,
            work=work,
        )

    def allgather(
        self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None
    ) -> FabricWork:
        """Copy each rank's tensor to all."""
        [tensor], [blocks] = inputs, outputs
        if self._are_even(calls.ALL_GATHER, tensor, blocks):
            return self._make(calls.ALL_GATHER, [tensor], blocks)
        work = self.calls.work(blocks)
        for root, block in enumerate(blocks):
            is_root = root == self.calls.rank_here
            self._make(
                calls.BROADCAST,
                *(([tensor], []) if is_root else ([], [block])),
                like=block,
                root=root,
                count=block.numel(),
                work=work,
            )
        blocks[self.calls.rank_here].data.copy_(tensor.detach())
        return work

    def allgather_coalesced(
        self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None
    ) -> FabricWork:
        """Copy each rank's tensors to all: `outputs[rank][i]` is its i-th."""
        work = self.calls.work([each for row in outputs for each in row])
        for place, tensor in enumerate(inputs):
            blocks = [row[place] for row in outputs]
            self._make(calls.ALL_GATHER, [tensor], blocks, work=work)
        return work

    def all_gather_single(
        self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None
    ) -> FabricWork:
        """Copy each rank's tensor to all, one behind the other."""
        self._whole_blocks(calls.ALL_GATHER, output, tensor)
        return self._make(calls.ALL_GATHER, [tensor], [output])

    def all_gather_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = None
    ) -> FabricWork:
        """Do `all_gather_single` with several tensors."""
        work = self.calls.work(outputs)
        for output, tensor in zip(outputs, inputs, strict=True):
            self._whole_blocks(calls.ALL_GATHER, output, tensor)
            self._make(calls.ALL_GATHER, [tensor], [output], work=work)
        return work

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any) -> FabricWork:
        """Copy each rank's tensor to one."""
        blocks = list(outputs[0]) if outputs else []
        return self._make(calls.GATHER, inputs, blocks, root=opts.rootRank)

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any) -> FabricWork:
        """Give each rank one of the root's tensors."""
        blocks = list(inputs[0]) if inputs else []
        count = outputs[0].numel()
        return self._make(calls.SCATTER, blocks, outputs, root=opts.rootRank, count=count)

    def reduce_scatter(
        self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = None
    ) -> FabricWork:
        """Reduce a tensor for each rank on that rank."""
        [tensor], [blocks] = outputs, inputs
        op = _op(opts)
        if self._are_even(calls.REDUCE_SCATTER, tensor, blocks):
            count = tensor.numel()
            return self._make(calls.REDUCE_SCATTER, list(blocks), [tensor], op=op, count=count)
        work = self.calls.work([tensor])
        for root, block in enumerate(blocks):
            results = [tensor] if root == self.calls.rank_here else []
            self._make(calls.REDUCE, [block], results, op=op, root=root, work=work)
        return work

    def reduce_scatter_single(
        self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None
    ) -> FabricWork:
        """Reduce a tensor, and give each rank its part."""
        self._whole_blocks(calls.REDUCE_SCATTER, tensor, output)
        return self._make(
            calls.REDUCE_SCATTER, [tensor], [output], op=_op(opts), count=output.numel()
        )

    def reduce_scatter_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = None
    ) -> FabricWork:
        """Do `reduce_scatter_single` with several tensors."""
        work = self.calls.work(outputs)
        for output, tensor in zip(outputs, inputs, strict=True):
            self._whole_blocks(calls.REDUCE_SCATTER, tensor, output)
            count = output.numel()
            self._make(
                calls.REDUCE_SCATTER, [tensor], [output], op=_op(opts), count=count, work=work
            )
        return work

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> FabricWork:
        """Give each rank a tensor."""
        sends, takes = ([each.numel() for each in tensors] for tensors in (inputs, outputs))
        return self._make(calls.ALL_TO_ALL, inputs, outputs, sends=sends, takes=takes)

    def all_to_all_single(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_splits: Sequence[int] | None = None,
        input_splits: Sequence[int] | None = None,
        opts: Any = None,
    ) -> FabricWork:
        """Give each rank a part of a tensor, cut along its first dimension."""
        sends = self._splits(tensor, input_splits)
        takes = self._splits(output, output_splits)
        return self._make(calls.ALL_TO_ALL, [tensor], [output], sends=sends, takes=takes)

    def barrier(self, opts: Any = None) -> FabricWork:
        """Wait for all ranks."""
        return self._make(calls.BARRIER, [], [], like=torch.empty(0, dtype=torch.uint8))

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """Wait for all ranks; the fabric names those that don't come."""
        self.barrier().wait()

    def send(self, tensors: Tensors, dst: int, tag: int = 0) -> FabricWork:
        """Send a tensor to a rank."""
        return self._make(calls.SEND, tensors, [], root=dst, tag=tag)

    def recv(self, tensors: Tensors, src: int, tag: int = 0) -> FabricWork:
        """Receive a tensor from a rank."""
        count = sum(each.numel() for each in tensors)
        return self._make(calls.RECEIVE, [], tensors, root=src, tag=tag, count=count)

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> FabricWork:
        """Receive a tensor from whichever rank sends one."""
        return self.recv(tensors, ANY, tag)

    def _start_coalescing(self, *_: Any) -> None:
        """Begin to hold calls together, so that all are waited for at once."""
        self._batch = self.calls.work([])

    def _end_coalescing(self, *_: Any) -> FabricWork:
        """Return the work of the calls since the beginning."""
        work, self._batch = self._batch, None
        assert work is not None
        return work

    # Names that PyTorch had before, or has for the same calls elsewhere.
    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    alltoall_base = all_to_all_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def _make(self, kind: str, inputs: Tensors, outputs: Tensors, **about: Any) -> FabricWork:
        if self._batch is not None and about.get("work") is None:
            about["work"] = self._batch
        return self.calls.make(kind, inputs, outputs, **about)

    def _splits(self, tensor: torch.Tensor, splits: Sequence[int] | None) -> list[int]:
        """Return the elements for each rank, or from each."""
        ranks = self.calls.ranks
        rows = tensor.shape[0] if tensor.dim() else 1
        if not splits:
            if rows % ranks:
                raise RefusedCallError(
                    f"all_to_all: rows must be a multiple of {format_count(ranks, 'rank')}, got "
                    f"{rows}; give splits"
                )
            return [tensor.numel() // ranks] * ranks
        if len(splits) != ranks or sum(splits) != rows:
            raise RefusedCallError(
                f"all_to_all: splits must be {format_count(ranks, 'number')} that add up to "
                f"{format_count(rows, 'row')}, got {list(splits)}"
            )
        return [split * (tensor.numel() // max(rows, 1)) for split in splits]

    def _are_even(self, kind: str, part: torch.Tensor, whole: Tensors) -> bool:
        """Return whether all ranks' tensors are as large as this rank's.

        Others are broadcast, or reduced, one after the other, as NCCL does it side by side.
        """
        sizes, own = [each.numel() for each in whole], self.calls.rank_here
        if len(whole) != self.calls.ranks or sizes[own] != part.numel():
            raise RefusedCallError(
                f"{kind}: must have {format_count(self.calls.ranks, 'tensor')}, this rank's of "
                f"{format_count(part.numel(), 'element')}, got {sizes}"
            )
        return len({*sizes}) == 1

    def _whole_blocks(self, kind: str, whole: torch.Tensor, part: torch.Tensor) -> None:
        if whole.numel() != self.calls.ranks * part.numel():
            raise RefusedCallError(
                f"{kind}: the large tensor must be {self.calls.ranks} times the small one, got "
                f"{whole.numel()} and {format_count(part.numel(), 'element')}"
            )


def _op(opts: Any) -> Any:
    return ReduceOp.SUM if opts is None else opts.reduceOp
