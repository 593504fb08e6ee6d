"""Tensors in the hosts' registered memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from ringleaf.arena import Store

PAGE_BYTES = 4096


def item_bytes(dtype: torch.dtype) -> int:
    return torch.empty(0, dtype=dtype).element_size()


class Memory:
    """Hands out tensors that network interfaces can read and write by address."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def tensors(
        self, count: int, elements: int, dtype: torch.dtype, *, spare_bytes: int
    ) -> list[torch.Tensor]:
        """Return `count` uninitialised tensors, instead of all that were given out before.

        There will be room for `spare_bytes` more without moving them.
        """
        size = -(-max(elements * item_bytes(dtype), 1) // PAGE_BYTES) * PAGE_BYTES
        self._store.release_memory()
        self._store.register_memory(count * size + spare_bytes)
        self._store.release_memory()
        addresses = [self._store.register_memory(size) for _ in range(count)]
        return [self.view(address, elements, dtype) for address in addresses]

    def view(self, address: int, elements: int, dtype: torch.dtype) -> torch.Tensor:
        """The tensor of `elements` at an address."""
        end = address + elements * item_bytes(dtype)
        return torch.from_numpy(self._store.arena.memory[address:end]).view(dtype)

    def _address(self, tensor: torch.Tensor) -> int | None:
        """Where a tensor lies in registered memory, if it does."""
        memory = self._store.arena.memory
        offset = tensor.data_ptr() - memory.ctypes.data
        end = offset + tensor.numel() * tensor.element_size()
        return offset if offset >= 0 and end <= memory.size and tensor.is_contiguous() else None

    @contextmanager
    def registered(
        self, tensors: Sequence[torch.Tensor], staging_bytes: Sequence[int]
    ) -> Iterator[tuple[list[int], list[int]]]:
        """Yield addresses of the tensors, and of as much memory besides as is asked for.

        Tensors that lie elsewhere are copied there, and back at the end.
        """
        mark = self._store.memory_used
        staging = [self._store.register_memory(size) for size in staging_bytes]
        found = [self._address(tensor) for tensor in tensors]
        copied = any(address is None for address in found)
        if copied:
            sizes = [tensor.numel() * tensor.element_size() for tensor in tensors]
            addresses = [self._store.register_memory(max(size, 1)) for size in sizes]
            copies = [
                self.view(address, tensor.numel(), tensor.dtype)
                for address, tensor in zip(addresses, tensors, strict=True)
            ]
            for copy, tensor in zip(copies, tensors, strict=True):
                copy.copy_(tensor)
        else:
            addresses = [address for address in found if address is not None]
        try:
            yield addresses, staging
        finally:
            if copied:
                for copy, tensor in zip(copies, tensors, strict=True):
                    tensor.copy_(copy)
            self._store.release_memory(mark)
