"""A small network trained by DDP: run it by `ringleaf train examples/train_ddp.py`."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 10


def main() -> None:
    dist.init_process_group()
    torch.manual_seed(0)
    layers = [nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)]
    model = DistributedDataParallel(nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(1 + dist.get_rank())
    samples, classes = torch.randn(32, 64), torch.randint(10, (32,))
    for step in range(STEPS):
        loss = nn.functional.cross_entropy(model(samples), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print(f"step {step + 1}: loss {loss.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
