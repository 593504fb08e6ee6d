"""The outcome of a test."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ringleaf.switches.stf.expectations import Output


class StfVerdict(Enum):
    """The verdict on a test."""

    PASSED = "passed"
    FAILED = "failed"
    REFUSED = "refused"  # the program can't be executed, and was refused when it was loaded
    SKIPPED = "skipped"  # the program is of another architecture


@dataclass(frozen=True, slots=True)
class StfOutcome:
    """The outcome of one test.

    `reason` is one line, `detail` the evidence for it; both are empty if the test has passed.
    """

    name: str
    verdict: StfVerdict
    reason: str = ""
    detail: tuple[str, ...] = ()
    seconds: float = 0.0
    outputs: tuple[Output, ...] = field(default=(), repr=False)
    printed: tuple[str, ...] = field(default=(), repr=False)

    @property
    def observed(self) -> object:
        """The part of the outcome that must be the same if the same test runs elsewhere."""
        return self.verdict, self.outputs, self.printed
