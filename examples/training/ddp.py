"""A small network trained by DDP: `ringleaf train examples/training/ddp.py --ranks 8`."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 10
WIDTH = 512


def main() -> None:
    dist.init_process_group()
    torch.manual_seed(0)
    hidden = [layer for _ in range(4) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = nn.Sequential(nn.Linear(64, WIDTH), nn.ReLU(), *hidden, nn.Linear(WIDTH, 10))
    parallel = DistributedDataParallel(model, bucket_cap_mb=1)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.5)
    torch.manual_seed(1 + dist.get_rank())
    samples, classes = torch.randn(128, 64), torch.randint(10, (128,))
    for step in range(STEPS):
        loss = nn.functional.cross_entropy(parallel(samples), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print(f"step {step + 1}: loss {loss.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
