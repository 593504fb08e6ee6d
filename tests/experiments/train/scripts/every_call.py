"""Every call of torch.distributed; rank 0 saves what each rank has got, for any backend."""

import os
import sys
from collections.abc import Iterator

import torch
import torch.distributed as dist

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int32, torch.int64, torch.uint8, torch.int8)
NUMBERS = (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX)
BITS = (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR)


def draw(dtype: torch.dtype, count: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        return (torch.rand(count, generator=generator) * 2 - 1).to(dtype)
    return torch.randint(0, 5, (count,), generator=generator).to(dtype)


def reductions(rank: int, ranks: int) -> Iterator[tuple[str, torch.Tensor]]:
    for dtype in (*FLOATS, *INTEGERS):
        for op in NUMBERS if dtype.is_floating_point else (*NUMBERS, *BITS):
            tensor = draw(dtype, 1001, rank)
            dist.all_reduce(tensor, op=op)
            yield f"all_reduce {dtype} {op}", tensor
    tensor = draw(torch.float32, 500, rank)
    dist.reduce(tensor, dst=ranks - 1)
    yield "reduce", tensor if rank == ranks - 1 else torch.zeros(0)
    whole = draw(torch.float32, 7 * ranks, rank)
    part = torch.empty(7)
    dist.reduce_scatter_tensor(part, whole)
    yield "reduce_scatter_tensor", part
    other = torch.empty(7)
    dist.reduce_scatter(other, list(whole.chunk(ranks)), op=dist.ReduceOp.MAX)
    yield "reduce_scatter", other


def copies(rank: int, ranks: int) -> Iterator[tuple[str, torch.Tensor]]:
    for count in (1, 3, 1000):
        for dtype in (torch.uint8, torch.float16, torch.float64):
            tensor = draw(dtype, count, rank)
            dist.broadcast(tensor, src=1)
            yield f"broadcast {count} {dtype}", tensor
            mine = draw(dtype, count, rank)
            parts = [torch.empty_like(mine) for _ in range(ranks)]
            dist.all_gather(parts, mine)
            yield f"all_gather {count} {dtype}", torch.cat(parts)
            joined = torch.empty(count * ranks, dtype=dtype)
            dist.all_gather_into_tensor(joined, mine)
            yield f"all_gather_into_tensor {count} {dtype}", joined
            wanted = [torch.empty_like(mine) for _ in range(ranks)] if rank == 1 else None
            dist.gather(mine, wanted, dst=1)
            yield f"gather {count} {dtype}", torch.cat(wanted or [torch.zeros(0, dtype=dtype)])
            given = [draw(dtype, count, 10 + i) for i in range(ranks)] if rank == 0 else None
            got = torch.empty_like(mine)
            dist.scatter(got, given, src=0)
            yield f"scatter {count} {dtype}", got
    column = draw(torch.float32, 12, rank).view(3, 4).t()  # not contiguous
    dist.broadcast(column, src=0)
    yield "broadcast of a view", column.contiguous()


def exchanges(rank: int, ranks: int) -> Iterator[tuple[str, torch.Tensor]]:
    given = draw(torch.float32, 6 * ranks, rank)
    got = torch.empty_like(given)
    dist.all_to_all_single(got, given)
    yield "all_to_all_single", got
    sends = [(rank + i) % 3 for i in range(ranks)]
    takes = [(i + rank) % 3 for i in range(ranks)]
    rows = draw(torch.float32, 2 * sum(sends), rank).view(-1, 2)
    uneven = torch.empty(sum(takes), 2)
    dist.all_to_all_single(uneven, rows, takes, sends)
    yield "all_to_all_single, uneven", uneven
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    mine, theirs = draw(torch.float32, 33, rank), torch.empty(33)
    works = [dist.isend(mine, right, tag=3), dist.irecv(theirs, left, tag=3)]
    for work in works:
        work.wait()
    yield "isend, irecv", theirs
    ops = [dist.P2POp(dist.isend, mine, left), dist.P2POp(dist.irecv, theirs, right)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    yield "batch_isend_irecv", theirs.clone()
    if rank == 0:
        found = torch.zeros(ranks)
        for _ in range(ranks - 1):
            one = torch.empty(1)
            source = dist.recv(one)
            found[source] = one.item()
        yield "recv from any", found
    else:
        dist.send(torch.tensor([float(rank)]), 0)
    words: list[object] = [None] * ranks
    dist.all_gather_object(words, {"rank": rank})
    yield "all_gather_object", torch.tensor([word["rank"] for word in words])  # type: ignore[index]
    held: list[object] = [f"from {rank}"]
    dist.broadcast_object_list(held, src=0)
    yield "broadcast_object_list", torch.tensor([str(held[0]) == "from 0"])


def groups(rank: int, ranks: int) -> Iterator[tuple[str, torch.Tensor]]:
    even, odd = list(range(0, ranks, 2)), list(range(1, ranks, 2))
    made = [dist.new_group(even), dist.new_group(odd)]
    mine = made[rank % 2]
    tensors = [draw(torch.float32, 2000, rank), draw(torch.float32, 3000, rank)]
    works = [
        dist.all_reduce(tensors[0], group=mine, async_op=True),
        dist.all_reduce(tensors[1], async_op=True),
    ]
    for work in works:
        assert work is not None
        work.wait()
    yield "all_reduce in a group", tensors[0]
    yield "all_reduce beside it", tensors[1]
    work = dist.all_reduce(draw(torch.float32, 100, rank), async_op=True)
    assert work is not None
    doubled = work.get_future().then(lambda future: future.value()[0] * 2)
    yield "future", doubled.wait()
    other = dist.all_reduce(draw(torch.float32, 100, rank), async_op=True)
    assert other is not None
    while not other.is_completed():
        pass
    other.wait()
    first, second = draw(torch.float32, 10, rank), draw(torch.float32, 20, rank)
    with dist.distributed_c10d._coalescing_manager():
        dist.all_reduce(first)
        dist.all_reduce(second)
    yield "coalesced", torch.cat([first, second])
    dist.barrier()
    dist.monitored_barrier() if dist.get_backend() == "gloo" else dist.barrier()


def main() -> None:
    dist.init_process_group(*sys.argv[2:3])
    rank, ranks = dist.get_rank(), dist.get_world_size()
    found: dict[str, torch.Tensor] = {}
    for part in (reductions, copies, exchanges, groups):
        found.update(part(rank, ranks))
    torch.save(found, os.path.join(sys.argv[1], f"{rank}.pt"))
    dist.barrier()  # gloo may hang if a rank goes while another still talks
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
