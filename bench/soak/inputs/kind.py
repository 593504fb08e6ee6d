"""A kind of input from outside, and the folders whose files are changed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ringleaf.errors import RingleafError
from ringleaf.switches.server.status import BatchError

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "tests" / "switches" / "programs"
TRACES = ROOT / "tests" / "traces"
STF = ROOT / "tests" / "switches" / "stf"

REFUSALS: tuple[type[Exception], ...] = (RingleafError, BatchError)
"""The errors by which input may be refused."""


@dataclass(frozen=True, slots=True)
class InputKind:
    """A kind of input, with functions that draw and feed one.

    `feed` takes an input, and an empty folder for it alone.
    """

    share: int  # of all inputs
    draw: Callable[[random.Random], bytes]
    feed: Callable[[bytes, Path], None]
    is_watched: bool = True  # whether it must not write elsewhere, nor start processes
