"""A small CNN and a transformer, trained for some steps in three ways; rank 0 saves the weights.

Arguments: the file to save to, `all` or the number of trainings, and maybe a backend.
"""

import sys
from itertools import product
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

STEPS = 8
WIDTH = 32


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        normal = self.norm(values)
        values = values + self.attention(normal, normal, normal, need_weights=False)[0]
        out: torch.Tensor = values + self.down(torch.relu(self.up(values)))
        return out


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(WIDTH, 50)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        values = self.embed(tokens)
        for block in self.blocks:
            values = block(values)
        out: torch.Tensor = self.head(values)
        return out


def make_cnn() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2)),
        *(nn.Flatten(), nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 10)),
    )


def draw(kind: str, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    if kind == "cnn":
        images = torch.randn(4, 3, 16, 16, generator=generator)
        return images, torch.randint(10, (4,), generator=generator)
    tokens = torch.randint(50, (4, 9), generator=generator)
    return tokens[:, :-1], tokens[:, 1:]


def spread(model: nn.Module, kind: str, way: str) -> nn.Module:
    if way == "ddp":
        return DistributedDataParallel(model, bucket_cap_mb=0.005)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    if way == "fsdp":
        for part in model.blocks if kind == "transformer" else []:
            fully_shard(part, mesh=mesh)
        fully_shard(model, mesh=mesh)
        return model
    if kind == "transformer":
        for block in model.blocks:
            parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    else:
        parallelize_module(model, mesh, {"7": ColwiseParallel(), "9": RowwiseParallel()})
    return model


def weights(model: nn.Module) -> dict[str, torch.Tensor]:
    found: dict[str, Any] = {}
    for name, parameter in model.named_parameters():
        whole = parameter.full_tensor() if isinstance(parameter, DTensor) else parameter
        found[name.removeprefix("module.")] = whole.detach().clone()
    return found


def train(kind: str, way: str) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    model = spread(make_cnn() if kind == "cnn" else Transformer(), kind, way)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(STEPS):
        seed = step if way == "tp" else 1000 * dist.get_rank() + step
        inputs, wanted = draw(kind, seed)
        loss = nn.functional.cross_entropy(model(inputs).flatten(0, -2), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {f"{kind} {way} {name}": found for name, found in weights(model).items()}


def main() -> None:
    path, most, *backend = sys.argv[1:]
    dist.init_process_group(*backend)
    found = {}
    trainings = list(product(("cnn", "transformer"), ("ddp", "fsdp", "tp")))
    for kind, way in trainings[: None if most == "all" else int(most)]:
        found.update(train(kind, way))
    if dist.get_rank() == 0:
        torch.save(found, path)
    dist.barrier()  # gloo may hang if a rank goes while another still talks
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
