"""Majority votes of signSGD in switches: a bit per element up, and a bit per element back.

Fixed by the source: workers send the signs of their elements; a parameter server counts them, and
sends the signs of the majority back.

Chosen here: switches count, over SwitchML's tree with its slots, bitmaps and repairs of losses, so
no loss, repetition or reordering changes a count. A packet has 768 signs. A switch adds 768
counts of six bits at once, by full adders of bits, so a job has at most 63 workers; between
switches a packet has the six bits of each count (so it grows by 480 bytes; BMv2 adds 512 at most).
The root adds a constant and keeps the carry: the majority, where ties are +1, as in
`collectives/compressors/signsgd.py`. Elements must be +1 and -1 (`--compress signsgd`); the result
is +1 and -1, too, whatever `--lanes` says.

Source:
    Bernstein, Zhao, Azizzadenesheli and Anandkumar, "signSGD with majority vote is communication
    efficient and fault tolerant", ICLR 2019.
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


class Vote(SwitchML):
    """The system of votes."""

    name = "vote"
    home = "ringleaf.ina.vote"
    title = "majority vote in switches"
    look = Look("#58641c", "$V$")
    builds = (BuiltProgram("vote", "vote.p4"),)
    layers = "ringleaf.ina.vote.layers"
    compress = "signsgd"
    has_lanes = False
    leases = False  # values are checked before any is sent
    moves = False

    def program(self, lanes: int) -> str:
        """Return the name of the P4 program, the same for all `lanes`."""
        return "vote"

    def added_bytes(self, lanes: int) -> int:
        """Return the bytes of the planes that a worker's packet does not have."""
        from ringleaf.ina.vote.wire import PLANES, WORDS

        return 4 * (PLANES - 1) * WORDS

    def error_bound(self, parts: Array, lanes: int) -> npt.NDArray[np.float64]:
        """Return how far the majority's sign is from the sum, as a vote is no sum."""
        import numpy as np

        sums = parts.sum(axis=0, dtype=np.float64)
        bounds: npt.NDArray[np.float64] = np.abs(sums - np.where(sums >= 0, 1, -1))
        return bounds


SYSTEM = Vote()
