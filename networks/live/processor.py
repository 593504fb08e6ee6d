"""The kernel's account of how busy the machine's processors have been.

Source: proc(5), `/proc/stat`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ringleaf.networks.outcome import ProcessorSeconds

STAT = Path("/proc/stat")
_IDLE, _IOWAIT, _SOFTIRQ = 3, 4, 6  # columns of the line `cpu`

Clock = Callable[[], float]


class Stopwatch:
    """A measurement of the processors' times between `start` and `stop`.

    Args:
        switches_s: Returns the processor time of the switches' processes so far.
    """

    def __init__(self, switches_s: Clock) -> None:
        self._switches_s = switches_s
        self._before = self._used = np.zeros(4)

    def start(self) -> None:
        """Note the processors' times so far."""
        self._before = self._read()

    def stop(self) -> None:
        """Note the processors' times since the start."""
        self._used = self._read() - self._before

    def usage(self, *, hosts_s: float, is_one_thread: bool) -> ProcessorSeconds:
        """Return the processor time used from `start` to `stop`."""
        wall_s, idle_s, softirq_s, switches_s = self._used.tolist()
        processors = os.cpu_count() or 1
        return ProcessorSeconds(
            wall_s=wall_s,
            processors=processors,
            busy_s=min(max(wall_s * processors - idle_s, 0.0), wall_s * processors),
            softirq_s=softirq_s,
            hosts_s=hosts_s,
            switches_s=switches_s,
            is_one_thread=is_one_thread,
        )

    def _read(self) -> npt.NDArray[np.float64]:
        idle_s, softirq_s = read_stat(STAT.read_text())
        return np.array([time.monotonic(), idle_s, softirq_s, self._switches_s()])


def read_stat(text: str) -> tuple[float, float]:
    """Return all processors' idle and softirq seconds so far.

    Idle time is measured, the rest of `/proc/stat` is sampled by ticks; so busy is what isn't idle.
    """
    ticks = [int(word) for word in text.splitlines()[0].split()[1:]]
    per_s = os.sysconf("SC_CLK_TCK")
    return (ticks[_IDLE] + ticks[_IOWAIT]) / per_s, ticks[_SOFTIRQ] / per_s
