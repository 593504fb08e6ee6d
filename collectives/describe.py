"""A schedule as text for people: a line per step, with each message's ranks and chunks."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter

from ringleaf.collectives.schedule import Aggregate, Message, Op, Schedule, messages
from ringleaf.core.units import format_count


def describe(schedule: Schedule, limit: int = 8) -> str:
    """Return a table of the steps, with at most `limit` messages of each written out.

    Example:
        ```text
        ring allreduce: 3 ranks, 3 chunks, 12 rows in 4 steps
        step 0: 0 -> 1 += chunk 0;  1 -> 2 += chunk 1;  2 -> 0 += chunk 2
        step 1: 0 -> 1 += chunk 2;  1 -> 2 += chunk 0;  2 -> 0 += chunk 1
        step 2: 0 -> 1 = chunk 1;  1 -> 2 = chunk 2;  2 -> 0 = chunk 0
        step 3: 0 -> 1 = chunk 0;  1 -> 2 = chunk 1;  2 -> 0 = chunk 2
        ```
    """
    width = len(str(max(0, schedule.steps - 1)))
    lines = [str(schedule)]
    for step, group in groupby(messages(schedule), attrgetter("step")):
        moves = list(group)
        shown = [_describe_move(move) for move in moves[:limit]]
        if len(moves) > limit:
            shown.append(f"and {len(moves) - limit} more")
        lines.append(f"step {step:{width}}: " + ";  ".join(shown))
    return "\n".join(lines)


def _describe_move(move: Message | Aggregate) -> str:
    if isinstance(move, Aggregate):
        return f"the network adds up chunk {move.chunk} of {format_count(len(move.ranks), 'rank')}"
    sign = "+=" if move.op is Op.REDUCE else "="
    last = move.stop - 1
    chunks = f"chunk {last}" if last == move.start else f"chunks {move.start} to {last}"
    return f"{move.src} -> {move.dst} {sign} {chunks}"
