"""Short arrays on the stack of compiled code, made of tuples and turned into tuples again.

Tuples pass through compiled functions without reference counts, but a loop that indexes one
compiles to a jump table. In an array on the stack it is plain loads and stores, and one machine
function serves tuples of all lengths (`ringleaf.core.compiler.stacks`). Uncompiled, these are
ordinary arrays.
"""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Fields


def on_stack(words: tuple[np.uint64, ...]) -> Fields:
    """Return an array of these words; compiled, it lives until the caller returns."""
    return np.array(words, np.uint64)


def off_stack(words: Fields, like: tuple[np.uint64, ...]) -> tuple[np.uint64, ...]:
    """Return the words as a tuple as long as `like`."""
    return tuple(words)
