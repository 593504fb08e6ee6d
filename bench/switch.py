"""Measure how fast one core puts packets through a switch, and how long a program compiles.

Wall-clock time: for people and reports, never for tests to assert.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ringleaf.core import native_types as types
from ringleaf.core.arena import Arena, Store
from ringleaf.core.compiled import address_of, call_handler, compiled, copy_items
from ringleaf.core.headers import get32, put32
from ringleaf.core.native_types import ARENA
from ringleaf.core.packets import (
    HEAD_BYTES,
    HEAD_LEN,
    HEADS_AT,
    IN_PORT,
    OUTBOX_AT,
    ROW_WORDS,
    ROWS_AT,
    allocate_packet,
    fields_of,
    free_packet,
)
from ringleaf.core.views import window
from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import GARBAGE_AFTER
from ringleaf.switches.engine.layout import (
    DEQ_QDEPTH,
    DEQ_TIMEDELTA,
    EGRESS_PORT,
    ENQ_QDEPTH,
    ENQ_TIMESTAMP,
    STANDARD_FIELDS,
)
from ringleaf.switches.engine.replication import replicate
from ringleaf.switches.switch import Switch

# Columns of a measurement's block of `arena.words`.
INGRESS = 0
EGRESS = 1
SWITCH_AT = 2
FRAMES_AT = 3  # per packet: its port, its length, its offset in arena.bytes
FRAMES = 4
NUMBER_AT = 5  # byte of a 32-bit number that grows from round to round; -1 for none
NUMBER_STEP = 6
ROUND = 7  # rounds done so far
MEASURE_WORDS = 8

_U0 = np.uint64(0)


@dataclass(frozen=True, slots=True)
class SwitchSpeed:
    """Packets per second of one core, in wall-clock time: received, and sent."""

    received_per_s: float
    sent_per_s: float

    @property
    def ns_per_packet(self) -> float:
        return 1e9 / self.received_per_s


@dataclass(frozen=True, slots=True)
class CompileTime:
    """Seconds from JSON to handlers, without imports: the first time, and from the cache."""

    cold_s: float
    cached_s: float


@compiled(types.int64(ARENA, types.int64, types.int64))
def _run(arena: Arena, at: int, rounds: int) -> int:
    """Put all frames through the switch, `rounds` times; return how many packets were sent."""
    words = arena.words
    block = window(words, at, MEASURE_WORDS)
    outbox = arena.own[OUTBOX_AT]
    number_at = block[NUMBER_AT]
    sent = 0
    for _ in range(rounds):
        now_ps = block[ROUND]
        added = now_ps * block[NUMBER_STEP]
        block[ROUND] += 1
        for frame in range(block[FRAMES_AT], block[FRAMES_AT] + 3 * block[FRAMES], 3):
            packet = allocate_packet(arena)
            row = window(words, words[ROWS_AT] + packet * ROW_WORDS, ROW_WORDS)
            head_at = words[HEADS_AT] + packet * words[HEAD_BYTES]
            row[IN_PORT] = words[frame]
            row[HEAD_LEN] = words[frame + 1]
            copy_items(arena.bytes, head_at, arena.bytes, words[frame + 2], words[frame + 1])
            if number_at >= 0:
                head = window(arena.bytes, head_at, words[HEAD_BYTES])
                put32(head, number_at, get32(head, number_at) + added)
            call_handler(block[INGRESS], arena, block[SWITCH_AT], packet, now_ps)
            for out in range(replicate(arena, block[SWITCH_AT], packet, now_ps)):
                copy = words[outbox + 2 * out]
                fields = window(arena.fields, fields_of(arena.words, copy), STANDARD_FIELDS)
                fields[EGRESS_PORT] = np.uint64(words[outbox + 2 * out + 1])
                fields[ENQ_TIMESTAMP] = _U0
                fields[ENQ_QDEPTH] = _U0
                fields[DEQ_TIMEDELTA] = _U0
                fields[DEQ_QDEPTH] = _U0
                sent += call_handler(block[EGRESS], arena, block[SWITCH_AT], copy, now_ps)
                free_packet(arena, copy)
    return sent


def measure(
    switch: Switch,
    packets: Sequence[tuple[int, bytes]],
    *,
    number_at: int = -1,
    number_step: int = 0,
    seconds: float = 1.0,
) -> SwitchSpeed:
    """Send packets through a switch again and again; return the speed of the best stretch.

    Ingress, replication and egress are counted, as is copying each packet to its place.

    Args:
        switch: The switch, with its entries written; its registers and counters are reset.
        packets: One round of packets: (port, bytes).
        number_at: Byte offset of a big-endian 32-bit number in each packet, such as
            SwitchML's block; `number_step` is added to it every round. -1 for none.
        number_step: See `number_at`.
        seconds: Time to measure for.

    Raises:
        ConfigError: If there is no packet, or one is longer than the pool's packet heads.
    """
    store = switch.store
    switch.reset()
    if not packets:
        raise ConfigError("measure: needs packets, got none")
    at = store.allocate("words", MEASURE_WORDS)
    frames_at = _store_frames(store, packets)
    store.arena.words[at : at + NUMBER_STEP + 1] = [
        address_of(switch.program.ingress),
        address_of(switch.program.egress),
        switch.at,
        frames_at,
        len(packets),
        number_at,
        number_step,
    ]
    rounds = 1
    best = SwitchSpeed(0.0, 0.0)
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        start = time.perf_counter()
        sent = _run(store.arena, at, rounds)
        took = time.perf_counter() - start
        speed = SwitchSpeed(rounds * len(packets) / took, sent / took)
        best = max(best, speed, key=lambda item: item.received_per_s)
        if took < seconds / 20:
            rounds *= 2
    return best


def _store_frames(store: Store, packets: Sequence[tuple[int, bytes]]) -> int:
    room = int(store.arena.words[HEAD_BYTES])
    longest = max(len(data) for _, data in packets)
    if longest > room:
        raise ConfigError(f"measure: packets must fit a head of {room} bytes, got {longest}")
    frames_at = store.allocate("words", 3 * len(packets))
    bytes_at = store.allocate("bytes", room * len(packets))
    for i, (port, data) in enumerate(packets):
        place = bytes_at + i * room
        store.arena.words[frames_at + 3 * i : frames_at + 3 * i + 3] = [port, len(data), place]
        store.arena.bytes[place : place + len(data)] = np.frombuffer(data, np.uint8)
    return frames_at


_COMPILE = f"""
import gc, time, sys
gc.set_threshold({GARBAGE_AFTER})  # as commands have it
from ringleaf.switches.program import Program
start = time.perf_counter()
Program.load(sys.argv[1]).prepare()
print(time.perf_counter() - start)
"""


def measure_compile(path: str | Path) -> CompileTime:
    """Compile a program in processes of their own, twice with one new cache."""
    with tempfile.TemporaryDirectory(prefix="ringleaf-") as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache, "NUMBA_DISABLE_JIT": "0"}
        times = []
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-P", "-c", _COMPILE, str(path)],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            times.append(float(done.stdout))
    return CompileTime(*times)
