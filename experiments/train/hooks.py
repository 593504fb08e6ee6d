"""Communication hooks of PyTorch's DDP for Ringleaf's compressors, with error feedback.

A hook sends the elements of a bucket that a compressor selects, and zeros in place of the others,
so any allreduce can add it up; one that leaves out zeros (OmniReduce, SparCML) then sends less.
What a rank has not sent, it adds to the same parameters' next gradients.

Source:
    Karimireddy, Rebjock, Stich and Jaggi, "Error feedback fixes SignSGD and other gradient
    compression schemes", ICML 2019, algorithm 2.
"""

from functools import wraps
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ringleaf.collectives.compress.compressor import Compressor, Feedback
from ringleaf.collectives.compress.registry import parse_compressor


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
        made = parse_compressor(compressor) if isinstance(compressor, str) else compressor
        self.group = group
        self._memory = Feedback(made)
        self._feedback = feedback
        self._left: dict[torch.Tensor, torch.Tensor] = {}  # by parameter
        self._calls = 0

    def select(self, bucket: dist.GradBucket) -> torch.Tensor:
        """Return what this rank sends of a bucket; remember the rest, parameter by parameter.

        DDP cuts buckets anew after the first iteration, so the rest belongs to parameters.
        """
        self._calls += 1
        values, parameters = bucket.buffer(), bucket.parameters()
        sizes = [parameter.numel() for parameter in parameters]
        if self._feedback and all(each in self._left for each in parameters):
            self._memory.left[None] = torch.cat([self._left[each] for each in parameters])
        else:
            self._memory.left.pop(None, None)
        sent = self._memory.before(values, self._calls)
        rest = self._memory.left[None].split(sizes)
        self._left |= dict(zip(parameters, (each.clone() for each in rest), strict=True))
        return sent


def compressed_allreduce(
    state: Compression, bucket: dist.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """Average what ranks send of a bucket: a hook for `DistributedDataParallel`."""
    sent = state.select(bucket)
    sent.div_(dist.get_world_size(state.group))
    work = dist.all_reduce(sent, group=state.group, async_op=True)
    assert work is not None
    future: torch.futures.Future[torch.Tensor] = work.get_future().then(
        lambda done: done.value()[0]
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
