"""An agent whose packets a test takes and gives, one at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from frames import udp_frame
from start import start_tensor

from ringleaf.core.arena import Store
from ringleaf.core.packets import free_packet, make_pool, read_packet, write_packet
from ringleaf.hosts.agent import READY, make_ring
from ringleaf.ina.tensors import FLOAT32, INT32

UNWRITTEN = 0x55555555
"""What memory has that nobody has written."""


class SteppedAgent:
    """An agent; whoever makes one sets `protocol` and `at`.

    Args:
        head_bytes: Room for a packet's head, no more than the longest needs.
    """

    protocol: Any

    def __init__(self, head_bytes: int) -> None:
        self.store = Store(1 << 17)
        self.store.arena.memory[:] = 0x55
        make_pool(self.store, size=16, head_bytes=head_bytes, field_count=0, lane_count=0)
        self.ring = make_ring(self.store, 16)
        self.at = 0

    def word(self, word: int) -> int:
        return int(self.store.arena.words[self.at + word])

    def send(self, now_ps: int = 0) -> bytes:
        """Return the next packet; b"" if there is none."""
        packet = self.protocol.transmit(self.store.arena, self.at, 0, now_ps)
        if packet < 0:
            assert packet == -1
            return b""
        frame = read_packet(self.store.arena, packet)
        free_packet(self.store.arena, packet)
        return frame

    def send_all(self, now_ps: int = 0) -> list[bytes]:
        """Return the packets that the agent is ready to send; there is none behind them."""
        frames = []
        while self.word(READY):
            frames += [frame] if (frame := self.send(now_ps)) else []
        assert self.send(now_ps) == b""
        return frames

    def take(self, payload: bytes, now_ps: int = 0, tos: int = 2, size: int = 2000) -> None:
        """Give the agent a packet with this payload, cut to so many bytes."""
        frame = udp_frame((1, 2), (3, 4), (5, 6), payload, tos)[:size]
        packet = write_packet(self.store.arena, frame)
        self.protocol.receive(self.store.arena, self.at, packet, now_ps)
        free_packet(self.store.arena, packet)

    def start(self, tensor: np.ndarray, tag: int = 0, priority: int = 0, now_ps: int = 0) -> int:
        """Give a worker a tensor; return where it is."""
        place = self.store.register_memory(tensor.nbytes)
        memory = self.store.arena.memory
        memory[place : place + tensor.nbytes] = tensor.view(np.uint8)
        kind = INT32 if tensor.dtype == np.int32 else FLOAT32
        told = self.store.arena, self.at, place, tensor.size, kind, tag
        assert start_tensor(self.protocol, *told, now_ps=now_ps, priority=priority)
        return place

    def read(self, place: int, like: np.ndarray) -> list[float]:
        found = self.store.arena.memory[place : place + like.nbytes].view(like.dtype)
        return list(found.tolist())
