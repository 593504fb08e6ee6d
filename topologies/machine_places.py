"""Places of machines' parts in a drawing of a network."""

from __future__ import annotations

from math import cos, pi, sin
from typing import TYPE_CHECKING

from ringleaf.topologies.graph import Point, switches
from ringleaf.topologies.layout import placed
from ringleaf.topologies.machine import Inside
from ringleaf.topologies.wiring import GPU, InnerSwitch, rows

if TYPE_CHECKING:
    import networkx as nx

ROW = 0.75
"""The height from one kind of parts to the next."""

ASIDE = 0.5
"""In a grid, the room from a switch to its machine, so that links to the next switch pass by."""


class InsidePlaces:
    """The places of all nodes of a network of machines, from those of the network itself.

    Machines stand below the network, or beside their switches if it is drawn as a grid. The parts
    of each kind are a row; GPUs in a mesh are a ring.

    Args:
        graph: The network whose hosts become machines.
        inside: The machine.
    """

    def __init__(self, graph: nx.Graph[str], inside: Inside) -> None:
        self._graph = graph = placed(graph)
        self.layout: str = graph.graph["layout"]
        self._gpus = inside.gpus
        self._is_ring = bool(inside.machine.mesh)
        self._rows = rows(inside) if inside.has_nvlink else [GPU, *rows(inside)]
        ring = ROW * (len(self._rings()) - 1)
        self._level = {kind: ROW * i for i, kind in enumerate(self._rows)}
        if self._is_ring:
            self._level = {kind: y + ring * (kind != GPU) for kind, y in self._level.items()}
        self._height = max(self._level.values()) + ROW
        self._width = inside.gpus + 1
        self._low = min(graph.nodes[switch]["pos"][1] for switch in switches(graph))
        self.beside = (0.4, 0.0) if self.layout == "tiers" else (0.26, -0.26)

    def _rings(self) -> list[float]:
        """Return the heights of a ring's GPUs, each once, above the lowest."""
        return sorted({round(self._in_ring(gpu)[1], 3) for gpu in range(self._gpus)})

    def _in_ring(self, gpu: int) -> Point:
        turn = 2 * pi * (gpu + 0.5) / self._gpus
        return (-cos(turn), sin(turn))

    def of(self, switch: str) -> Point:
        """Return the place of one of the network's own switches."""
        return self.moved(self._graph.nodes[switch]["pos"])

    def moved(self, pos: Point) -> Point:
        """Return the new place of a point of the network's drawing."""
        if self.layout == "tiers":
            return (pos[0] * self._width + (self._gpus - 1) / 2, pos[1] - self._low + self._height)
        return self.stretched(pos)

    def stretched(self, by: Point) -> Point:
        """Return what a direction in the network's drawing becomes."""
        return (by[0] * self._width, by[1] * (self._height + ROW))

    def gpu(self, host: str, gpu: int) -> Point:
        """Return the place of a GPU, by the host that the machine is in place of, and its rank."""
        if not self._is_ring:
            return self._inside(host, gpu, self._level[GPU])
        x, y = self._in_ring(gpu)
        heights = self._rings()
        middle = (self._gpus - 1) / 2
        height = heights.index(round(y, 3)) * ROW
        return self._inside(host, middle * (1 + x), self._level[GPU] + height)

    def part(self, host: str, part: InnerSwitch) -> Point:
        """Return the place of another part: above the middle of its GPUs."""
        near = part.gpus or (self._gpus - 1,)
        return self._inside(host, sum(near) / len(near), self._level[part.kind])

    def _inside(self, host: str, x: float, y: float) -> Point:
        at = self._graph.nodes[host]["pos"]
        if self.layout == "tiers":
            return (round(at[0]) * self._width + x, y)
        left, top = self.stretched(at)
        return (left + ASIDE + x, top - self._height + y)
