"""The synthesisers by name, and the names of the algorithms that they make.

`tacos` is its synthesiser's first collective, `tacos-allgather` another one. `taccl:FILE.yaml` has
a sketch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from ringleaf.collectives.collective import Collective
from ringleaf.core.registry import Registry

if TYPE_CHECKING:
    from ringleaf.collectives.synthesis.problem import Synthesiser

SYNTHESISERS: Registry[Synthesiser] = Registry(
    "synthesisers", "synthesiser", "collectives/synthesis/methods", "SYNTHESISER"
)

SUFFIXES = {
    "allreduce": Collective.ALLREDUCE,
    "allgather": Collective.ALL_GATHER,
    "reducescatter": Collective.REDUCE_SCATTER,
    "broadcast": Collective.BROADCAST,
    "reduce": Collective.REDUCE,
}
"""The ends of names, and the collectives that they mean."""


def is_synthesised(name: str) -> bool:
    """Return whether this names a synthesised algorithm; only its synthesiser is loaded."""
    name, colon, _ = name.partition(":")
    synthesiser, _, suffix = name.partition("-")
    if synthesiser not in SYNTHESISERS or (suffix and suffix not in SUFFIXES):
        return False
    if colon and not SYNTHESISERS[synthesiser].takes_sketch:
        return False
    return not suffix or SUFFIXES[suffix] in SYNTHESISERS[synthesiser].collectives[1:]


class WithSynthesised(Collection[str]):
    """Names of algorithms, which synthesised ones are among, too, though they are not listed."""

    def __init__(self, listed: Collection[str]) -> None:
        self._listed = listed

    def __contains__(self, name: object) -> bool:
        return name in self._listed or (isinstance(name, str) and is_synthesised(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)


def names() -> Iterator[str]:
    """Yield the names of all synthesised algorithms."""
    for name in SYNTHESISERS:
        yield name
        yield from (f"{name}-{suffix}" for suffix in SUFFIXES if is_synthesised(f"{name}-{suffix}"))
