"""Aalo (Chowdhury and Stoica, SIGCOMM 2015): coflows of unknown size, by what they have had so far.

A coflow begins in the most urgent of several queues, and moves to a less urgent one each time that
the bytes it has sent pass a threshold; thresholds grow exponentially. Within a queue it is first
in, first out. The paper's thresholds are from memory and for larger coflows, so those here are a
parameter: 64 KiB, and four times as much from queue to queue, which tells apart what our models and
their hundredths send. Chosen, too: a coflow is the gradient of a job's iteration, queues are strict
priorities (the paper gives lower ones a small share), and a collective keeps the priority with
which it began.
"""

from __future__ import annotations

from dataclasses import replace

from ringleaf.hosts.schedulers.common.interface import LEVELS, Release, Situation, Standing
from ringleaf.hosts.schedulers.common.ranking import PARTITION_BYTES
from ringleaf.hosts.schedulers.fifo import FifoScheduler

FIRST_BYTES = 64 << 10
FACTOR = 4


def queue(job: Standing) -> int:
    """Return the queue of a job's present coflow: 0 is the most urgent, 7 the least."""
    sent, level, limit = job.size_bytes - job.left_bytes, 0, FIRST_BYTES
    while sent >= limit and level < LEVELS - 1:
        level += 1
        limit *= FACTOR
    return level


class Aalo(FifoScheduler):
    """The Aalo scheduler."""

    name = "aalo"
    title = "Aalo"
    partition_bytes: int | None = PARTITION_BYTES

    def release(self, now: Situation) -> list[Release]:
        """Return the releases of first in, first out, with the priority of their coflow's queue."""
        return [
            replace(each, priority=LEVELS - 1 - queue(now.jobs[each.item.job]))
            for each in super().release(now)
        ]


SCHEDULER = Aalo()
