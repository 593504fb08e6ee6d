"""STF text: what is written is read, and what is none of STF is refused by file and line."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stf_strategies import statements, write

from ringleaf.errors import ConfigError
from ringleaf.switches.stf.parser import parse, read_stf
from ringleaf.switches.stf.statements import AddEntry, Command, ExpectPacket, Statement


@given(statements, st.randoms(use_true_random=False))
def test_what_is_written_is_read(statement: Statement, rng: random.Random) -> None:
    assert parse(write(statement, rng)) == [statement]


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_its_line(text: str) -> None:
    try:
        parse(text, "x.stf")
    except ConfigError as error:
        assert str(error).startswith("x.stf:")  # noqa: PT017 - most texts are refused


def test_lines_are_counted_through_comments_and_blank_ones() -> None:
    text = "# first\n\nwait\n  # more\nexpect 1 AB*$  # end\n"

    assert [statement.line for statement in parse(text)] == [3, 5]
    assert parse(text)[1] == ExpectPacket(5, 1, "AB*", exact=True)


def test_a_quoted_name_may_hold_anything() -> None:
    [statement] = parse('add "I.my table" "hdr.a b":1 "act-ion"()')

    assert statement == AddEntry(1, "I.my table", None, (("hdr.a b", "1"),), "act-ion", ())


def test_a_meters_rates_are_one_word_each() -> None:
    [statement] = parse("meter_set_rates C.m 2 0.000005:4 0.00002:5")

    assert statement == Command(1, "meter_set_rates", ("C.m", "2", "0.000005:4", "0.00002:5"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("adds t a()", r"x:1: unknown STF statement, got 'adds'; did you mean 'add'. valid: add, "),
        ("add t key:1", r"x:1: add: a key or an action is expected, got the end"),
        (f"add t {'9' * 5000} key:1 act()", r"x:1: add: a priority is expected, got '9999"),
        ("add t key: act()", r"x:1: add: a value is expected, got 'act'"),
        ("add t key:1 act(p:)", r"x:1: add: a value is expected, got '\)'"),
        ("add t key:1 act(p:1", r"x:1: add: '\)' is expected, got the end"),
        ("add t key:1 act() = A B", r"x:1: add: the end of the line is expected, got 'B'"),
        ("add t key:1 act() ;", r"x:1: not STF, got ';'"),
        ("packet 1 ABC", r"x:1: packet: must be hex, whole bytes, got 'ABC'"),
        ("packet 1 AB*D", r"x:1: packet: must be hex, whole bytes, got 'AB\*D'"),
        ("packet 1", r"x:1: packet: must be hex, whole bytes, got ''"),
        ("packet eth0 AB", r"x:1: packet: a port is expected, got 'eth0'"),
        ("expect 1 A$B", r"x:1: expect: must be hex with \* .*, got 'A\$B'"),
        ("check_counter c(1) packet == 1", r"x:1: check_counter: 'packets' or 'bytes' is exp"),
        ("check_counter c(1) packets = 1", r"x:1: check_counter: a comparison is expected"),
        ("mirroring_add 1", r"x:1: mirroring_add: takes 2 arguments, got 1"),
        ("mc_node_create", r"x:1: mc_node_create: takes one or more arguments, got 0"),
        ("mc_mgrp_create (1)", r"x:1: mc_mgrp_create: not an argument, got '\('"),
        ("wait 5", r"x:1: wait: the end of the line is expected, got '5'"),
        ("remove one", r"x:1: remove: 'all' is expected, got 'one'"),
    ],
)
def test_what_is_no_stf_is_refused(line: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(line, "x")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.stf: can't be read"):
        read_stf(tmp_path / "none.stf")


def test_a_file_may_begin_with_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.stf"
    path.write_bytes(b"\xef\xbb\xbfwait\n")
    assert read_stf(path) == parse("wait")
