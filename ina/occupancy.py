"""The part of the switches' memory that jobs use, as the registers of their P4 programs say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from ringleaf.switches.control.plane import ControlPlane

JOB_SHIFT = np.uint64(32)  # of a register that names an entry's user: job ++ block


@runtime_checkable
class Occupies(Protocol):
    """The reader of a system whose sums take entries of switches' memory, slots or aggregators."""

    def occupied(self, switch: ControlPlane) -> npt.NDArray[np.int64]:
        """Return the jobs of the entries in use, one element each, in the order of entries.

        An entry is in use from the first packet of a block until the block's result has come by.
        """


def words(switch: ControlPlane, register: str) -> npt.NDArray[np.uint64]:
    """Return all cells, (size,), of a register of at most 64 bits, by the last part of its name."""
    cells = switch.register_words(switch.program.registers[register])
    return cells[:, 0]  # type: ignore[return-value]
