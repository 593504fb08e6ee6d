"""Additions and copies of tensors' elements, as torch makes them."""

from __future__ import annotations

import numpy as np
import torch

from ringleaf.arena import Arena
from ringleaf.compiled import copy_items, inline
from ringleaf.views import window

FLOAT32, INT32 = range(2)
OTHER = 2
"""Elements of a type that only torch adds here, called back for each message."""

NOTHING = 3
"""Elements that are not in memory: there is nothing to add or copy."""

_KINDS = {torch.float32: FLOAT32, torch.int32: INT32}


def kind_of(dtype: torch.dtype) -> int:
    """Return the number of a type of elements."""
    return _KINDS.get(dtype, OTHER)


@inline
def add(arena: Arena, kind: int, target: int, source: int, size_bytes: int) -> None:
    """Add memory at `source` to that at `target`; the two don't overlap, and are aligned."""
    a = window(arena.memory, target, size_bytes)
    b = window(arena.memory, source, size_bytes)
    if kind == FLOAT32:
        a_float32, b_float32 = a.view(np.float32), b.view(np.float32)
        for i in range(size_bytes >> 2):
            a_float32[i] += b_float32[i]
    else:
        a_int32, b_int32 = a.view(np.int32), b.view(np.int32)
        for i in range(size_bytes >> 2):
            a_int32[i] += b_int32[i]


@inline
def copy(arena: Arena, target: int, source: int, size_bytes: int) -> None:
    """Copy memory to another place that does not overlap it."""
    copy_items(arena.memory, target, arena.memory, source, size_bytes)
