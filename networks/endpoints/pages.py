"""Large pages of ranks' tensors, whose memory goes from one that is no longer read to the next.

Fresh memory can take longer than the packets that fill it: the system zeroes it, and a virtual
machine may have to ask its host for it. So memory of pages that nobody needs is not given back,
but moved (Linux's `mremap`, which changes page tables and copies nothing) to pages that need some.
Where a system can't do that, it is given back.
"""

from __future__ import annotations

import ctypes
import sys
from collections import Counter
from collections.abc import Sequence
from threading import Lock

from ringleaf.core.tensors import Array

PAGE_BYTES = 1 << 21
"""Memory that is moved at a time: a large page, which is one entry of page tables."""

Spare = dict[int, None]
"""Pages that nobody needs, which have memory, in the order in which they were given back."""

_MADV_DONTNEED = 4
_MREMAP_MAYMOVE, _MREMAP_FIXED, _MREMAP_DONTUNMAP = 1, 2, 4
_C = ctypes.CDLL(None) if sys.platform == "linux" else None


class Pages:
    """The large pages of tensors, and how many pieces of tensors need each of them.

    Args:
        tensors: One after the other in private memory; nothing is in them.
    """

    def __init__(self, tensors: Sequence[Array]) -> None:
        first, last = tensors[0], tensors[-1]
        self._first = -(-first.ctypes.data // PAGE_BYTES)  # others have more than tensors in them
        self._stop = (last.ctypes.data + last.nbytes) // PAGE_BYTES
        self._needed = Counter[int]()
        self._spare = Spare()
        self._lock = Lock()  # threads' ranks may be neighbours on a page

    def take(self, start: int, stop: int) -> None:
        """Have memory between two addresses, with anything in it unless others need it, too."""
        with self._lock:
            for page in range(start // PAGE_BYTES, -(-stop // PAGE_BYTES)):
                self._needed[page] += 1
                if self._needed[page] == 1 and self._first <= page < self._stop:
                    self._supply(page)

    def give_back(self, start: int, stop: int) -> None:
        """Note that nobody will read what is between two addresses."""
        with self._lock:
            for page in range(start // PAGE_BYTES, -(-stop // PAGE_BYTES)):
                self._needed[page] -= 1
                if self._needed[page] == 0 and self._first <= page < self._stop:
                    self._spare[page] = None

    def release(self) -> None:
        """Give the memory of pages that nobody needs back to the system."""
        for page in self._spare:
            discard(page * PAGE_BYTES, PAGE_BYTES)
        self._spare.clear()

    def _supply(self, page: int) -> None:
        if page in self._spare:
            del self._spare[page]
        elif self._spare:
            last, _ = self._spare.popitem()
            if not move(last * PAGE_BYTES, page * PAGE_BYTES, PAGE_BYTES):
                discard(last * PAGE_BYTES, PAGE_BYTES)


def move(source: int, target: int, size: int) -> bool:
    """Move memory from an address to another one; return whether it could be done.

    What was at the target is lost, and the source has no memory until somebody writes to it.
    """
    if _C is None:
        return False
    flags = _MREMAP_MAYMOVE | _MREMAP_FIXED | _MREMAP_DONTUNMAP
    return bool(_mremap(source, size, size, flags, target) == target)


def discard(address: int, size: int) -> None:
    """Tell the system that what is in some memory will not be read again."""
    if _C is not None:
        _C.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), _MADV_DONTNEED)


if _C is not None:
    _mremap = _C.mremap
    _mremap.restype = ctypes.c_void_p
    _mremap.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int),
        ctypes.c_void_p,
    )
