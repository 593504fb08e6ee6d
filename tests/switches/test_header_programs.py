"""Stacks, unions, varbit fields and parsers: the engine does what plain Python says BMv2 does."""

from __future__ import annotations

from collections.abc import Callable

import header_models
import pytest
from header_models import Sent
from program_cases import CASES, make_switch

from ringleaf.errors import ConfigError
from ringleaf.switches.engine.updates import ValueSetUpdate

MODELS: dict[str, Callable[[bytes], Sent]] = {
    "stacks": header_models.stacks,
    "unions": header_models.unions,
    "varbits": header_models.varbits,
    "parsers": header_models.parsers,
}
PACKETS = 2000


@pytest.mark.parametrize("name", MODELS)
def test_engine_does_as_the_model(name: str) -> None:
    case = next(case for case in CASES if case.name == name)
    switch = make_switch(case)
    for number, (port, data) in enumerate(case.packets(PACKETS, seed=5)):
        expected = MODELS[name](data)
        assert switch.process(port, data) == [expected], f"packet {number}: {data.hex()}"


def test_value_sets_decide_the_way() -> None:
    case = next(case for case in CASES if case.name == "parsers")
    switch = make_switch(case)
    ports, both = {0x56, 0x57}, {(9, 0x55), (0, 0x1234), (7, 0x56)}
    switch.apply(
        [
            ValueSetUpdate("P.ports", tuple(((port, 0xFFFF),) for port in ports)),
            ValueSetUpdate("P.both", tuple(((a, 0xFF), (b, 0xFFFF)) for a, b in both)),
        ]
    )
    for number, (port, data) in enumerate(case.packets(PACKETS, seed=6)):
        expected = header_models.parsers(data, ports, both)
        assert switch.process(port, data) == [expected], f"packet {number}: {data.hex()}"


def test_reset_keeps_value_sets() -> None:
    switch = make_switch(next(case for case in CASES if case.name == "parsers"))
    update = ValueSetUpdate("P.ports", (((0x50, 0xF0),),))
    switch.apply([update])
    switch.reset()
    data = b"\x09\x00\x5f\x00" + bytes(11)
    assert switch.process(1, data) == [header_models.parsers(data, {0x5F})]
    assert switch.value_set("P.ports") == update.members
    assert switch.value_set("P.both") == ()


@pytest.mark.parametrize(
    ("update", "message"),
    [
        (ValueSetUpdate("P.none", ()), "P.none"),
        (ValueSetUpdate("P.both", (((1, 1),),)), r"keys of 2 parts, got \(\(1, 1\),\)"),
        (ValueSetUpdate("P.ports", (((1, 1),),) * 5), "room for 4 members, got 5"),
        (ValueSetUpdate("P.ports", (((0x10000, 1),),)), "a part of 16 bits, got 0x10000"),
    ],
)
def test_members_that_do_not_fit_are_refused(update: ValueSetUpdate, message: str) -> None:
    switch = make_switch(next(case for case in CASES if case.name == "parsers"))
    with pytest.raises(ConfigError, match=message):
        switch.apply([update])
    assert switch.value_set("P.ports") == ()
