"""A module as the generator has written it, and the places of its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ringleaf.switches.engine.shapes import TableShape
from ringleaf.switches.generate.marks import LineMark
from ringleaf.switches.generate.observing import ObservedWords
from ringleaf.switches.generate.state import StateLayout
from ringleaf.switches.generate.storage import Storage


@dataclass(frozen=True, slots=True)
class Module:
    """Generated source, and the layout of the program's state for a switch."""

    text: str
    names: Mapping[str, str]  # the program's names of the labels t3, f12, ...
    marks: Mapping[int, LineMark]  # of the text's lines, numbered from 1
    storage: Storage
    state: StateLayout
    shapes: tuple[TableShape, ...]  # in the order of the switch's words
    field_count: int
    lane_count: int
    parsed_bytes: int  # the most that the parser takes
    head_bytes: int  # room that a packet's head needs
    scratch_bytes: int  # room that calculations need
    observer: ObservedWords | None = None  # counts the points that packets reach
