"""Schedules that treat many ranks alike: what each kind of rank does, without everybody's rows.

A ring of 65,536 ranks has 8.6 billion rows, and all ranks do the same with other peers. A symmetry
says which ranks are of one kind, who their peers are, and the rows of any one rank. From that a
network of flows finds classes of ranks that finish at the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ringleaf.collectives.rows import Column, Columns


@dataclass(frozen=True, eq=False)
class Exchange:
    """Ranks that all send one message to each other rank, all of one size.

    No message waits for another one, so peers are told apart by the links to them only. Nobody
    makes a table of all peers.

    Attributes:
        ranks: The number of ranks.
        rows_of: Returns the rows that a rank sends or receives, in the schedule's order.
    """

    ranks: int
    rows_of: Callable[[int], Columns]
    is_even = True
    is_chain = False

    @property
    def messages(self) -> int:
        """The number of messages of the whole schedule."""
        return self.ranks * (self.ranks - 1)

    def is_like(self, other: Symmetry | Exchange) -> bool:
        """Return whether ranks have the same kinds and peers in another schedule."""
        return isinstance(other, Exchange) and self.ranks == other.ranks


@dataclass(frozen=True, eq=False)
class Symmetry:
    """Ranks by kind. Those of a kind have the same plan, but for names of peers and chunks.

    Attributes:
        kind: (ranks,) the kind of each rank, numbered from 0.
        peers: (ranks, columns) all ranks that each one sends to or receives from. The place of a
            peer in a plan is that of its column. A rank in place of a peer is the rank itself
            where its kind has no peer in that column. Columns may name a peer twice.
        rows_of: Returns the rows that a rank sends or receives, in the schedule's order.
        is_even: Whether plans are the same only if all chunks have one size.
        messages: The number of messages of the whole schedule.
        is_chain: Whether each rank sends once in each step, what the one before has brought it.
        alike: (columns,) peers in columns of one number may change places. Where they do the same
            at the same time, a rank finishes as if it had one of them. Empty: none may.
    """

    kind: Column
    peers: Column
    rows_of: Callable[[int], Columns]
    is_even: bool
    messages: int
    is_chain: bool
    alike: tuple[int, ...] = ()

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return len(self.kind)

    @property
    def groups(self) -> Column:
        """(columns,) a number for each column, which those have in common that are alike."""
        return np.array(self.alike or range(self.peers.shape[1]), np.int64)

    def is_like(self, other: Symmetry | Exchange) -> bool:
        """Return whether ranks have the same kinds and peers in another schedule."""
        return (
            isinstance(other, Symmetry)
            and self.alike == other.alike
            and np.array_equal(self.kind, other.kind)
            and np.array_equal(self.peers, other.peers)
        )

    @cached_property
    def back(self) -> Column:
        """(ranks, columns) the column in which each peer has the rank."""
        ranks, columns = self.peers.shape
        back = np.full((ranks, columns), -1)
        own = np.arange(ranks)[:, None]
        for column in reversed(range(columns)):
            back[self.peers[self.peers, column] == own] = column
        return back
