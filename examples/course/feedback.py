"""Top-1 of two weights, without and with error feedback: docs/course/9-compressed.md.

The gradient is (1.0, 0.4) in every step, on every rank:
`ringleaf train examples/course/feedback.py`.
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ringleaf.torch import Compression, compressed_allreduce

STEPS = 6
GRADIENT = torch.tensor([[1.0, 0.4]])


def make_model(*, feedback: bool) -> DistributedDataParallel:
    """Return a model of two weights, of whose gradient each rank sends the larger element."""
    model = DistributedDataParallel(nn.Linear(2, 1, bias=False))
    model.register_comm_hook(Compression("topk:1", feedback=feedback), compressed_allreduce)
    return model


def sent(model: DistributedDataParallel) -> str:
    """Do a backward pass, and return the mean of what the ranks sent."""
    model.zero_grad()
    model(GRADIENT).sum().backward()
    return " ".join(f"{value:.1f}" for value in model.module.weight.grad.flatten().tolist())


def main() -> None:
    dist.init_process_group()
    models = [make_model(feedback=feedback) for feedback in (False, True)]
    for step in range(STEPS):
        without, kept = map(sent, models)
        if dist.get_rank() == 0:
            print(f"step {step + 1}: without feedback {without}, with feedback {kept}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
