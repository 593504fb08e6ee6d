"""The one place where all state that compiled code touches lies.

Numba compiles the event loop once only if every component has one signature, so a
component's state is a range of these flat arrays, found by its offset. A component opens
its range as a NamedTuple of views; that costs nothing once compiled.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_MAP_NORESERVE = 0x4000 if sys.platform == "linux" else 0
"""Linux's flag for memory that may be larger than the machine's; Python has no name for it yet."""

OWN_WORDS = 64
LINE_BYTES = 64

Words = npt.NDArray[np.int64]
Fields = npt.NDArray[np.uint64]
Lanes = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]


def _aligned(make: Callable[[int], Bytes], size_bytes: int) -> Bytes:
    """Return so many bytes that begin at a cache line; NumPy's begin 16 bytes behind one."""
    buffer = make(size_bytes + LINE_BYTES)
    start = -buffer.ctypes.data % LINE_BYTES
    return buffer[start : start + size_bytes]


SMALL_BYTES = 128 << 20
"""An array that is larger only doubles: machines may refuse many times what they have."""


def _zeros(count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    size_bytes = count * np.dtype(dtype).itemsize
    return _aligned(lambda size: np.zeros(size, np.uint8), size_bytes).view(dtype)


class Arena(NamedTuple):
    """Flat arrays, each shared by every component; an offset is an index into one of them."""

    words: Words  # int64: times, indices, counters, addresses
    fields: Fields  # uint64: P4 fields, registers and table entries of up to 64 bits
    lanes: Lanes  # uint32: P4 fields and registers that come in runs of equal width
    bytes: Bytes  # uint8: packet heads, pcap buffers
    memory: Bytes  # uint8: hosts' registered memory; tensors and payloads live here
    own: Words  # (OWN_WORDS,), int64: what each thread has for itself
    addresses: Words  # (7,), of the arrays above and this one, for compiled code

    @property
    def address(self) -> int:
        """The address of `addresses`."""
        return self.addresses.item(-1)

    @property
    def memory_address(self) -> int:
        """The address of `memory`."""
        return self.addresses.item(_MEMORY)


_MEMORY = Arena._fields.index("memory")


def _with_addresses(*arrays: npt.NDArray[Any]) -> Arena:
    addresses = np.array([array.ctypes.data for array in arrays] + [0], np.int64)
    addresses[-1] = addresses.ctypes.data
    return Arena._make((*arrays, addresses))


class Store:
    """Owns an `Arena` and hands out ranges of it.

    Ranges start zeroed. Allocation may move the arrays, so keep offsets and not views
    across calls of `allocate`, and pass `store.arena` anew each time.

    Args:
        memory_bytes: Registered memory to begin with.
        shared: Whether processes that are forked later share what is registered by then.
        has_data: Whether registered memory is written to. If not, it is a range of addresses that
            reads as zeros and takes no memory, however large.
    """

    def __init__(
        self, memory_bytes: int = 0, *, shared: bool = False, has_data: bool = True
    ) -> None:
        self._shared = shared
        self._has_data = has_data
        self._used = {"words": 0, "fields": 0, "lanes": 0, "bytes": 0}
        self._memory_used = 0
        self.arenas = [
            _with_addresses(
                _zeros(1024, np.int64),
                _zeros(1024, np.uint64),
                _zeros(1024, np.uint32),
                _zeros(1024, np.uint8),
                self._new_memory(memory_bytes),
                _zeros(OWN_WORDS, np.int64),
            )
        ]
        """The arena as each of the threads sees it that may work on it at the same time."""

    @property
    def arena(self) -> Arena:
        """The arena as the first thread sees it, which is mostly the only one."""
        return self.arenas[0]

    def share(self, threads: int) -> None:
        """Have arenas for so many threads."""
        while len(self.arenas) < threads:
            own = _zeros(OWN_WORDS, np.int64)
            self.arenas.append(_with_addresses(*self.arena[:5], own))

    def allocate(self, array: str, count: int) -> int:
        """Return the offset of `count` new zeroed items of `words`, `fields`, `lanes` or `bytes`.

        Ranges are aligned to 64 bytes, so that vector code meets whole cache lines.
        """
        old = getattr(self.arena, array)
        per_line = 64 // old.itemsize
        before = self._used[array]
        offset = -(-before // per_line) * per_line
        self._used[array] = offset + count
        if self._used[array] > old.size:
            # Growing by a factor makes the copying of all allocations together linear in their
            # size. Pages take no memory until they are written to, so a large factor costs nothing.
            factor = 8 if self._used[array] * old.itemsize <= SMALL_BYTES else 2
            new = _zeros(factor * self._used[array], old.dtype)
            new[:before] = old[:before]
            old.flags.writeable = False  # who writes there has kept it too long
            self._put(array, new)
        return offset

    def register_memory(self, count: int) -> int:
        """Return the offset of `count` bytes of host memory, not zeroed, page aligned.

        Grows by moving, so register everything large in one go (or size it at construction).
        """
        offset = -(-self._memory_used // 4096) * 4096
        self._memory_used = offset + count
        old = self.arena.memory
        if self._memory_used > old.size:
            new = self._new_memory(max(self._memory_used, 2 * old.size))
            if self._has_data:
                new[: old.size] = old
            self._put("memory", new)
        return offset

    def _put(self, name: str, array: npt.NDArray[Any]) -> None:
        self.arenas = [
            _with_addresses(*arena._replace(**{name: array})[:-1]) for arena in self.arenas
        ]

    def _new_memory(self, count: int) -> Bytes:
        """Bytes of whatever value; pages that nobody touches cost nothing."""
        if not self._has_data and count:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
            return np.frombuffer(mmap.mmap(-1, count, flags=flags), np.uint8)
        if self._shared and count:
            return np.frombuffer(mmap.mmap(-1, count), np.uint8)
        return _aligned(lambda size: np.empty(size, np.uint8), count)

    @property
    def has_data(self) -> bool:
        """Whether registered memory is written to."""
        return self._has_data

    @property
    def memory_used(self) -> int:
        """Bytes of registered memory handed out."""
        return self._memory_used

    def release_memory(self, down_to: int = 0) -> None:
        """Take back what was registered since `memory_used` was `down_to`."""
        self._memory_used = down_to
