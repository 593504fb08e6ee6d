"""Tensors in the hosts' registered memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from ringleaf.arena import Store

PAGE_BYTES = 4096


def item_bytes(dtype: torch.dtype) -> int:
    return torch.empty(0, dtype=dtype).element_size()


def aligned(size_bytes: int) -> int:
    """Return the memory that `Memory` takes for `size_bytes`: whole pages, and at least one."""
    return -(-max(size_bytes, 1) // PAGE_BYTES) * PAGE_BYTES


class Memory:
    """Registered memory: hands out tensors that network interfaces can read and write by address.

    Memory moves when it must grow; tensors that were given out before are no longer in it then.
    So call `make_room` first, for all that will be taken.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._agents_bytes = store.memory_used

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

    def take(self, elements: int, dtype: torch.dtype) -> torch.Tensor:
        """Return an uninitialised tensor of shape (elements,)."""
        return self.view(self.take_bytes(elements * item_bytes(dtype)), elements, dtype)

    def view(self, address: int, elements: int, dtype: torch.dtype) -> torch.Tensor:
        """Return the tensor of `elements` elements at an address."""
        end = address + elements * item_bytes(dtype)
        return torch.from_numpy(self._store.arena.memory[address:end]).view(dtype)

    def address(self, tensor: torch.Tensor) -> int:
        """Return the address of a tensor that was given out, or of a part of one."""
        found = self._find(tensor)
        assert found is not None, "the tensor must be in registered memory"
        return found

    def _find(self, tensor: torch.Tensor) -> int | None:
        if not tensor.numel():
            return 0  # an empty tensor has no address
        memory = self._store.arena.memory
        offset = tensor.data_ptr() - memory.ctypes.data
        end = offset + tensor.numel() * tensor.element_size()
        inside = offset >= 0 and end <= memory.size and tensor.is_contiguous()
        return offset if inside else None

    @contextmanager
    def registered(
        self, tensors: Sequence[torch.Tensor], spare_bytes: int
    ) -> Iterator[list[torch.Tensor]]:
        """Yield the tensors in registered memory, with room to take `spare_bytes` besides.

        Tensors that lie elsewhere are copied there, and back at the end. Memory that was taken
        meanwhile is released then.
        """
        mark = self._store.memory_used
        if any(self._find(tensor) is None for tensor in tensors):
            spare_bytes += sum(aligned(t.numel() * t.element_size()) for t in tensors)
        self._store.register_memory(spare_bytes)
        self._store.release_memory(mark)
        if all(self._find(tensor) is not None for tensor in tensors):
            copies = list(tensors)
        else:
            given = [self.take_bytes(t.numel() * t.element_size()) for t in tensors]
            copies = [
                self.view(address, tensor.numel(), tensor.dtype)
                for address, tensor in zip(given, tensors, strict=True)
            ]
            for copy, tensor in zip(copies, tensors, strict=True):
                copy.copy_(tensor)
        try:
            yield list(copies)
        finally:
            for copy, tensor in zip(copies, tensors, strict=True):
                if copy is not tensor:
                    tensor.copy_(copy)
            self._store.release_memory(mark)
