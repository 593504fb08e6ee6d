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
    """What `Memory` takes for so many bytes: whole pages, and at least one."""
    return -(-max(size_bytes, 1) // PAGE_BYTES) * PAGE_BYTES


class Memory:
    """Hands out tensors that network interfaces can read and write by address.

    Memory moves when it must grow, and tensors that were given out before are then elsewhere.
    So `make_room` first, for all that will be taken.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._agents_bytes = store.memory_used

    def make_room(self, size_bytes: int) -> None:
        """Take back all that was given out, and see to it that so much can be.

        What was registered before this was made, by agents, stays theirs.
        """
        self._store.release_memory(self._agents_bytes)
        self._store.register_memory(size_bytes)
        self._store.release_memory(self._agents_bytes)

    def take_bytes(self, size_bytes: int) -> int:
        """Return the address of so many bytes."""
        return self._store.register_memory(aligned(size_bytes))

    def take(self, elements: int, dtype: torch.dtype) -> torch.Tensor:
        """Return an uninitialised tensor of shape (elements,)."""
        return self.view(self.take_bytes(elements * item_bytes(dtype)), elements, dtype)

    def view(self, address: int, elements: int, dtype: torch.dtype) -> torch.Tensor:
        """The tensor of `elements` at an address."""
        end = address + elements * item_bytes(dtype)
        return torch.from_numpy(self._store.arena.memory[address:end]).view(dtype)

    def address(self, tensor: torch.Tensor) -> int:
        """Where a tensor that was given out, or a part of it, lies."""
        found = self._find(tensor)
        assert found is not None, "the tensor must be in registered memory"
        return found

    def _find(self, tensor: torch.Tensor) -> int | None:
        if not tensor.numel():
            return 0  # nothing lies nowhere
        memory = self._store.arena.memory
        offset = tensor.data_ptr() - memory.ctypes.data
        end = offset + tensor.numel() * tensor.element_size()
        inside = offset >= 0 and end <= memory.size and tensor.is_contiguous()
        return offset if inside else None

    @contextmanager
    def registered(
        self, tensors: Sequence[torch.Tensor], spare_bytes: int
    ) -> Iterator[list[torch.Tensor]]:
        """Yield the tensors as they are in registered memory, with so much to take besides.

        Those that lie elsewhere are copied there, and back at the end, when what was taken
        meanwhile is given back.
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
