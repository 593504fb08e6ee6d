"""Scripts that go wrong, each in its way; the first argument says how."""

import os
import sys

import torch
import torch.distributed as dist

HOW = sys.argv[1]


def main() -> None:
    if HOW == "never-joins" and os.environ["RANK"] == "1":
        sys.exit(0)
    dist.init_process_group()
    rank = dist.get_rank()
    if HOW == "sizes":
        dist.all_reduce(torch.ones(10 + rank))
    elif HOW == "calls":
        dist.all_reduce(torch.ones(10)) if rank == 0 else dist.broadcast(torch.ones(10), 0)
    elif HOW == "never-meet":
        dist.recv(torch.ones(3), 1 - rank)
    elif HOW == "leaves":
        if rank == 0:
            dist.all_reduce(torch.ones(10))
    elif HOW == "raises":
        if rank == 1:
            raise RuntimeError("my own mistake")
        dist.all_reduce(torch.ones(10))
    elif HOW == "dies":
        if rank == 1:
            os.kill(os.getpid(), 9)
        dist.all_reduce(torch.ones(10))
    elif HOW == "exits":
        dist.all_reduce(torch.ones(10))
        sys.exit(3 if rank == 1 else 0)
    elif HOW == "sleeps":
        if rank == 1:
            import time

            time.sleep(1000)
        dist.all_reduce(torch.ones(10))
    elif HOW == "futures":
        work = dist.all_reduce(torch.ones(10), async_op=True)
        torch.futures.wait_all([work.get_future()])  # waits in C++, unseen
        late = dist.all_reduce(torch.ones(10 if rank else 10), async_op=True)
        if rank == 1:
            torch.futures.wait_all([late.get_future()])
        else:
            late.wait()
        print("went through")


if __name__ == "__main__":
    main()
