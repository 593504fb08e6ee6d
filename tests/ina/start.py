"""How tests give a worker a tensor, as `ringleaf.ina.jobs.WorkersJob` does."""

from __future__ import annotations

from typing import Any

from ringleaf.core.arena import Arena
from ringleaf.ina.tensors import post_tensor


def start_tensor(
    protocol: Any,
    arena: Arena,
    at: int,
    place: int,
    count: int,
    dtype: int,
    tag: int,
    now_ps: int,
    priority: int = 0,
) -> bool:
    """Sum memory in place; False if too many tensors are under way."""
    tensors = protocol.open_worker(arena, at).tensors
    row = post_tensor(
        tensors,
        source_at=place,
        target_at=place,
        count=count,
        dtype=dtype,
        tag=tag,
        priority=priority,
    )
    if row >= 0:
        protocol.begin_tensor(arena, at, row, now_ps)
    return row >= 0
