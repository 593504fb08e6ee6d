"""Which ports a switch has: networks number links from 1, BMv2 its interfaces from 0."""

import pytest
from program_cases import PROGRAMS

from ringleaf.errors import ConfigError
from ringleaf.switches.engine.updates import INSERT, GroupUpdate
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch


def make_switch(first_port: int) -> Switch:
    program = Program.load(PROGRAMS / "tables.json")
    return Switch.alone(program, 4, "s", first_port=first_port)


def test_port_0_is_there_only_if_it_is_asked_for() -> None:
    group = GroupUpdate(INSERT, 1, ((0, 0),))

    make_switch(first_port=0).apply([group])
    with pytest.raises(ConfigError, match="s: multicast group 1: ports are 1 to 4, got 0"):
        make_switch(first_port=1).apply([group])


def test_a_packet_may_come_in_by_port_0() -> None:
    make_switch(first_port=0).process(0, bytes(64))
    with pytest.raises(ConfigError, match="s: ports are 1 to 4, got 0"):
        make_switch(first_port=1).process(0, bytes(64))
