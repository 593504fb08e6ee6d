"""Ranks that end as their argument says, and write what they drew at random."""

import atexit
import random
import sys
import threading

import numpy as np
import torch.distributed as dist


def main(how: str, folder: str) -> None:
    dist.init_process_group()
    rank = dist.get_rank()
    assert sys.stdout.line_buffering, "else ranks' lines run together"
    atexit.register(print, "rank", rank, "left")
    if how == "message" and rank == 1:
        sys.exit("for a reason")
    if how == "thread":
        threading.Timer(0.2, sys.stdout.write, ["thread went through\n"]).start()
    with open(f"{folder}/{rank}.txt", "w") as file:
        file.write(f"{random.random()} {np.random.rand()}")
    sys.exit(7 if how == "status" and rank == 1 else None)


if __name__ == "__main__":
    main(*sys.argv[1:])
