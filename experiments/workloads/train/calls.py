"""A rank's calls of collectives, as they travel from rank to fabric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ringleaf.errors import ConfigError

ALL_REDUCE = "all_reduce"
REDUCE = "reduce"
BROADCAST = "broadcast"
ALL_GATHER = "all_gather"
GATHER = "gather"
SCATTER = "scatter"
REDUCE_SCATTER = "reduce_scatter"
ALL_TO_ALL = "all_to_all"
BARRIER = "barrier"
SEND = "send"
RECEIVE = "recv"

KINDS = (
    *(ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, GATHER, SCATTER, REDUCE_SCATTER, ALL_TO_ALL),
    *(BARRIER, SEND, RECEIVE),
)
PAIRED = (SEND, RECEIVE)
"""Calls of two ranks of a group, not of all."""

ANY = -1
"""The peer of a receive from whichever rank sends."""


class RefusedCallError(ConfigError, RuntimeError):
    """A call that can't be made; nothing has been sent, and the script may go on.

    Scripts that try what a backend can do expect PyTorch's error, which is a RuntimeError.
    """


@dataclass(frozen=True, slots=True)
class CollectiveCall:
    """One rank's part in a collective.

    Attributes:
        kind: One of `KINDS`.
        dtype: The elements' type, by torch's name: `float32`.
        op: The reduction, by torch's name: `sum`; "": elements are copied.
        count: Elements of a rank's part: of the whole tensor of an all_reduce, reduce, broadcast
            or message; of one rank's block otherwise.
        root: The root, or a message's peer, as a rank of the group.
        tag: The tag of a message.
        sends: Of an all_to_all, the elements for each rank.
        takes: Likewise, the elements from each rank.
    """

    kind: str
    dtype: str
    op: str = ""
    count: int = 0
    root: int = 0
    tag: int = 0
    sends: tuple[int, ...] = ()
    takes: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Return the call for people: `all_reduce(float32[1024], sum)`."""
        if self.kind == BARRIER:
            return "barrier()"
        size = f"{self.count}" if self.kind != ALL_TO_ALL else f"{list(self.sends)}"
        parts = [f"{self.dtype}[{size}]"]
        if self.op:
            parts.append(self.op)
        if self.kind in (REDUCE, BROADCAST, GATHER, SCATTER):
            parts.append(f"root={self.root}")
        if self.kind in PAIRED:
            peer = "any" if self.root == ANY else str(self.root)
            parts.append(f"{'to' if self.kind == SEND else 'from'}={peer}")
            if self.tag:
                parts.append(f"tag={self.tag}")
        return f"{self.kind}({', '.join(parts)})"

    def agrees(self, other: CollectiveCall) -> bool:
        """Return whether two ranks' calls can be of one collective."""
        if self.kind == ALL_TO_ALL:
            return (self.kind, self.dtype) == (other.kind, other.dtype)
        return (self.kind, self.dtype, self.op, self.count, self.root) == (
            *(other.kind, other.dtype, other.op, other.count, other.root),
        )

    def plain(self) -> list[Any]:
        """Return it as for JSON."""
        numbers = [self.count, self.root, self.tag, list(self.sends), list(self.takes)]
        return [self.kind, self.dtype, self.op, *numbers]


def read_call(plain: list[Any]) -> CollectiveCall:
    """Return the call that `plain` has made.

    Raises:
        ValueError: If it is no such call.
    """
    kind, dtype, op, count, root, tag, sends, takes = plain
    numbers = (count, root, tag, *sends, *takes)
    if kind not in KINDS or not all(isinstance(each, int) for each in numbers):
        raise ValueError(f"call: not understood, got {plain!r:.200}")
    if min(count, *sends, *takes, 0) < 0:
        raise ValueError(f"call: counts must be >= 0, got {plain!r:.200}")
    return CollectiveCall(kind, str(dtype), str(op), count, root, tag, tuple(sends), tuple(takes))
