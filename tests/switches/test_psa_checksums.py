"""PSA's InternetChecksum: as the specification's pseudo code has it, word by word (RFC 1624)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from psa_json import Json, call, extern, field, listed, load, number, program_json

from ringleaf.errors import ConfigError
from ringleaf.switches.switch import Switch

NAMES = ("start", "a", "b", "c", "d", "state", "sum")
WORDS = st.sampled_from([0, 1, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF]) | st.integers(0, 0xFFFF)


def checksum(method: str, *parameters: Json) -> Json:
    return call(f"_InternetChecksum_{method}", extern("ck"), *parameters)


def h(name: str) -> Json:
    return field("h", name)


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Switch:
    """Return a switch that adds a and b to `start`, and subtracts c and d."""
    deparser = [
        checksum("set_state", h("start")),
        checksum("add", listed(h("a"), h("b"))),
        checksum("subtract", listed(h("c"), h("d"))),
        checksum("get_state", h("state")),
        checksum("get", h("sum")),
    ]
    data = program_json(
        dict.fromkeys(NAMES, 16), ingress_deparser=deparser, externs={"ck": "InternetChecksum"}
    )
    return Switch.alone(load(tmp_path_factory.mktemp("psa") / "sums.json", data), 4)


def add(total: int, word: int) -> int:
    """Return the ones' complement sum of two words."""
    total += word
    return total + 1 - 0x10000 if total >= 0x10000 else total


def packet(words: Sequence[int]) -> bytes:
    return b"".join(word.to_bytes(2, "big") for word in words)


@settings(max_examples=200, deadline=None)
@given(words=st.tuples(WORDS, WORDS, WORDS, WORDS, WORDS))
@example(words=(0, 0, 0, 0xFFFF, 0xFFFF))
@example(words=(0, 0, 0, 1, 0xFFFE))
@example(words=(0, 0, 0, 0, 0))
def test_sums_are_those_of_single_words(switch: Switch, words: tuple[int, ...]) -> None:
    start, a, b, c, d = words
    total = start
    for word in (a, b, c ^ 0xFFFF, d ^ 0xFFFF):
        total = add(total, word)

    [(port, data)] = switch.process(1, packet([*words, 0, 0]))

    assert (port, data) == (3, packet([*words, total, total ^ 0xFFFF]))


def test_the_rfc_1071_example_and_its_difference(switch: Switch) -> None:
    """RFC 1071, section 3: the words 0001 f203 f4f5 f6f7 add up to ddf2."""
    [(_, data)] = switch.process(1, packet([0x0001, 0xF203, 0xF4F5, 0xF6F7 ^ 0xFFFF, 0xFFFF, 0, 0]))
    assert data[10:] == bytes.fromhex("ddf2220d")


def test_each_pass_begins_with_zero_and_the_parser_can_compare(tmp_path: Path) -> None:
    """The parser's own state is not that of the packet before."""
    parser = [
        checksum("add", listed(h("a"), h("b"))),
        checksum("get_verify", h("same"), h("sum")),
    ]
    fields = {"a": 16, "b": 16, "sum": 16, "same": 8}
    data = program_json(fields, parser=parser, externs={"ck": "InternetChecksum"})
    switch = Switch.alone(load(tmp_path / "parser.json", data), 4)

    for said, same in ((0x0102, 0), (0xFEFC, 1), (0xFEFC, 1), (0xFEFB, 0)):
        words = packet([1, 0x102, said])
        assert switch.process(1, words + b"\x07") == [(3, words + bytes([same]))]


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        (listed(field("h", "a"), field("h", "odd")), "takes multiples of 16 bits, got 20"),
        (listed(number(5), number(6)), "only fields can be hashed or added up, got 'hexstr'"),
    ],
)
def test_what_cannot_be_added_is_refused(tmp_path: Path, parameter: Json, message: str) -> None:
    data = program_json(
        {"a": 16, "odd": 4, "rest": 4},
        ingress_deparser=[checksum("add", parameter)],
        externs={"ck": "InternetChecksum"},
    )
    with pytest.raises(ConfigError, match=message):
        load(tmp_path / "odd.json", data)
