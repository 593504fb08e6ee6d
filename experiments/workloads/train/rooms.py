"""Registered memory and executors of a network, lent to operations and given back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, overload

from ringleaf.core.arena import Store
from ringleaf.core.tensors import Array, ElementType
from ringleaf.hosts.executor.build import Executors, words_of
from ringleaf.hosts.plan import Plans
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.memory import RegisteredMemory, aligned
from ringleaf.networks.endpoints.operation import Combine

MOST_EXECUTORS = 256
"""Executors that are kept for calls to come."""


class RegisteredTensors(Sequence[Array]):
    """Tensors in registered memory, looked up anew each time, as memory moves when it grows."""

    def __init__(
        self, memory: RegisteredMemory, addresses: Sequence[int], elements: int, dtype: ElementType
    ) -> None:
        self._memory = memory
        self._addresses = addresses
        self._about = elements, dtype

    def __len__(self) -> int:
        """Return the number of tensors."""
        return len(self._addresses)

    @overload
    def __getitem__(self, place: int) -> Array: ...

    @overload
    def __getitem__(self, place: slice) -> list[Array]: ...

    def __getitem__(self, place: int | slice) -> Array | list[Array]:
        """Return one of them, or some."""
        if isinstance(place, slice):
            return [self._memory.view(at, *self._about) for at in self._addresses[place]]
        return self._memory.view(self._addresses[place], *self._about)

    def __iter__(self) -> Iterator[Array]:
        """Yield all of them."""
        return iter(self[:])


class Rooms:
    """Pieces of registered memory, in sizes that are powers of two."""

    def __init__(self, memory: RegisteredMemory) -> None:
        self._memory = memory
        self._free: dict[int, list[int]] = {}

    def take(self, size_bytes: int) -> tuple[int, int]:
        """Return the address, and the size, of a piece of at least this size."""
        size = 1 << (aligned(size_bytes) - 1).bit_length()
        free = self._free.setdefault(size, [])
        return (free.pop() if free else self._memory.take_bytes(size)), size

    def give(self, pieces: Sequence[tuple[int, int]]) -> None:
        """Take pieces back."""
        for at, size in pieces:
            self._free[size].append(at)


class ExecutorRooms:
    """Executors by what they are for; those not used for long make room for others.

    Args:
        endpoints: The network's hosts.
        store: The network's store.
    """

    def __init__(self, endpoints: Endpoints, store: Store) -> None:
        self._endpoints = endpoints
        self._store = store
        self._known: OrderedDict[Hashable, tuple[Executors, int]] = OrderedDict()
        self._free: dict[int, list[int]] = {}
        self._busy: set[Hashable] = set()

    def take(
        self,
        key: Hashable,
        parts: Plans,
        dtype: ElementType,
        *,
        group: int,
        channel: int,
        by_callback: bool,
        eager: bool,
    ) -> Executors:
        """Return executors for plans, which are connected, on a channel.

        `key` names plans, type and channel.
        """
        self._busy.add(key)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key][0]
        endpoints = self._endpoints
        endpoints.connect(parts, group=group, channel=channel, eager=eager)
        staging = endpoints.staging(parts, dtype)
        size = 1 << (words_of(parts, staging, endpoints.regions) - 1).bit_length()
        executors = endpoints.executors(
            parts,
            staging,
            dtype,
            group=group,
            channel=channel,
            at=self._place(size),
            by_callback=by_callback,
        )
        self._known[key] = executors, size
        return executors

    def give(self, key: Hashable) -> None:
        """Take executors back, whose operation is over."""
        self._busy.remove(key)

    def _place(self, size: int) -> int:
        if len(self._known) >= MOST_EXECUTORS:
            for key in self._known:
                if key not in self._busy:
                    executors, old = self._known.pop(key)
                    self._free.setdefault(old, []).append(executors.at)
                    break
        free = self._free.get(size)
        return free.pop() if free else self._store.allocate("words", size)


@dataclass(frozen=True, slots=True)
class NetworkNeed:
    """All that an operation needs of a network.

    Args:
        key: Names plans, type, group and channel.
        parts: The nodes' plans.
        dtype: Type of the elements.
        tensors: The number of tensors; other nodes take no part.
        group: The group's place among the network's.
        channel: The channel.
        combine: Reduces elements that compiled code does not add.
        by_callback: Whether it reduces all of them.
        eager: Whether it leaves without credit, as both ends have asked for it.
    """

    key: Hashable
    parts: Plans
    dtype: ElementType
    tensors: int
    group: int
    channel: int
    combine: Combine
    by_callback: bool
    eager: bool = False


@dataclass(frozen=True, slots=True)
class Room:
    """Memory and executors of an operation."""

    executors: Executors
    tensors: list[int]  # addresses
    staging: list[int]  # by node; 0: it needs none
    pieces: list[tuple[int, int]]  # of memory, to be given back


class Lodging(Protocol):
    """A source of rooms, each for one operation at a time."""

    def take(self, need: NetworkNeed) -> Room:
        """Return a room."""

    def give(self, need: NetworkNeed, room: Room) -> None:
        """Take back a room, whose operation is over."""


class Lodgings:
    """Rooms that are made when they are first needed, of memory that others have given back."""

    def __init__(self, endpoints: Endpoints, store: Store) -> None:
        self._endpoints = endpoints
        self._memory = Rooms(endpoints.memory)
        self._executors = ExecutorRooms(endpoints, store)

    def take(self, need: NetworkNeed) -> Room:
        """Return a room for an operation: executors, tensors, and memory for staging."""
        executors = self._executors.take(
            need.key,
            need.parts,
            need.dtype,
            group=need.group,
            channel=need.channel,
            by_callback=need.by_callback,
            eager=need.eager,
        )
        staging = self._endpoints.staging(need.parts, need.dtype).nodes.tolist()
        tensors = [self._memory.take(_tensor_bytes(need)) for _ in range(need.tensors)]
        buffers = [self._memory.take(size) if size else (0, 0) for size in staging]
        return Room(
            executors,
            [at for at, _ in tensors],
            [at for at, _ in buffers],
            tensors + [each for each in buffers if each[1]],
        )

    def give(self, need: NetworkNeed, room: Room) -> None:
        """Give a room back, whose memory other operations may then get."""
        self._executors.give(need.key)
        self._memory.give(room.pieces)


class FixedLodgings:
    """Rooms that are all made beforehand, as hosts that are forked then have no others.

    Args:
        endpoints: The network's hosts, idle.
        needs: Those that there may be, each with a room of its own.
        made: The executors that the network has already, by need; the others are added.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        needs: Sequence[NetworkNeed],
        executors: dict[Hashable, Executors],
    ) -> None:
        memory = endpoints.memory
        stagings = [self._prepare(endpoints, need, executors) for need in needs]
        memory.make_room(sum(_total_bytes(*each) for each in zip(needs, stagings, strict=True)))
        self.built = [(executors[need.key], need.combine) for need in needs]
        """The executors, and what reduces, as `Planner.build` returns them."""
        self._rooms = {
            need.key: Room(
                executors[need.key],
                [memory.take_bytes(_tensor_bytes(need)) for _ in range(need.tensors)],
                [memory.take_bytes(size) for size in sizes],
                [],
            )
            for need, sizes in zip(needs, stagings, strict=True)
        }

    def _prepare(
        self, endpoints: Endpoints, need: NetworkNeed, executors: dict[Hashable, Executors]
    ) -> list[int]:
        """Make executors, if there are none; return the staging memory of each node."""
        staging = endpoints.staging(need.parts, need.dtype)
        if need.key not in executors:
            endpoints.connect(need.parts, group=need.group, channel=need.channel, eager=need.eager)
            executors[need.key] = endpoints.executors(
                need.parts,
                staging,
                need.dtype,
                group=need.group,
                channel=need.channel,
                by_callback=need.by_callback,
            )
        sizes: list[int] = staging.nodes.tolist()
        return sizes

    def take(self, need: NetworkNeed) -> Room:
        """Return the room that was made for this need."""
        return self._rooms[need.key]

    def give(self, need: NetworkNeed, room: Room) -> None:
        """Keep the room for the next such operation."""


def _tensor_bytes(need: NetworkNeed) -> int:
    return need.parts.elements * need.dtype.itemsize


def _total_bytes(need: NetworkNeed, staging: Sequence[int]) -> int:
    """Return the memory that a room takes."""
    return need.tensors * aligned(_tensor_bytes(need)) + sum(map(aligned, staging))
