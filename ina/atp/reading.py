"""What ATP's registers and packets mean: aggregators, blocks, sets of workers."""

from __future__ import annotations

from collections.abc import Mapping

import networkx as nx
import numpy as np

from ina.atp.wire import (
    AGGREGATOR_AT,
    COLLISION,
    FIRST_UDP_PORT,
    GRADIENT,
    HEADER_BYTES,
    INTEGERS,
    MESSAGE_AT,
    RAW,
    RESEND,
    SEQUENCE_AT,
    SIZE_AT,
    SIZE_MASK,
    SIZE_NONE,
    UDP_PORTS,
    VALUES_AT,
    WORKERS_AT,
)
from ina.reading import Fact
from ringleaf.headers import UDP_DST_AT
from switches.control import ControlPlane

SHARES = "Atp.aggregators.shares"
SEQUENCE_BITS = 32  # of a holder; the job is above

OUTCOMES = (
    *("took an aggregator", "added", "added as the last", "repeated", "passed"),
    *("collided", "sent again, merged", "sent again, replaced", "sent again, crossed", "freed"),
)
"""Rows of the counter `outcomes`, as `p4/include/aggregators.p4` numbers them."""


def read_entry(
    graph: nx.Graph[str], switch: ControlPlane, index: int, cells: Mapping[str, int]
) -> list[Fact]:
    """Aggregator, block, workers in the sum, and whether it is complete."""
    del graph  # workers go by their numbers, wherever they are
    job, block = divmod(cells["holders"], 1 << SEQUENCE_BITS)
    arrived, complete = cells["arrived"], _complete(switch, job)
    bits = [bit for bit in range(complete.bit_length()) if complete >> bit & 1]
    state = "free" if not arrived else "complete" if arrived == complete else "sum"
    facts = [
        Fact("aggregator", str(index)),
        Fact("block", str(block)),
        Fact(
            "bitmap",
            f"{arrived:0{complete.bit_length()}b}",
            tuple((f"worker {bit}", bool(arrived >> bit & 1)) for bit in bits),
        ),
        Fact("holds", state),
    ]
    return [Fact("job", str(job)), *facts] if job != 1 else facts


def _complete(switch: ControlPlane, job: int) -> int:
    """The workers that this switch waits for, for any of the job's servers."""
    actions, found = switch.program.source.actions, 0
    for entry in switch.entries(SHARES):
        if entry.match[0][0] == job:
            names = actions[entry.action].parameters
            found |= dict(zip(names, entry.arguments, strict=True)).get("complete", 0)
    return found


def read_packet(data: bytes) -> str:
    """Say `gradient of block 3, aggregator 1, workers 0 2`; "" of a packet that is not ATP's."""
    port = int.from_bytes(data[UDP_DST_AT : UDP_DST_AT + 2])
    if not FIRST_UDP_PORT <= port < FIRST_UDP_PORT + 2 * UDP_PORTS:
        return ""
    if len(data) < MESSAGE_AT + HEADER_BYTES:
        return ""
    flags, block = data[MESSAGE_AT], int.from_bytes(data[SEQUENCE_AT : SEQUENCE_AT + 4])
    if flags >> 4 != GRADIENT:
        if data[SIZE_AT] & SIZE_MASK == SIZE_NONE:
            return f"question for raw values of block {block}"
        return f"result of block {block}"
    marks = [
        name
        for flag, name in ((RESEND, "sent again"), (RAW, "raw"), (COLLISION, "collided"))
        if flags & flag
    ]
    workers = int.from_bytes(data[WORKERS_AT : WORKERS_AT + 8])
    numbers = " ".join(str(bit) for bit in range(workers.bit_length()) if workers >> bit & 1)
    aggregator = int.from_bytes(data[AGGREGATOR_AT : AGGREGATOR_AT + 2])
    kind = f"gradient ({', '.join(marks)})" if marks else "gradient"
    return f"{kind} of block {block}, aggregator {aggregator}, workers {numbers}"


def read_values(data: bytes) -> tuple[int, ...]:
    """The packet's lanes, signed, if they are whole numbers."""
    if not read_packet(data) or data[SIZE_AT] & SIZE_MASK == SIZE_NONE:
        return ()
    is_fixed = data[MESSAGE_AT] >> 4 == GRADIENT and not data[MESSAGE_AT] & RAW
    if not is_fixed and not data[SIZE_AT] & INTEGERS:
        return ()
    return tuple(np.frombuffer(data[VALUES_AT:], ">i4").tolist())


def read_counter(name: str, row: int) -> str:
    """What became of the packets that a row of `outcomes` counts."""
    return OUTCOMES[row] if name == "outcomes" and row < len(OUTCOMES) else f"{name}[{row}]"
