"""The description of a family of topologies that the registry holds, and helpers for families."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from math import prod
from typing import TYPE_CHECKING

from ringleaf.errors import TopologyError

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, slots=True)
class Counts:
    """The size of an instance: its numbers of hosts, switches and links.

    `rack` hosts in a row share a switch; None: not known.
    """

    hosts: int
    switches: int  # those inside servers included
    links: int  # likewise
    rack: int | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """A generator and the sizes it takes.

    `generate(**sizes, link=, host_link=)` returns the graph; `fit(hosts, fixed)` returns all sizes
    of the smallest instance with at least that many hosts, keeping the fixed ones;
    `count(**sizes)` says how large the graph would be, without making it. Both `generate` and
    `count` raise TopologyError if there is no such instance. `of_machines` is another family of the
    same sizes, if hosts that are machines (`node=8xh100`) are joined in another way; one of its
    sizes is `rails`, the number of their NICs. `optional` has sizes that names need not have, with
    their usual values; `generate` and `count` take these if they are not given.
    """

    summary: str
    generate: Callable[..., nx.Graph[str]]
    defaults: Mapping[str, int]
    fit: Callable[[int, Mapping[str, int]], dict[str, int]]
    count: Callable[..., Counts]
    of_machines: Family | None = None
    optional: Mapping[str, int] = field(default_factory=dict)


def check_sizes(where: str, smallest: int = 1, **sizes: int) -> None:
    """Raise TopologyError unless each size is at least `smallest`."""
    for name, size in sizes.items():
        if size < smallest:
            raise TopologyError(f"{where}: {name} must be >= {smallest}, got {size!r}")


def fill(volume: int, fixed: Mapping[str, int], *names: str) -> dict[str, int]:
    """Return sizes whose product is at least `volume`: the fixed ones, and balanced other ones."""
    free = [name for name in names if name not in fixed]
    known = {name: fixed[name] for name in names if name in fixed}
    rest = -(-volume // max(prod(known.values()), 1))
    sides = dict(zip(free, balanced(rest, len(free)), strict=True))
    return {name: known.get(name, sides.get(name, 1)) for name in names}


def balanced(volume: int, axes: int) -> tuple[int, ...]:
    """Return the smallest box of at least `volume`, longest side first, at most twice the last."""
    if axes == 0:
        return ()
    if axes == 1:
        return (volume,)
    cube = next(side for side in count(1) if side**axes >= volume)
    boxes = chain.from_iterable(_boxes(volume, axes, low, 2 * low) for low in range(1, cube + 1))
    return min(boxes, key=lambda box: (prod(box), box[0]))


def _boxes(volume: int, axes: int, low: int, high: int) -> Iterator[tuple[int, ...]]:
    if axes == 1:
        side = max(low, volume)
        if side <= high:
            yield (side,)
        return
    for side in range(low, high + 1):
        for longer in _boxes(-(-volume // side), axes - 1, side, high):
            yield (*longer, side)
