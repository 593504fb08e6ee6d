"""Make tensors in PyTorch's other ways: by default devices, compiled, from files; then train."""

import os
import sys
from copy import deepcopy

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer  # compiles when it is imported
from torch.nn.parallel import DistributedDataParallel


@torch.jit.script
def scripted(x: torch.Tensor) -> torch.Tensor:
    return x + torch.ones(2) + torch.zeros_like(x)


dist.init_process_group("nccl", device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
rank = dist.get_rank()
torch.accelerator.set_device_index(rank % torch.accelerator.device_count())
assert torch.accelerator.is_available()
assert torch.accelerator.current_accelerator() == torch.device("cpu")
with torch.accelerator.device_index(rank):
    torch.accelerator.empty_cache()
    assert torch.accelerator.memory_allocated() == 0
assert dist.get_world_size(dist.new_group(backend="mpi")) == 2
dist.destroy_process_group()
dist.init_process_group("mpi")
with torch.device("meta"):
    assert nn.Linear(2, 2).weight.is_meta
    assert torch.zeros(3).is_meta
with torch.device("cuda"):
    assert torch.zeros(3).device == nn.Linear(2, 2).weight.device == torch.device("cpu")
torch.set_default_device(f"cuda:{rank}")
made = [torch.rand(2), torch.normal(0.0, 1.0, (2,), device="cuda"), torch.ones(2).pin_memory()]
torch.set_default_device(None)
made += [made[0].new_zeros(2, device="cuda"), torch.hann_window(2, device=f"cuda:{rank}")]
assert all(each.device.type == "cpu" for each in made)
with torch.random.fork_rng():
    torch.manual_seed(rank)
assert scripted(torch.tensor([1.0, 2.0])).tolist() == [2.0, 3.0]

mesh = init_device_mesh("cuda", (2,))
assert mesh.device_type == "cpu"
with torch.device("meta"):
    halves = fully_shard(nn.Linear(2, 2), mesh=mesh)
halves.to_empty(device="cuda")
nn.init.ones_(halves.weight)
assert halves.weight.full_tensor().tolist() == [[1.0, 1.0], [1.0, 1.0]]
whole = nn.Linear(2, 2, bias=False).cuda()
nn.init.constant_(whole.weight, rank)
low = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
devices = {"device_id": torch.cuda.current_device(), "sync_module_states": True}
for named in (devices, {}):
    model = FullyShardedDataParallel(whole, mixed_precision=low, **named)
    assert model(torch.ones(1, 2, device="cuda")).tolist() == [[0.0, 0.0]]
    with FullyShardedDataParallel.summon_full_params(model):
        whole = deepcopy(model.module)

name = f"{sys.argv[1]}/{rank}.pt"
torch.save(torch.arange(2), name)
places = (f"cuda:{rank}", {"cpu": f"cuda:{rank}"}, lambda storage, _: storage.cuda(rank))
assert [torch.load(name, map_location=each).tolist() for each in places] == [[0, 1]] * 3

model = DistributedDataParallel(nn.Linear(2, 1, bias=False))
nn.init.ones_(model.module.weight)
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.5)
model(torch.full((1, 2), float(rank))).sum().backward()
optimizer.step()
print(f"weights {model.module.weight.tolist()[0]}\n", end="")
