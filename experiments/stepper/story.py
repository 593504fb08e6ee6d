"""The story of one collective: a first state, and frames with the changes.

A story is data, computed once. Viewers walk through it with a `Cursor`, forwards and backwards;
position 0 is before the first frame, position k is after frame k.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from itertools import pairwise

import networkx as nx

from ringleaf.ina.reading import EntryFact

SHORTENED = 5
"""The least number of ranks that are written as runs."""

Way = tuple[str, str]
"""One direction of a link: from, to."""


class FrameAction(Enum):
    """The kind of event in a frame."""

    REDUCE = "reduce"  # the receiver adds the incoming data to its own
    COPY = "copy"  # the receiver replaces its own data with it
    UP = "packet"  # a packet reaches a switch
    DOWN = "delivery"  # a packet reaches a host
    LOST = "loss"  # a link loses a packet


@dataclass(frozen=True, slots=True)
class TensorCell:
    """A range of one tensor: the ranks whose contributions are added up in it, and the sums."""

    who: tuple[int, ...]  # ranks, sorted; one that was added twice is there twice
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StateEntry:
    """One entry of a switch's registers, in the state that its program has left."""

    facts: tuple[EntryFact, ...]
    total: TensorCell | None  # its lanes' contents; None if the program has no lanes


@dataclass(frozen=True, slots=True)
class BufferChange:
    """The change of a cell; for a server's cell, `rank` is the server's node number."""

    rank: int
    cell: int
    before: TensorCell
    after: TensorCell


@dataclass(frozen=True, slots=True)
class EntryChange:
    """The change of a switch's entry; None: all of it is zero."""

    switch: str
    index: int
    before: StateEntry | None
    after: StateEntry | None


@dataclass(frozen=True, slots=True)
class Frame:
    """One message, or one packet on one link. Frames of a step are concurrent."""

    step: int
    action: FrameAction
    title: str
    text: str
    label: str  # a word or two for the data that moves
    path: tuple[str, ...]  # nodes, from the sender to the receiver
    size_bytes: int
    carries: TensorCell | None
    buffers: tuple[BufferChange, ...] = ()
    entries: tuple[EntryChange, ...] = ()
    time_ps: int | None = None  # in virtual time, if packets were really sent

    @property
    def ways(self) -> list[Way]:
        """The directions of links on its path."""
        return list(pairwise(self.path))


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """The load of one direction of a link."""

    messages: int
    size_bytes: int


Buffers = tuple[tuple[TensorCell, ...], ...]
"""Cells by rank; servers come after the ranks."""
Goals = tuple[tuple[tuple[int, ...] | None, ...], ...]
"""By rank and cell: the ranks whose contributions must be there in the end; None: any."""


@dataclass(frozen=True)
class Story:
    """A collective from its inputs to its results.

    Attributes:
        title: Name of the collective.
        summary: Its size.
        command: The command that tells the story again.
        graph: The topology; node i is on host i.
        ranks: Number of ranks, which contribute; nodes beyond them are servers.
        cells: Names of the ranges that buffers are cut into.
        first: The nodes' buffers before frame 0.
        goals: The contributions that they must hold after the last frame.
        frames: The events.
        nodes: Number of ranks and servers; places beyond them are scratch memory. 0: all are nodes.
        exact: Whether sums must be right to the last bit; not if messages are written lossily.
    """

    title: str
    summary: str
    command: str
    graph: nx.Graph[str]
    ranks: int
    cells: tuple[str, ...]
    first: Buffers
    goals: Goals
    frames: tuple[Frame, ...]
    exact: bool = True
    nodes: int = 0

    def name(self, place: int) -> str:
        """Return the name of a place whose buffer is shown."""
        return name_place(place, self.ranks, self.nodes or len(self.first))

    @cached_property
    def steps(self) -> int:
        """Return the number of steps, which frames have in common where they happen together."""
        return self.frames[-1].step + 1 if self.frames else 0

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The position before each step, and after the last one."""
        firsts = [k for k, (a, b) in enumerate(pairwise(self.frames), 1) if a.step != b.step]
        return (0, *firsts, len(self.frames)) if self.frames else (0,)

    @cached_property
    def loads(self) -> tuple[dict[Way, LinkLoad], ...]:
        """The load of each direction of each link that carries anything, by step."""
        loads: list[dict[Way, LinkLoad]] = [{} for _ in range(self.steps)]
        for frame in self.frames:
            for way in frame.ways:
                known = loads[frame.step].get(way, LinkLoad(0, 0))
                loads[frame.step][way] = LinkLoad(
                    known.messages + 1, known.size_bytes + frame.size_bytes
                )
        return tuple(loads)

    def total(self, who: tuple[int, ...], cell: int) -> tuple[int, ...]:
        """Return the sum of these ranks' inputs."""
        parts = [self.first[rank][cell].numbers for rank in who]
        return tuple(map(sum, zip(*parts, strict=True)))

    @cached_property
    def has_entries(self) -> bool:
        """Whether any switch's entry ever changes."""
        return any(frame.entries for frame in self.frames)


class Cursor:
    """A place in a story, and the state there.

    Attributes:
        position: Number of frames that have happened.
        buffers: The current cells by rank.
        entries: The current entries that are not zero, by switch and index.
        carried: Bytes that each direction of each link has carried up to now.
    """

    def __init__(self, story: Story) -> None:
        self.story = story
        self.position = 0
        self.buffers = [list(cells) for cells in story.first]
        self.entries: dict[tuple[str, int], StateEntry] = {}
        self.carried: Counter[Way] = Counter()
        self._totals: dict[tuple[tuple[int, ...], int], tuple[int, ...]] = {}

    @property
    def frame(self) -> Frame | None:
        """The last frame that has happened; None at the start."""
        return self.story.frames[self.position - 1] if self.position else None

    @property
    def at_end(self) -> bool:
        """Return whether all frames have happened."""
        return self.position == len(self.story.frames)

    def go(self, position: int) -> None:
        """Walk to a position, or to the nearest end of the story."""
        target = max(0, min(position, len(self.story.frames)))
        while self.position < target:
            self._apply(self.story.frames[self.position])
            self.position += 1
        while self.position > target:
            self.position -= 1
            self._undo(self.story.frames[self.position])

    def go_step(self, by: int) -> None:
        """Walk to the end of the next step (1), or the start of this or the last one (-1)."""
        starts = self.story.starts
        if by > 0:
            self.go(next((s for s in starts if s > self.position), starts[-1]))
        else:
            self.go(next((s for s in reversed(starts) if s < self.position), 0))

    def done(self, rank: int, cell: int) -> bool:
        """Return whether a rank's cell holds its goal: the right sum of the right ranks."""
        goal = self.story.goals[rank][cell]
        if goal is None or self.buffers[rank][cell].who != goal:
            return False
        right = self._totals.get((goal, cell))
        if right is None:
            right = self._totals[goal, cell] = self.story.total(goal, cell)
        return not self.story.exact or self.buffers[rank][cell].numbers == right

    def right(self) -> tuple[int, int]:
        """Return the number of cells that hold their goal, and of cells that have one."""
        asked = [
            (rank, cell)
            for rank, goals in enumerate(self.story.goals)
            for cell, goal in enumerate(goals)
            if goal is not None
        ]
        return sum(self.done(rank, cell) for rank, cell in asked), len(asked)

    def _apply(self, frame: Frame) -> None:
        for change in frame.buffers:
            self.buffers[change.rank][change.cell] = change.after
        for entry in frame.entries:
            self._set_entry(entry, entry.after)
        for way in frame.ways:
            self.carried[way] += frame.size_bytes

    def _undo(self, frame: Frame) -> None:
        for change in reversed(frame.buffers):
            self.buffers[change.rank][change.cell] = change.before
        for entry in reversed(frame.entries):
            self._set_entry(entry, entry.before)
        for way in frame.ways:
            self.carried[way] -= frame.size_bytes

    def _set_entry(self, change: EntryChange, entry: StateEntry | None) -> None:
        if entry is None:
            self.entries.pop((change.switch, change.index), None)
        else:
            self.entries[change.switch, change.index] = entry


@lru_cache(maxsize=1 << 16)
def members(bits: int) -> tuple[int, ...]:
    """Return the numbers of the bits that are set, lowest first."""
    return tuple(_members(bits))


def _members(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def name_node(node: int, ranks: int) -> str:
    """Return a node's name: `rank 2`, or `server 0` beyond the ranks."""
    return f"rank {node}" if node < ranks else f"server {node - ranks}"


def name_place(place: int, ranks: int, nodes: int) -> str:
    """Return a place's name: its node's, or `rank 2's scratch 1` beyond the nodes."""
    layer, node = divmod(place, nodes)
    return f"{name_node(node, ranks)}'s scratch {layer}" if layer else name_node(node, ranks)


def show_who(who: tuple[int, ...], ranks: int) -> str:
    """Return ranks as text.

    Σ{0,1,3}; `Σ all` is everybody's sum, {2} rank 2's own, ∅ nobody's; runs: Σ{0-5,8}.
    """
    if len(who) < 2:
        return f"{{{who[0]}}}" if who else "∅"
    if ranks > 2 and who == tuple(range(ranks)):
        return "Σ all"
    parts = map(str, who) if len(who) < SHORTENED else _runs(who)
    return f"Σ{{{','.join(parts)}}}"


def _runs(who: tuple[int, ...]) -> Iterator[str]:
    start = 0
    for stop in range(1, len(who) + 1):
        if stop < len(who) and who[stop] == who[stop - 1] + 1:
            continue
        run = who[start:stop]
        if len(run) > 2:
            yield f"{run[0]}-{run[-1]}"
        else:
            yield from map(str, run)
        start = stop
