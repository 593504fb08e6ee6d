"""A transformer on a mesh of 2 x 2 ranks, FSDP one way and tensor-parallel the other."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from train_small import Transformer, draw, weights

mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
torch.manual_seed(0)
model = Transformer()
for block in model.blocks:
    parallelize_module(block, mesh["tensor"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    fully_shard(block, mesh=mesh["data"])
fully_shard(model, mesh=mesh["data"])
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(4):
    inputs, wanted = draw("transformer", 1000 * mesh["data"].get_local_rank() + step)
    loss = nn.functional.cross_entropy(model(inputs).flatten(0, -2), wanted.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
found = weights(model)
if dist.get_rank() == 0:
    torch.save(found, sys.argv[1])
dist.barrier()
dist.destroy_process_group()
