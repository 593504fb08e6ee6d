"""Sparse allreduces of several exchanges, by name; each is a file in `sparse_allreduces`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringleaf.collectives.algorithm import Look
from ringleaf.core.registry import Registry

if TYPE_CHECKING:
    from ringleaf.collectives.compression.program import CompressedProgram
    from ringleaf.collectives.sparse.expected import Expect

Maker = Callable[[int, int], "CompressedProgram"]
"""A function from a rank, and the number of ranks, to that rank's side."""


@dataclass(frozen=True, slots=True)
class Method:
    """A sparse allreduce with its settings.

    Attributes:
        make: Makes ranks' sides. Raises ConfigError if the number of ranks does not suit it.
        expect: Returns the results that a first step must have, by the method's own mathematics,
            from all ranks' tensors at once, (ranks, elements) float32.
    """

    make: Maker
    expect: Expect


@dataclass(frozen=True, slots=True)
class SparseAllreduce:
    """A sparse allreduce.

    Attributes:
        title: Its name in texts.
        parse: Returns the method, from the text behind the colon, and the start of messages.
        look: Its look in figures.
        reduces: Whether allreduces are among its exchanges, which go by any algorithm.
    """

    title: str
    parse: Callable[[str, str], Method]
    look: Look
    reduces: bool = True


SPARSE: Registry[SparseAllreduce] = Registry(
    "sparse_allreduces", "sparse allreduce", "collectives/sparse_allreduces", "ALLREDUCE"
)


def parse_sparse(text: str, where: str = "sparse") -> Method:
    """Return a sparse allreduce with its settings, like `oktopk:1%`.

    Raises:
        ConfigError: If the name is unknown, or the text behind the colon is wrong.
    """
    name, _, rest = text.partition(":")
    return SPARSE.find(name, where).parse(rest, f"{where}: {name}")
