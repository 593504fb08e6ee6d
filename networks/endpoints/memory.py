"""Arrays in the hosts' registered memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ringleaf.core.arena import Store
from ringleaf.core.tensors import Array, ElementType

PAGE_BYTES = 4096


def aligned(size_bytes: int) -> int:
    """Return what `RegisteredMemory` takes for `size_bytes`: whole pages, and at least one."""
    return -(-max(size_bytes, 1) // PAGE_BYTES) * PAGE_BYTES


class RegisteredMemory:
    """Registered memory: hands out arrays that network interfaces can read and write by address.

    Memory moves when it must grow; arrays that were given out before are no longer in it then.
    So call `make_room` first, for all that will be taken.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._agents_bytes = store.memory_used

    @property
    def whole(self) -> Array:
        """All of the memory, which is another array once it has moved."""
        return self._store.arena.memory

    def make_room(self, size_bytes: int) -> None:
        """Take back all that was given out, and make room for `size_bytes`.

        Memory that agents registered before this object was made stays theirs.
        """
        self._store.release_memory(self._agents_bytes)
        self._store.register_memory(size_bytes)
        self._store.release_memory(self._agents_bytes)

    def take_bytes(self, size_bytes: int) -> int:
        """Return the address of `size_bytes` of memory."""
        return self._store.register_memory(aligned(size_bytes))

    def take(self, elements: int, dtype: ElementType) -> Array:
        """Return an uninitialised array of shape (elements,)."""
        return self.view(self.take_bytes(elements * dtype.itemsize), elements, dtype)

    def view(self, address: int, elements: int, dtype: ElementType) -> Array:
        """Return the array of `elements` elements at an address."""
        end = address + elements * dtype.itemsize
        return self._store.arena.memory[address:end].view(dtype)

    def address(self, array: Array) -> int:
        """Return the address of an array that was given out, or of a part of one."""
        address = self._find(array)
        assert address is not None, "the array must be in registered memory"
        return address

    def _find(self, array: Array) -> int | None:
        if not array.size:
            return 0  # an empty array has no address
        memory = self._store.arena.memory
        offset: int = array.ctypes.data - self._store.arena.memory_address
        inside = offset >= 0 and offset + array.nbytes <= memory.size
        return offset if inside and array.flags.c_contiguous else None

    @contextmanager
    def registered(self, arrays: Sequence[Array], spare_bytes: int) -> Iterator[list[Array]]:
        """Yield the arrays in registered memory, with room to take `spare_bytes` besides.

        Arrays that lie elsewhere are copied there, and back at the end. Memory that was taken
        meanwhile is released then.
        """
        mark = self._store.memory_used
        if any(self._find(array) is None for array in arrays):
            spare_bytes += sum(aligned(array.nbytes) for array in arrays)
        self._store.register_memory(spare_bytes)
        self._store.release_memory(mark)
        if all(self._find(array) is not None for array in arrays):
            copies = list(arrays)
        else:
            copies = [self.take(array.size, array.dtype) for array in arrays]
            for copy, array in zip(copies, arrays, strict=True):
                np.copyto(copy, array)
        try:
            yield list(copies)
        finally:
            for copy, array in zip(copies, arrays, strict=True):
                if copy is not array:
                    np.copyto(array, copy)
            self._store.release_memory(mark)
