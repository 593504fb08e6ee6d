"""A small model trained by FSDP in several ways on four ranks; rank 0 saves the weights.

Arguments: the file to save to, and maybe a backend.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

WIDTH = 24


def make() -> nn.Sequential:
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(4)]
    return nn.Sequential(*blocks)


def shard(**about: Any) -> nn.Module:
    model = make()
    for block in model:
        fully_shard(block, **about)
    fully_shard(model, **about)
    return model


def mixed() -> nn.Module:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    return shard(mp_policy=policy)


def hybrid() -> nn.Module:
    return shard(mesh=init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "parts")))


def prefetching() -> nn.Module:
    model: Any = shard()
    blocks = list(model)
    for block, *following in zip(blocks, blocks[1:], blocks[2:], strict=False):
        block.set_modules_to_forward_prefetch(following)
    return model


def by_class() -> nn.Module:
    model = make()
    wrapped = [FullyShardedDataParallel(block, device_id=torch.device("cpu")) for block in model]
    return FullyShardedDataParallel(nn.Sequential(*wrapped), device_id=torch.device("cpu"))


WAYS: tuple[Callable[[], nn.Module], ...] = (shard, mixed, hybrid, prefetching, by_class)


def train(model: nn.Module) -> None:
    """Train with the gradients of two passes in each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    torch.manual_seed(1 + dist.get_rank())
    for _ in range(3):
        for _ in range(2):
            model(torch.randn(5, WIDTH)).float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def main() -> None:
    path, *backend = sys.argv[1:]
    dist.init_process_group(*backend)
    found: dict[str, torch.Tensor] = {}
    for way in WAYS:
        model = way()
        train(model)
        if way is by_class:
            with FullyShardedDataParallel.summon_full_params(model):
                whole = [each.detach().clone() for each in model.parameters()]
        else:
            whole = [
                each.full_tensor().detach()
                for each in model.parameters()
                if isinstance(each, DTensor)
            ]
        found |= {f"{way.__name__} {place}": each for place, each in enumerate(whole)}
    if dist.get_rank() == 0:
        torch.save(found, path)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
