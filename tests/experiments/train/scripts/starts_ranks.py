"""Start ranks as people do, in one of several ways, and reduce a tensor."""

import multiprocessing
import os
import subprocess
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.multiprocessing.spawn import spawn


def run(rank: int, size: int, device: str = "cpu") -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": sys.argv[2]}
    dist.init_process_group("gloo", rank=rank, world_size=size)
    x = torch.ones(4, device=device) * (rank + 1)
    dist.all_reduce(x)
    print(f"rank {rank} has {x[0].item()}\n", end="")
    dist.destroy_process_group()


def by_processes(named: bool) -> None:
    made = []
    for rank in range(3):
        arguments = {"kwargs": {"rank": rank, "size": 3}} if named else {"args": (rank, 3)}
        process = multiprocessing.Process(target=run, **arguments)
        process.start()
        made.append(process)
    for process in made:
        process.join()
        assert process.exitcode == 0
        assert not process.is_alive()


if __name__ == "__main__":
    how = sys.argv[1]
    if how == "spawn":
        mp.spawn(run, args=(3,), nprocs=3, join=True)
    elif how == "module":
        spawn(run, (3, "cuda"), 3)
    elif how == "later":
        assert mp.spawn(run, args=(3,), nprocs=3, join=False).join()
    elif how == "start":
        mp.start_processes(run, args=(3,), nprocs=3, start_method="fork")
    elif how == "processes":
        by_processes(named=False)
    elif how == "named":
        by_processes(named=True)
    elif how == "commands":
        for rank in range(3):
            more = {"RANK": str(rank), "WORLD_SIZE": "3", "MASTER_PORT": sys.argv[2]}
            subprocess.Popen([sys.executable, __file__], env=os.environ | more)
    elif how == "torchrun":
        subprocess.run([sys.executable, "-m", "torch.distributed.run", __file__], check=True)
    elif how == "elastic":
        from torch.distributed.launcher.api import LaunchConfig, elastic_launch

        about = {"rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0", "run_id": "x"}
        elastic_launch(LaunchConfig(1, 1, 3, **about), run)(0, 3)
    elif how == "five":
        mp.spawn(run, args=(5,), nprocs=5)
