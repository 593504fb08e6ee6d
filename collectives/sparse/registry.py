"""Sparse allreduces of several exchanges, by name; each is a file in `sparse_allreduces`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ringleaf.registry import Registry

if TYPE_CHECKING:
    from ringleaf.collectives.compress.program import Program

Maker = Callable[[int, int], "Program"]
"""A function from a rank, and the number of ranks, to that rank's side."""

SPARSE: Registry[Callable[[str, str], Maker]] = Registry(
    "sparse_allreduces", "sparse allreduce", "collectives/sparse_allreduces", "ALLREDUCE"
)
"""Parsers: from the text behind the colon, and the start of error messages, to a maker."""


def parse_sparse(text: str, where: str = "sparse") -> Maker:
    """Return what makes ranks' sides of a sparse allreduce like `oktopk:1%`.

    Raises:
        ConfigError: If the name is unknown, or the text behind the colon is wrong.
    """
    name, _, rest = text.partition(":")
    return SPARSE.find(name, where)(rest, f"{where}: {name}")
