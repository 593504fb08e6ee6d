"""Meet in the ways of scripts: by the environment, by an address, by stores, and once more."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist

rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def total() -> float:
    x = torch.ones(2) * (rank + 1)
    dist.all_reduce(x)
    return float(x[0])


found = []
dist.init_process_group("gloo")
found.append(total())
store = dist.distributed_c10d._get_default_store()
store.set(f"key{rank}", str(rank))
assert store.get(f"key{(rank + 1) % ranks}").decode() == str((rank + 1) % ranks)
dist.destroy_process_group()

dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29500", rank=rank, world_size=ranks)
found.append(total())
assert not dist.distributed_c10d._get_default_store().check([f"key{rank}"])
dist.destroy_process_group()

own = dist.TCPStore("127.0.0.1", 29600, ranks, is_master=rank == 0, timeout=timedelta(seconds=60))
assert isinstance(own, dist.TCPStore)
assert (own.host, own.port) == ("127.0.0.1", 29600)
assert dist.TCPStore("127.0.0.1", 0, is_master=True).port > 0
dist.init_process_group("gloo", store=own, rank=rank, world_size=ranks)
found.append(total())
print(f"rank {rank}: {found}\n", end="")
