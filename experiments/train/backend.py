"""The backend `ringleaf` of `torch.distributed`: hands every call to the fabric.

PyTorch newer than 2.13 lets Python classes be backends (`dist.BackendBase`, or a `Backend` that can
be made). Before, they are process groups. Both call the same methods by the same names, or by older
ones; so one class has them all, and its base is chosen when this module is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

from ringleaf.errors import ConfigError
from ringleaf.experiments.train import calls
from ringleaf.experiments.train.calls import ANY, Call
from ringleaf.experiments.train.layout import buffer_bytes
from ringleaf.experiments.train.link import Link
from ringleaf.experiments.train.works import FabricWork

NAME = "ringleaf"

AVERAGE, SCALED = "avg", "premul_sum"

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


class Calls:
    """The calls of one process group, as the fabric takes them.

    Args:
        link: The link to the fabric.
        group: The group's name, the same on all its ranks.
        rank: This rank in it.
        ranks: Its number of ranks.
    """

    def __init__(self, link: Link, group: str, rank: int, ranks: int) -> None:
        self._link = link
        self._group = group
        self.rank_here = rank
        self.ranks = ranks

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
            count: Elements, as `Call.count` has them; by default those of all inputs.
            sends: Elements for each rank of an all_to_all.
            takes: Elements from each.
            work: A work that this call belongs to; None: a new one.
        """
        with self._link.clock:
            sample = next(iter([*([] if like is None else [like]), *inputs, *outputs]))
            dtype = sample.dtype
            _check(kind, [*inputs, *outputs], dtype)
            name, finish = _reduction(op, self.ranks, outputs)
            given = _scaled(op, inputs) if name else inputs
            elements = sum(each.numel() for each in inputs) if count is None else count
            call = Call(
                kind, dtype_name(dtype), name, elements, root, tag, tuple(sends), tuple(takes)
            )
            made = work or FabricWork(self._link, outputs)
            self._send(call, given, outputs, dtype.itemsize, made, finish)
        return made

    def _send(
        self,
        call: Call,
        inputs: Tensors,
        outputs: Tensors,
        item: int,
        work: FabricWork,
        finish: Callable[[], None],
    ) -> None:
        link = self._link
        number, buffer = link.buffer(max(buffer_bytes(call, self.ranks, item)))
        _copy_in(buffer, inputs)

        def end(source: int) -> None:
            _copy_out(buffer, outputs)
            link.give(number)
            finish()
            work.set_source(source)
            work.finish_one()

        work.add(link.call(self._group, call, number, end))


def _check(kind: str, tensors: Tensors, dtype: torch.dtype) -> None:
    for each in tensors:
        if each.dtype != dtype or each.device.type != "cpu" or each.layout != torch.strided:
            raise ConfigError(
                f"{kind}: tensors must be dense, on the CPU and of one type, got "
                f"{each.dtype} on {each.device}, {each.layout}"
            )


def _reduction(op: Any, ranks: int, outputs: Tensors) -> tuple[str, Callable[[], None]]:
    """Return the name of a reduction, and what this rank does with its results afterwards."""
    if op is None:
        return "", _nothing
    if _is_scaled(op):
        return "sum", _nothing
    name = next((name for each, name in _OPS.items() if op == each), None)
    if name is None:
        raise ConfigError(f"reduce: unknown operation, got {op!r}")
    if name != AVERAGE:
        return name, _nothing

    def divide() -> None:
        for each in outputs:
            each.detach().div_(ranks)

    return "sum", divide


def _is_scaled(op: Any) -> bool:
    return bool(op == ReduceOp.PREMUL_SUM)


def _scaled(op: Any, inputs: Tensors) -> Tensors:
    """Return what a rank gives to a reduction: a premultiplied sum's inputs times their factor."""
    if not _is_scaled(op):
        return inputs
    factor = op.__getstate__()[1]
    return [each.detach() * factor for each in inputs]


def _nothing() -> None:
    pass


def _copy_in(buffer: np.ndarray[Any, Any], tensors: Tensors) -> None:
    at = 0
    for each in tensors:
        data = _bytes(each.detach().contiguous())
        buffer[at : at + data.size] = data
        at += data.size


def _copy_out(buffer: np.ndarray[Any, Any], tensors: Tensors) -> None:
    at = 0
    with torch.no_grad():
        for each in tensors:
            size = each.numel() * each.element_size()
            part = torch.from_numpy(buffer[at : at + size])
            if each.is_contiguous():
                part_of = each.detach().reshape(-1).view(torch.uint8)
                part_of.copy_(part)
            else:
                each.detach().copy_(part.clone().view(each.dtype).view(each.shape))
            at += size


def _bytes(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = tensor.reshape(-1).view(torch.uint8).numpy()
    return found


class Collectives:
    """All calls of `torch.distributed`, by the names that its process groups and backends have."""

    calls: Calls
    _held: FabricWork | None = None  # of calls that are coalesced

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
        work = FabricWork(self.calls._link, tensors)
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
        [given], [wanted] = inputs, outputs
        self._same_sizes(calls.ALL_GATHER, given, wanted)
        return self._make(calls.ALL_GATHER, [given], wanted)

    def allgather_coalesced(
        self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None
    ) -> FabricWork:
        """Copy each rank's tensors to all: `outputs[rank][i]` is its i-th."""
        work = FabricWork(self.calls._link, [each for row in outputs for each in row])
        for place, given in enumerate(inputs):
            wanted = [row[place] for row in outputs]
            self._make(calls.ALL_GATHER, [given], wanted, work=work)
        return work

    def all_gather_single(
        self, output: torch.Tensor, given: torch.Tensor, opts: Any = None
    ) -> FabricWork:
        """Copy each rank's tensor to all, one behind the other."""
        self._whole_blocks(calls.ALL_GATHER, output, given)
        return self._make(calls.ALL_GATHER, [given], [output])

    def all_gather_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = None
    ) -> FabricWork:
        """Do `all_gather_single` with several tensors."""
        work = FabricWork(self.calls._link, outputs)
        for output, given in zip(outputs, inputs, strict=True):
            self._whole_blocks(calls.ALL_GATHER, output, given)
            self._make(calls.ALL_GATHER, [given], [output], work=work)
        return work

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any) -> FabricWork:
        """Copy each rank's tensor to one."""
        wanted = list(outputs[0]) if outputs else []
        return self._make(calls.GATHER, inputs, wanted, root=opts.rootRank)

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any) -> FabricWork:
        """Give each rank one of the root's tensors."""
        given = list(inputs[0]) if inputs else []
        count = outputs[0].numel()
        return self._make(calls.SCATTER, given, outputs, root=opts.rootRank, count=count)

    def reduce_scatter(
        self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = None
    ) -> FabricWork:
        """Reduce a tensor for each rank on that rank."""
        [wanted], [given] = outputs, inputs
        self._same_sizes(calls.REDUCE_SCATTER, wanted, given)
        return self._make(
            calls.REDUCE_SCATTER, list(given), [wanted], op=_op(opts), count=wanted.numel()
        )

    def reduce_scatter_single(
        self, output: torch.Tensor, given: torch.Tensor, opts: Any = None
    ) -> FabricWork:
        """Reduce a tensor, and give each rank its part."""
        self._whole_blocks(calls.REDUCE_SCATTER, given, output)
        return self._make(
            calls.REDUCE_SCATTER, [given], [output], op=_op(opts), count=output.numel()
        )

    def reduce_scatter_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = None
    ) -> FabricWork:
        """Do `reduce_scatter_single` with several tensors."""
        work = FabricWork(self.calls._link, outputs)
        for output, given in zip(outputs, inputs, strict=True):
            self._whole_blocks(calls.REDUCE_SCATTER, given, output)
            count = output.numel()
            self._make(
                calls.REDUCE_SCATTER, [given], [output], op=_op(opts), count=count, work=work
            )
        return work

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> FabricWork:
        """Give each rank a tensor."""
        sends, takes = ([each.numel() for each in tensors] for tensors in (inputs, outputs))
        return self._make(calls.ALL_TO_ALL, inputs, outputs, sends=sends, takes=takes)

    def all_to_all_single(
        self,
        output: torch.Tensor,
        given: torch.Tensor,
        output_splits: Sequence[int] | None = None,
        input_splits: Sequence[int] | None = None,
        opts: Any = None,
    ) -> FabricWork:
        """Give each rank a part of a tensor, cut along its first dimension."""
        sends = self._splits(given, input_splits)
        takes = self._splits(output, output_splits)
        return self._make(calls.ALL_TO_ALL, [given], [output], sends=sends, takes=takes)

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
        self._held = FabricWork(self.calls._link, [])

    def _end_coalescing(self, *_: Any) -> FabricWork:
        """Return the work of the calls since the beginning."""
        held, self._held = self._held, None
        assert held is not None
        return held

    # Names that PyTorch had before, or has for the same calls elsewhere.
    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    alltoall_base = all_to_all_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def _make(self, kind: str, inputs: Tensors, outputs: Tensors, **about: Any) -> FabricWork:
        if self._held is not None and about.get("work") is None:
            about["work"] = self._held
        return self.calls.make(kind, inputs, outputs, **about)

    def _splits(self, tensor: torch.Tensor, splits: Sequence[int] | None) -> list[int]:
        """Return the elements for each rank, or from each."""
        ranks = self.calls.ranks
        rows = tensor.shape[0] if tensor.dim() else 1
        if not splits:
            if rows % ranks:
                raise ConfigError(
                    f"all_to_all: rows must be a multiple of {ranks} ranks, got {rows}; give splits"
                )
            return [tensor.numel() // ranks] * ranks
        if len(splits) != ranks or sum(splits) != rows:
            raise ConfigError(
                f"all_to_all: splits must be {ranks} numbers that add up to {rows} rows, got "
                f"{list(splits)}"
            )
        return [split * (tensor.numel() // max(rows, 1)) for split in splits]

    def _same_sizes(self, kind: str, part: torch.Tensor, whole: Tensors) -> None:
        sizes = {each.numel() for each in whole}
        if len(whole) != self.calls.ranks or sizes != {part.numel()}:
            raise ConfigError(
                f"{kind}: must have {self.calls.ranks} tensors of {part.numel()} elements, got "
                f"{[each.numel() for each in whole]}"
            )

    def _whole_blocks(self, kind: str, whole: torch.Tensor, part: torch.Tensor) -> None:
        if whole.numel() != self.calls.ranks * part.numel():
            raise ConfigError(
                f"{kind}: the large tensor must be {self.calls.ranks} times the small one, got "
                f"{whole.numel()} and {part.numel()} elements"
            )


def _op(opts: Any) -> Any:
    return ReduceOp.SUM if opts is None else opts.reduceOp


def base_class() -> type[Any]:
    """Return the class that a Python backend inherits: a backend if PyTorch allows it."""
    named = getattr(dist, "BackendBase", None)
    if named is not None:
        return named  # type: ignore[no-any-return]
    backend: type[Any] = torch._C._distributed_c10d.Backend
    try:
        backend(0, 1)
    except TypeError:
        group: type[Any] = dist.ProcessGroup
        return group
    return backend


class Group(Collectives):
    """What a process group or backend has besides its calls.

    Args:
        link: The link to the fabric.
        group: The group's name, the same on all its ranks.
        rank: This rank in it.
        ranks: Its number of ranks.
    """

    supports_splitting = False
    supports_coalescing = True

    def __init__(self, link: Link, group: str, rank: int, ranks: int) -> None:
        super().__init__(rank, ranks)  # type: ignore[call-arg]
        self.calls = Calls(link, group, rank, ranks)
        self._name = group
        self._described = "undefined"

    def getBackendName(self) -> str:  # noqa: N802 - PyTorch's name
        """Return the backend's name."""
        return NAME

    def name(self) -> str:
        """Return the backend's name."""
        return NAME

    @property
    def group_name(self) -> str:
        """The group's name, by which functional collectives find it."""
        return self._name

    def _set_group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_desc(self) -> str:
        """What the group is for."""
        return self._described

    def _set_group_desc(self, text: str) -> None:
        self._described = text

    def shutdown(self) -> None:
        """Do nothing: the link is closed when the process ends."""

    def abort(self) -> None:
        """Do nothing."""

    def set_timeout(self, timeout: Any) -> None:
        """Do nothing: waits that would last for ever are ended at once."""


def make_class(base: type[Any]) -> type[Any]:
    """Return the class of our process groups, or backends, with this base."""
    return type("RingleafGroup", (Group, base), {})
