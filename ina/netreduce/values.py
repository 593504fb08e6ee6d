"""The numbers that NetReduce's switches add: int32 that wrap around, or fixed point.

A float32 is multiplied by 2^20 and rounded, as for ATP, but nothing repairs an overflow: so values
must be small enough that no sum can overflow.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ringleaf.core.arena import Bytes
from ringleaf.core.compiled import inline
from ringleaf.core.headers import get32, put32
from ringleaf.core.tensors import Array
from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.ina.atp.scaling import SCALE


def check_range(values: Array, workers: int, system: str = "netreduce") -> None:
    """Check that sums of so many workers' values can't overflow; those of integers may.

    Raises:
        ConfigError: If they can, or if a value is an infinity or a NaN.
    """
    if values.dtype != np.float32:
        return
    most = ((1 << 31) - 1) / SCALE / workers - 1 / SCALE
    largest = float(np.abs(values).max(initial=0.0))
    if not largest <= most:
        raise ConfigError(
            f"{system}: magnitudes must be at most {most:.6g} for fixed-point sums of "
            f"{format_count(workers, 'worker')}, got {largest!r}; scale the tensor, or take "
            "algo=switchml"
        )


@inline
def write_floats(values: npt.NDArray[np.float32], lanes: Bytes) -> None:
    """Write float32 values as fixed-point lanes, int32 in units of 2^-20, big-endian."""
    for i in range(values.size):
        put32(lanes, 4 * i, int(np.int32(np.rint(np.float64(values[i]) * SCALE))))


@inline
def read_floats(lanes: Bytes, values: npt.NDArray[np.float32]) -> None:
    """Read float32 values from fixed-point lanes, int32 in units of 2^-20, big-endian."""
    for i in range(values.size):
        lane = np.uint32(get32(lanes, 4 * i)).view(np.int32)
        values[i] = np.float32(np.float64(lane) / SCALE)
