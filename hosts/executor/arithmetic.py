"""The types of elements that are added and copied without Python."""

from __future__ import annotations

import numpy as np

from ringleaf.core.tensors import ElementType
from ringleaf.hosts.rc.landing import FLOAT32, INT32

OTHER = 3
"""Elements of a type that only NumPy adds here, called back for each message."""

NOTHING = 4
"""Elements that are not in memory: there is nothing to add or copy."""

_KINDS = {np.dtype(np.float32): FLOAT32, np.dtype(np.int32): INT32}


def kind_of(dtype: ElementType) -> int:
    """Return the number of a type of elements."""
    return _KINDS.get(dtype, OTHER)
