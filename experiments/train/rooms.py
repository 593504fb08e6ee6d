"""Registered memory and executors of a network, lent to operations and given back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from typing import overload

from ringleaf.arena import Store
from ringleaf.hosts.executor.build import Executors, words_of
from ringleaf.hosts.plan import Plans
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.memory import Memory, aligned
from ringleaf.tensors import Array, ElementType

MOST_EXECUTORS = 256
"""Executors that are kept for calls to come."""


class Tensors(Sequence[Array]):
    """Tensors in registered memory, looked up anew each time, as memory moves when it grows."""

    def __init__(
        self, memory: Memory, addresses: Sequence[int], elements: int, dtype: ElementType
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

    def __init__(self, memory: Memory) -> None:
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
    ) -> Executors:
        """Return executors for plans, which are connected, on a channel.

        `key` names plans, type and channel.
        """
        self._busy.add(key)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key][0]
        endpoints = self._endpoints
        endpoints.connect(parts, group=group, channel=channel)
        staging = endpoints.staging(parts, dtype)
        size = 1 << (words_of(parts, staging, endpoints.regions) - 1).bit_length()
        made = endpoints.executors(
            parts,
            staging,
            dtype,
            group=group,
            channel=channel,
            at=self._place(size),
            by_callback=by_callback,
        )
        self._known[key] = made, size
        return made

    def give(self, key: Hashable) -> None:
        """Take executors back, whose operation is over."""
        self._busy.remove(key)

    def _place(self, size: int) -> int:
        if len(self._known) >= MOST_EXECUTORS:
            for key in self._known:
                if key not in self._busy:
                    made, old = self._known.pop(key)
                    self._free.setdefault(old, []).append(made.at)
                    break
        free = self._free.get(size)
        return free.pop() if free else self._store.allocate("words", size)
