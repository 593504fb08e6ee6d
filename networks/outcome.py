"""What runs report of single queues, on whichever network."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Drop:
    """Packets of one source that one queue dropped; live, only queues and packets are known."""

    switch: str  # "": of several queues, as there were too many to count each
    port: int  # as the switch knows it
    peer: str  # that it leads to
    level: int | None = None  # class
    source: str = ""  # the host whose address packets came from
    packets: int = 0
    size_bytes: int | None = None  # of their frames
    first_ps: int | None = None  # since the run's start
    last_ps: int | None = None
