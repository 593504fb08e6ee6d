"""Work on parts of large tensors, by as many threads as there are cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Environment of a process in which libraries start no threads of their own."""


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ranges(elements: int, together: int) -> list[tuple[int, int]]:
    """Return the first and the last (excluded) element of parts of at most `together` elements."""
    return [(at, min(at + together, elements)) for at in range(0, elements, together)]


MANY_ELEMENTS = 1 << 17
"""From so many on, work gains by threads more than they cost to begin."""


def spread(
    work: Callable[[T], R], items: Sequence[T], elements: int = MANY_ELEMENTS
) -> Iterator[R]:
    """Yield the results of `work` for all items, in their order; it must release the GIL to gain.

    Threads end with the iteration. Work that has not begun by then is not done.

    Args:
        work: Function of an item.
        items: The items.
        elements: The elements that all work is on together, if they may be few.
    """
    crew = min(count_cores(), len(items)) if elements >= MANY_ELEMENTS else 1
    if crew < 2:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(crew) as pool:
        yield from pool.map(work, items)
