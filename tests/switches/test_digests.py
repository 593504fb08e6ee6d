"""What packets tell the control plane, and assertions that they violate."""

from __future__ import annotations

import pytest
from program_cases import PROGRAMS, Case, make_switch

from ringleaf.errors import ConfigError
from ringleaf.switches.engine.digests import DIGEST_MESSAGES
from ringleaf.switches.engine.updates import DELETE, INSERT, DigestMessage, DigestUpdate
from ringleaf.switches.switch import Switch

CASE = Case(PROGRAMS / "externs.json", packet=lambda _: (1, b""))
TELL, CHECK = 5, 6  # values of `op`
DIGEST = "learned_t"


@pytest.fixture
def switch() -> Switch:
    return make_switch(CASE)


def send(switch: Switch, op: int, index: int = 0, flow: int = 0, now_ps: int = 0) -> int:
    data = bytes([op]) + index.to_bytes(2, "big") + flow.to_bytes(4, "big") + bytes(6)
    return len(switch.process(3, data, now_ps))


def test_only_enabled_digests_are_kept(switch: Switch) -> None:
    send(switch, TELL)
    assert (switch.digests(), switch.take_digests()) == ([], [])
    switch.apply([DigestUpdate(INSERT, DIGEST)])
    assert switch.digests() == [DIGEST]
    send(switch, TELL, flow=0xFFFFFFFF, now_ps=5)
    send(switch, CHECK, index=20)
    send(switch, TELL, flow=1, now_ps=9)
    assert switch.take_digests() == [
        DigestMessage(DIGEST, (0xFFFFFFFF, 3, 0xFFFFFFFF << 48 | 0x123456789ABC), 5),
        DigestMessage(DIGEST, (1, 3, 1 << 48 | 0x123456789ABC), 9),
    ]
    assert switch.take_digests() == []
    switch.apply([DigestUpdate(DELETE, DIGEST)])
    send(switch, TELL)
    assert switch.take_digests() == []


def test_queue_is_bounded_and_counts_what_it_drops(switch: Switch) -> None:
    switch.apply([DigestUpdate(INSERT, DIGEST)])
    for flow in range(DIGEST_MESSAGES + 3):
        assert send(switch, TELL, flow=flow) == 1
    assert switch.digests_dropped == 3
    assert [message.values[0] for message in switch.take_digests()] == list(range(DIGEST_MESSAGES))
    send(switch, TELL)
    assert len(switch.take_digests()) == 1


def test_unknown_digest_is_refused(switch: Switch) -> None:
    with pytest.raises(
        ConfigError,
        match=r"unknown digest, got 'learned'; did you mean 'learned_t'. valid: learned_t",
    ):
        switch.apply([DigestUpdate(INSERT, "learned")])
    with pytest.raises(ConfigError, match="digest is not enabled, got a delete of 'learned_t'"):
        switch.apply([DigestUpdate(DELETE, DIGEST)])


def test_failed_assertions_drop_the_packet_and_are_counted_by_line(switch: Switch) -> None:
    assert [send(switch, CHECK, index) for index in (11, 99, 100, 1000, 10)] == [1, 1, 0, 0, 0]
    found = {label.split()[0]: count for label, count in switch.failed_assertions().items()}
    assert found == {"assert": 2, "assume": 1}
    assert all("externs.p4 line " in label for label in switch.failed_assertions())
    switch.reset()
    assert switch.failed_assertions() == {}
