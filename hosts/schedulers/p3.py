"""P3 (Jayarajan et al., MLSys 2019): parameters cut into slices, the front layer's slice first.

The source fixes that gradients are cut into slices, and that of those which are ready the one goes
next whose layer the next forward pass needs first. It waits for the slice before it (ByteScheduler,
SOSP 2019, calls that stop and wait). `SLICE_ELEMENTS` is the size that we remember, not checked; it
is a parameter. P3 sends to parameter servers; here any algorithm may reduce a slice.
"""

from __future__ import annotations

from ringleaf.hosts.schedulers.layers import LayerPriority

SLICE_ELEMENTS = 50_000


class P3(LayerPriority):
    """The P3 scheduler."""

    name = "p3"
    title = "P3"
    partition_bytes: int | None = 4 * SLICE_ELEMENTS
    credit_bytes: int = 1  # one slice at a time


SCHEDULER = P3()
