"""Facts at the top of a page: a few words in large letters, and what they are of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunFact:
    """A fact.

    Attributes:
        value: What is large: `0 wrong`.
        what: What it is of: `of 4,096 values`.
        mark: `good`, `bad` or nothing, by which it is coloured.
    """

    value: str
    what: str
    mark: str = ""
