"""A rank's clock: virtual time, which its computing and its waits advance.

Computing is counted by one of three meters: the processor time of the thread that computes, times a
factor; the FLOPs of its operations, divided by a rate; or times that a file gives to modules.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ringleaf.core.units import PS_PER_NS, PS_PER_S, parse_flops, parse_time
from ringleaf.core.yaml_file import read_yaml
from ringleaf.errors import ConfigError

FLOPS = "flops:"
"""The prefix of a rate of FLOPs."""

LARGEST_FACTOR = 1e6


@dataclass(frozen=True, slots=True)
class ModuleTimes:
    """The times of a kind of module, in picoseconds."""

    forward_ps: int
    backward_ps: int


@dataclass(frozen=True, slots=True)
class Compute:
    """The way in which computing takes time.

    Attributes:
        factor: On the processor time that is measured; 0: that does not count.
        flops: Operations per second; 0: they do not count.
        modules: Times by a module's path, or by the name of its class.
    """

    factor: float = 0.0
    flops: float = 0.0
    modules: Mapping[str, ModuleTimes] | None = None

    @property
    def is_measured(self) -> bool:
        """Whether times differ from run to run."""
        return self.factor > 0


def parse_compute(text: str, where: str = "compute") -> Compute:
    """Return the meter that a text names: `1`, `0`, `flops:9.4T`, or the path of a YAML file.

    Raises:
        ConfigError: If it names none.
    """
    if text.startswith(FLOPS):
        return Compute(flops=parse_flops(text.removeprefix(FLOPS), where))
    if text.endswith((".yaml", ".yml")):
        return Compute(modules=_read_modules(text, where))
    try:
        factor = float(text)
    except ValueError:
        factor = -1.0
    if not 0 <= factor <= LARGEST_FACTOR:
        raise ConfigError(
            f"{where}: must be a factor from 0 to {LARGEST_FACTOR:g}, {FLOPS}RATE or a YAML file, "
            f"got {text!r}; like 1, 0, {FLOPS}9.4T or modules.yaml"
        )
    return Compute(factor=factor)


def _read_modules(path: str, where: str) -> dict[str, ModuleTimes]:
    rows = read_yaml(Path(path), where)
    if not isinstance(rows, dict) or not rows:
        raise ConfigError(f"{where} {path}: must map modules to times, got {rows!r:.80}")
    times = {}
    for name, row in rows.items():
        at = f"{where} {path}: {name}"
        if not isinstance(row, dict) or not row or set(row) - {"forward", "backward"}:
            raise ConfigError(f"{at}: must have forward and backward, got {row!r:.80}")
        times[str(name)] = ModuleTimes(
            parse_time(str(row.get("forward", 0)), f"{at}: forward"),
            parse_time(str(row.get("backward", 0)), f"{at}: backward"),
        )
    return times


class RankClock:
    """A rank's time in picoseconds.

    Args:
        factor: Virtual time per processor time; 0: it does not count.
        worked_ns: Returns the processor time so far; by default that of the main thread.
    """

    def __init__(self, factor: float = 0.0, worked_ns: Callable[[], int] | None = None) -> None:
        self._factor = factor
        self._worked_ns = worked_ns or main_thread_ns
        self._base_ps = 0
        self._since_ns: int | None = self._worked_ns()  # None: it stands
        self._depth = 0

    @property
    def now_ps(self) -> int:
        """The time now."""
        if self._since_ns is None or not self._factor:
            return self._base_ps
        worked_ns = max(self._worked_ns() - self._since_ns, 0)
        return self._base_ps + round(worked_ns * self._factor) * PS_PER_NS

    def measure(self, factor: float) -> None:
        """Have the time pass by this factor on the processor time from now on."""
        with self:
            self._factor = factor

    def advance(self, time_ps: int) -> None:
        """Have some time pass."""
        self._base_ps += time_ps

    def reach(self, time_ps: int) -> None:
        """Go on to a time, if it is not over yet."""
        now_ps = self.now_ps
        if time_ps > now_ps:
            self._base_ps += time_ps - now_ps

    def __enter__(self) -> None:
        """Stand still, as what follows is no work of the script."""
        self._depth += 1
        if self._depth == 1:
            self._base_ps, self._since_ns = self.now_ps, None

    def __exit__(self, *_: object) -> None:
        """Go on."""
        self._depth -= 1
        if self._depth == 0:
            self._since_ns = self._worked_ns()


def main_thread_ns() -> int:
    """Return the processor time of the main thread, whichever thread asks."""
    main = threading.main_thread().ident
    assert main is not None
    return time.clock_gettime_ns(time.pthread_getcpuclockid(main))


def flops_ps(count: float, rate: float) -> int:
    """Return the time of operations at a rate per second."""
    return round(count * PS_PER_S / rate)
