"""Train a step on devices of CUDA, without asking whether there are any."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
rank = dist.get_rank()
if sys.argv[1:] == ["fails"]:
    torch.cuda.mem_get_info()
torch.cuda.set_device(rank)
assert torch.cuda.device_count() == dist.get_world_size()
device = torch.device(f"cuda:{rank}")
model = nn.Linear(4, 2).to(rank).cuda()
ddp = DistributedDataParallel(model.to(device, torch.float32), device_ids=[rank])
x = torch.randn(3, 4).to(f"cuda:{rank}") + torch.ones(3, 4, device=device).cuda(rank)
ddp(x).sum().backward()
torch.cuda.synchronize()
assert model.weight.grad.device.type == "cpu"
assert x.to(torch.float64).dtype == torch.float64
with torch.autocast("cuda", dtype=torch.bfloat16):
    assert model(x).dtype == torch.bfloat16
with torch.autocast(device_type="cuda"):  # whose usual type is not the CPU's
    assert model(x).dtype == torch.float16
assert torch.amp.GradScaler().is_enabled()
assert torch.cuda.amp.GradScaler(init_scale=4.0).get_scale() == 4.0
begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
side, total = torch.cuda.Stream(device), torch.ones(1000)
begin.record()
with torch.cuda.device(rank), torch.cuda.stream(side):
    torch.cuda.nvtx.range_push("copy")
    dist.all_reduce(total)
    total.record_stream(side)
    torch.cuda.nvtx.range_pop()
torch.cuda.current_stream().wait_stream(side)
end.record()
assert total[0] == dist.get_world_size()
assert begin.elapsed_time(end) > 0.0
dist.all_reduce(total, async_op=True)
torch.cuda.synchronize()
assert total[0] == dist.get_world_size() ** 2
assert isinstance(side, torch.cuda.Stream)
assert torch.cuda.default_stream() == torch.cuda.current_stream()
print(f"{model.weight.grad.sum().item():.4f}\n", end="")
