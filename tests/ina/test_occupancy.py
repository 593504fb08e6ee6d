"""Whose sums are in the entries of a switch, by its registers."""

from __future__ import annotations

import pytest

from ringleaf.core.shipped import P4_BUILD
from ringleaf.ina.occupancy import Occupies
from ringleaf.ina.registry import find_system
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch

SLOTTED = [  # systems whose programs are made from SwitchML's
    "switchml", "panama", "sharp", "netreduce", "omnireduce-switch", "vote", "tern",
]  # fmt: skip


def cell(job: int, block: int) -> int:
    return job << 32 | block


@pytest.mark.parametrize(
    ("name", "cells", "jobs"),
    [
        (
            "atp",
            {
                "holders": {3: cell(2, 7), 5: cell(1, 9), 8: cell(1, 4)},
                "arrived": {3: 1, 8: 6},  # that of 5 is free again
            },
            [0, 1, 1, 0],
        ),
        *(
            (
                name,
                {
                    "owners": {4: cell(1, 8), 5: cell(1, 9), 8: cell(2, 4), 11: cell(3, 1)},
                    "bitmaps": {4: 1, 5: 3, 8: 7, 11: 1},
                    "published": {8: 1},  # the result is there
                },
                [0, 1, 0, 1],  # both versions of slot 2 are its
            )
            for name in SLOTTED
        ),
    ],
)
def test_entries_are_in_use_until_their_result_is_there(
    name: str, cells: dict[str, dict[int, int]], jobs: list[int]
) -> None:
    system = find_system(name)
    reader = system.reader()
    assert isinstance(reader, Occupies)
    switch = Switch.alone(Program.load(P4_BUILD / f"{system.program(64)}.json"), ports=2)
    for register in switch.program.source.registers:
        for index, value in cells.get(register.rpartition(".")[2], {}).items():
            switch.write_register(register, index, value)

    assert reader.usage([switch], 4)().tolist() == [jobs]
