"""The outcome of a test."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ringleaf.switches.stf.expectations import Output


class Verdict(Enum):
    PASSED = "passed"
    FAILED = "failed"
    REFUSED = "refused"  # the program can't be executed, which was said when it was loaded
    SKIPPED = "skipped"  # the program is of another architecture


@dataclass(frozen=True, slots=True)
class Outcome:
    """`reason` is a line, `detail` what shows it; both are empty for what has passed."""

    name: str
    verdict: Verdict
    reason: str = ""
    detail: tuple[str, ...] = ()
    seconds: float = 0.0
    outputs: tuple[Output, ...] = field(default=(), repr=False)
    printed: tuple[str, ...] = field(default=(), repr=False)

    @property
    def observed(self) -> object:
        """What must be the same if the same test runs elsewhere."""
        return self.verdict, self.outputs, self.printed
