"""Scripts that go wrong, each in its way; the first argument says how."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist

HOW = sys.argv[1]


def ones(count: int = 10) -> torch.Tensor:
    return torch.ones(count)


def sizes(rank: int) -> None:
    dist.all_reduce(ones(10 + rank))


def never_meet(rank: int) -> None:
    dist.recv(ones(3), 1 - rank)


def raises(rank: int) -> None:
    if rank == 1:
        raise RuntimeError("my own mistake")
    dist.all_reduce(ones())


def dies(rank: int) -> None:
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(ones())


def sleeps(rank: int) -> None:
    if rank == 1:
        time.sleep(1000)
    dist.all_reduce(ones())


def futures(rank: int) -> None:
    """Wait in C++, where nobody can see it."""
    for _ in range(2):
        work = dist.all_reduce(ones(), async_op=True)
        assert work is not None
        if rank == 1:
            torch.futures.wait_all([work.get_future()])
        else:
            work.wait()
    print("went through")


def never_joins(_rank: int) -> None:
    """Wait for the rank that has ended."""
    dist.all_reduce(ones())


def main() -> None:
    if HOW == "never-joins" and os.environ["RANK"] == "1":
        sys.exit(0)
    dist.init_process_group("nccl")
    ways = (sizes, never_meet, raises, dies, sleeps, futures, never_joins)
    {way.__name__.replace("_", "-"): way for way in ways}[HOW](dist.get_rank())


if __name__ == "__main__":
    main()
