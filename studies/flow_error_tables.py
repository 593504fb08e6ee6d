"""Tables of how far flows' times are from those of packets, as `docs/flow.md` has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

LONG_BYTES = 64 << 10
"""Mean size of messages from which on cases are in the tables by algorithm and topology."""

COLLECTIVE = r"[\w-]+"


class Case(Protocol):
    """A time on both networks: what ran where, and its signed error in percent."""

    @property
    def what(self) -> str:
        """The name of its errors: `ring`; `jobs by ring and fifo`; `ring, links fail`."""

    @property
    def topo(self) -> str:
        """The topology, as typed."""

    @property
    def ratio(self) -> float:
        """Its oversubscription."""

    @property
    def ranks(self) -> int:
        """The number of ranks."""

    @property
    def message_bytes(self) -> float:
        """The mean size of the messages."""

    @property
    def percent(self) -> float:
        """The error; below 0, flows are faster."""


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """The cases of one row: those that all of this is true of.

    Attributes:
        name: What the table calls it.
        what: A pattern for what ran.
        topo: A pattern for the topology.
        least: Mean size of messages in bytes, at least.
        below: Likewise, below that.
        ratio: The oversubscription; None: any.
        ranks: The number of ranks; None: any.
    """

    name: str
    what: str
    topo: str = ".*"
    least: float = 0
    below: float = float("inf")
    ratio: float | None = None
    ranks: int | None = None

    def has(self, case: Case) -> bool:
        """Return whether a case belongs there."""
        return (
            re.fullmatch(self.what, case.what) is not None
            and re.fullmatch(self.topo, case.topo) is not None
            and self.least <= case.message_bytes < self.below
            and self.ratio in (None, case.ratio)
            and self.ranks in (None, case.ranks)
        )


KINDS = (
    ErrorRow("collectives, below 4 KiB", COLLECTIVE, below=4 << 10),
    ErrorRow("collectives, 4 KiB to 64 KiB", COLLECTIVE, least=4 << 10, below=LONG_BYTES),
    ErrorRow("collectives, 64 KiB to 1 MiB", COLLECTIVE, least=LONG_BYTES, below=1 << 20),
    ErrorRow("collectives, 1 MiB and more", COLLECTIVE, least=1 << 20),
    ErrorRow("jobs but by a tree, `fifo`, 64 KiB and more", "jobs by (?!tree).* and fifo",
             least=LONG_BYTES),
    ErrorRow("the same with `p3`", "jobs by (?!tree).* and p3", least=LONG_BYTES),
    ErrorRow("jobs by a tree", "jobs by tree and .*"),
    ErrorRow("workloads: flows, small models; 64 KiB and more", "workload .*", least=LONG_BYTES),
)  # fmt: skip

FOUR = "ring|tree|halvingdoubling|switchml"
LOSSLESS = "fattree,k=[48]|leafspine,leaves=8,spines=8,hosts=8"

NETWORKS = (
    ErrorRow("four algorithms, three networks", FOUR, LOSSLESS),
    ErrorRow("fat-tree of 128 hosts", COLLECTIVE, "fattree.*", ranks=128),
    ErrorRow("fat-tree of 54 hosts", COLLECTIVE, "fattree.*", ranks=54),
    ErrorRow("leaf-spine of 64 hosts, 1:1", COLLECTIVE, "leafspine.*", ratio=1, ranks=64),
    ErrorRow("leaf-spine of 64 hosts, 2:1", COLLECTIVE, "leafspine.*", ratio=2, ranks=64),
    ErrorRow("leaf-spine of 64 hosts, 4:1", COLLECTIVE, "leafspine.*", ratio=4, ranks=64),
    ErrorRow("torus of 64 hosts", COLLECTIVE, "torus2d.*", ranks=64),
    ErrorRow("BCube of 64 hosts", COLLECTIVE, "bcube.*", ranks=64),
    ErrorRow("HammingMesh of 64 hosts", COLLECTIVE, "hammingmesh.*", ranks=64),
)

FAULTS = tuple(
    ErrorRow(f"{name}; {algos.replace('|', ', ')}", f"({algos}), links {how}")
    for name, how in (("slows down", "slow down"), ("is down", "fail"))
    for algos in ("ring", "alltoall|halvingdoubling", "tree")
)


def tables(cases: Sequence[Case]) -> Iterator[str]:
    """Yield the lines of the tables: all kinds of runs, collectives, and runs with faults."""
    yield from _table("times", KINDS, cases)
    long = [each for each in cases if each.message_bytes >= LONG_BYTES]
    own = sorted({each.what for each in long if re.fullmatch(COLLECTIVE, each.what)})
    algorithms = [ErrorRow(f"`{what}`", re.escape(what)) for what in own]
    yield from _table("collectives, 64 KiB and more", [*algorithms, *NETWORKS], long)
    yield from _table("a link between switches", FAULTS, cases)


def _table(title: str, rows: Iterable[ErrorRow], cases: Sequence[Case]) -> Iterator[str]:
    yield f"| {title} | number | mean | mean size | median | 99 of 100 within | worst |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        errors = np.array([case.percent for case in cases if row.has(case)])
        if len(errors):
            sizes = np.abs(errors)
            yield (
                f"| {row.name} | {len(errors)} | {errors.mean():+.2f} % | {sizes.mean():.2f} % | "
                f"{np.median(errors):+.2f} % | {np.percentile(sizes, 99):.1f} % | "
                f"{sizes.max():.1f} % |"
            )
