"""Communication hooks of PyTorch's DDP for Ringleaf's compressors, with error feedback.

A hook gives to the allreduce what a compressor makes of a bucket. A sparsifier leaves zeros where
nothing is sent, so an allreduce that leaves out zeros (OmniReduce, SparCML) sends less. What a rank
has not sent, it adds to the same parameters' next gradients. Messages are not encoded here.

Source:
    Karimireddy, Rebjock, Stich and Jaggi, "Error feedback fixes SignSGD and other gradient
    compression schemes", ICML 2019, algorithm 2.
"""

from functools import wraps
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn.parallel import DistributedDataParallel

from ringleaf.collectives.compression.compressor import Compressor, Feedback
from ringleaf.collectives.compression.registry import parse_compressor


class Compression:
    """The state of a hook: a compressor, and what has not been sent of each parameter's gradients.

    Args:
        compressor: A compressor, or its text: `topk:1%`.
        group: The process group that adds up; None: the default one.
        feedback: Whether what is not sent is added to the next gradients.
    """

    def __init__(
        self, compressor: Compressor | str, group: Any = None, *, feedback: bool = True
    ) -> None:
        parsed = parse_compressor(compressor) if isinstance(compressor, str) else compressor
        self.group = group
        ranks = dist.get_world_size(group) if dist.is_initialized() else 1
        rank = dist.get_rank(group) if dist.is_initialized() else 0
        self._memory = Feedback(parsed, rank, ranks)
        self._feedback = feedback
        self._left: dict[torch.Tensor, torch.Tensor] = {}  # by parameter
        self._calls = 0

    def carry(self, bucket: dist.GradBucket) -> torch.Tensor:
        """Return what this rank gives to the allreduce; remember the rest, by parameter.

        DDP cuts buckets anew after the first iteration, so the rest belongs to parameters.
        """
        self._calls += 1
        values, parameters, key = bucket.buffer(), bucket.parameters(), _key(bucket)
        sizes = [parameter.numel() for parameter in parameters]
        memory = self._memory
        if self._feedback and all(each in self._left for each in parameters):
            memory.left[key] = torch.cat([self._left[each] for each in parameters])
        else:
            memory.left.pop(key, None)
        carried = memory.carry(values, self._calls, key)
        if key in memory.left:
            rest = memory.left[key].split(sizes)
            self._left |= dict(zip(parameters, (each.clone() for each in rest), strict=True))
        return carried

    def mean(self, key: tuple[int, int], total: torch.Tensor) -> torch.Tensor:
        """Return the mean of the ranks' gradients, from the sum of what they carried."""
        return self._memory.result(total, key[1], key).div_(self._memory.ranks)


def _key(bucket: dist.GradBucket) -> tuple[int, int]:
    """Return a bucket's number and elements, by which a compressor knows it."""
    return bucket.index(), bucket.buffer().numel()


def compressed_allreduce(
    state: Compression, bucket: dist.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """Average what ranks send of a bucket: a hook for `DistributedDataParallel`."""
    key = _key(bucket)
    work = dist.all_reduce(state.carry(bucket), group=state.group, async_op=True)
    assert work is not None
    future: torch.futures.Future[torch.Tensor] = work.get_future().then(
        lambda done: state.mean(key, done.value()[0])
    )
    return future


def compress(model: DistributedDataParallel, compressor: Compressor | str) -> None:
    """Have a model's gradients compressed: `compress(model, "topk:1%")`."""
    model.register_comm_hook(Compression(compressor), compressed_allreduce)


def compress_all(compressor: str) -> None:
    """Have the gradients of all models compressed that DDP wraps from now on."""
    usual = DistributedDataParallel.__init__

    @wraps(usual)
    def init(self: DistributedDataParallel, *args: Any, **kwargs: Any) -> None:
        usual(self, *args, **kwargs)
        compress(self, compressor)

    DistributedDataParallel.__init__ = init


def replace_built_in_hook() -> None:
    """Have DDP's hook for float16 that is of C++ be the one of Python, which does the same.

    The one of C++ wants its results from C++, and ours come from Python.
    """
    usual = DistributedDataParallel._register_builtin_comm_hook

    @wraps(usual)
    def register(self: DistributedDataParallel, comm_hook_type: Any) -> None:
        if comm_hook_type == dist.BuiltinCommHookType.FP16_COMPRESS:
            self.register_comm_hook(None, fp16_compress_hook)
        else:
            usual(self, comm_hook_type)

    DistributedDataParallel._register_builtin_comm_hook = register
