"""Train by FSDP, save in PyTorch's ways, and compile; gradients are 0 and 1, their mean 0.5."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import checkpoint
from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel, StateDictType
from torch.nn.parallel import DistributedDataParallel


def stepped(model: nn.Module) -> torch.optim.Optimizer:
    """Make a step: all weights are 1 before, and 0.75 after it."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    model(torch.full((1, 2), float(rank))).sum().backward()
    optimizer.step()
    return optimizer


def ones() -> nn.Module:
    model = nn.Linear(2, 1, bias=False)
    nn.init.ones_(model.weight)
    return model


dist.init_process_group("nccl")
rank = dist.get_rank()
on_cpu = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
for original in (True, False):
    sharded = FullyShardedDataParallel(ones(), use_orig_params=original)
    optimizer = stepped(sharded)
    with FullyShardedDataParallel.state_dict_type(sharded, StateDictType.FULL_STATE_DICT, on_cpu):
        whole = {name: each.tolist() for name, each in sharded.state_dict().items()}
    assert whole == ({"weight": [[0.75, 0.75]]} if rank == 0 else {}), whole
    alone = {"offload_to_cpu": True, "rank0_only": True, "writeback": False}
    with FullyShardedDataParallel.summon_full_params(sharded, **alone):
        assert rank or [each.tolist() for each in sharded.parameters()] == [[[0.75, 0.75]]]
    state = FullyShardedDataParallel.optim_state_dict(sharded, optimizer)["state"]
    assert state["weight"]["momentum_buffer"].tolist() == [[0.5, 0.5]]
    state = FullyShardedDataParallel.full_optim_state_dict(sharded, optimizer)
    assert list(state.get("state", {})) == (["weight"] if rank == 0 else [])
    sharded(torch.ones(1, 2)).sum().backward()

with FullyShardedDataParallel.state_dict_type(sharded, StateDictType.SHARDED_STATE_DICT):
    assert [tuple(each.shape) for each in sharded.state_dict().values()] == [(1, 2)]
checkpoint.async_save({"ones": torch.ones(2)}, checkpoint_id=sys.argv[1]).result()
loaded = {"ones": torch.zeros(2)}
checkpoint.load(loaded, checkpoint_id=sys.argv[1])
assert loaded["ones"].tolist() == [1.0, 1.0]

compiled = torch.compile(ones(), backend="eager")
assert compiled(torch.ones(1, 2)).item() == 2.0
sums = torch.compile(lambda x: x + torch.ones(2), backend="eager")
assert sums(torch.ones(2)).tolist() == [2.0, 2.0]
replicas = DistributedDataParallel(ones())
faster = torch.compile(replicas, backend="eager")
stepped(faster)
assert replicas.module.weight.tolist() == [[0.75, 0.75]]
faster(torch.ones(1, 2)).sum().backward()  # DDP makes its buckets anew first, by a broadcast
hooked = DistributedDataParallel(ones())
hooked._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)
stepped(hooked)
assert hooked.module.weight.tolist() == [[0.75, 0.75]]
print("rank done\n", end="")
