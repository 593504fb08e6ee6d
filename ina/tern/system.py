"""TernGrad's integers summed in switches: two bits per element up, and six per element back.

Fixed by the source: elements are -1, 0 or 1 times a scale, which is the largest of all workers'
(scaler sharing), so the sum is a whole multiple of it, from -n to n; the parameter server
returns that.

Chosen here: switches add, over SwitchML's tree with its slots, bitmaps and repairs of losses. A
packet has 768 elements, each plus one in two bits, and the block's scale; a switch adds counts
of six bits by the full adders of `vote.p4`, so a job has at most 31 workers, and a packet grows by
384 bytes. A register has the scale, as blocks of zeros know none. If workers have different ones,
which a rack's switch sees by comparing bits, the result is NaN. Elements must be ternary
(`--compress terngrad`, whose ranks agree on the scale before); other ones are refused. `--lanes`
does not matter.

Source:
    Wen et al., "TernGrad: ternary gradients to reduce communication in distributed deep learning",
    NIPS 2017.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringleaf.collectives.algorithm import Look
from ringleaf.core.shipped import BuiltProgram
from ringleaf.ina.switchml.system import SwitchML

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ringleaf.core.tensors import Array


class Tern(SwitchML):
    """The system of ternary sums."""

    name = "tern"
    home = "ringleaf.ina.tern"
    title = "ternary sums in switches"
    look = Look("#0060e6", "$3$")
    builds = (BuiltProgram("tern", "tern.p4"),)
    layers = "ringleaf.ina.tern.layers"
    compress = "terngrad"
    has_lanes = False
    moves = False

    def program(self, lanes: int) -> str:
        """Return the name of the P4 program, the same for all `lanes`."""
        return "tern"

    def added_bytes(self, lanes: int) -> int:
        """Return the bytes of the planes that a worker's packet does not have."""
        from ringleaf.ina.tern.wire import SUM_WORDS, WORDS

        return 4 * (SUM_WORDS - WORDS)

    def error_bound(self, parts: Array, lanes: int) -> npt.NDArray[np.float64]:
        """Return the error of a sum in float32: half a unit in its last place."""
        import numpy as np

        bounds: npt.NDArray[np.float64] = np.abs(parts).sum(axis=0, dtype=np.float64) * 2.0**-24
        return bounds


SYSTEM = Tern()
