"""Three blocks of equal size, trained for five steps; the argument is `fsdp` or `ddp`."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

WIDTH = 64


def block() -> nn.Sequential:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.ReLU())


def spread(model: nn.Sequential, way: str) -> nn.Module:
    if way == "ddp":
        return DistributedDataParallel(model, bucket_cap_mb=0.001)
    for each in model:
        fully_shard(each)
    fully_shard(model)
    return model


def main(way: str) -> None:
    dist.init_process_group()
    torch.manual_seed(0)
    model = spread(nn.Sequential(*(block() for _ in range(3))), way)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(dist.get_rank())
    for _ in range(5):
        model(torch.randn(8, WIDTH)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
