"""Tests in STF against the engine: they pass, fail and are refused for what they should be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from program_cases import PROGRAMS

from ringleaf.errors import ConfigError
from ringleaf.switches.stf.compiling import compile_program
from ringleaf.switches.stf.outcome import StfOutcome, StfVerdict
from ringleaf.switches.stf.runner import StfTest, run_test

TESTS = Path(__file__).parent / "stf"


def run(tmp_path: Path, program: str, text: str) -> StfOutcome:
    stf = tmp_path / "x.stf"
    stf.write_text(text)
    return run_test(StfTest(PROGRAMS / f"{program}.json", stf))


@pytest.mark.parametrize("name", ["tables", "stateful", "flows"])
def test_our_own_tests_pass(name: str) -> None:
    outcome = run_test(StfTest(PROGRAMS / f"{name}.json", TESTS / f"{name}.stf"))

    assert (outcome.verdict, outcome.detail) == (StfVerdict.PASSED, ())


@pytest.mark.bmv2
@pytest.mark.parametrize("name", ["tables", "stateful", "flows"])
def test_our_own_tests_pass_on_bmv2(name: str) -> None:
    outcome = run_test(StfTest(PROGRAMS / f"{name}.json", TESTS / f"{name}.stf", "bmv2"))

    assert (outcome.verdict, outcome.detail) == (StfVerdict.PASSED, ()), outcome


def test_each_of_their_expectations_matters(tmp_path: Path) -> None:
    text = (TESTS / "stateful.stf").read_text()
    lines = text.splitlines()
    expected = [at for at, line in enumerate(lines) if line.startswith("expect")]

    for at in expected:
        elsewhere = lines[at].replace("expect ", "expect 4")
        changed = "\n".join([*lines[:at], elsewhere, *lines[at + 1 :]])
        assert run(tmp_path, "stateful", changed).verdict is StfVerdict.FAILED
    assert len(expected) == 5


def test_reads_are_printed_as_bmv2_prints_them() -> None:
    outcome = run_test(StfTest(PROGRAMS / "stateful.json", TESTS / "stateful.stf"))

    assert "longs[5]= 255" in outcome.printed


def test_a_wrong_packet_is_shown_beside_what_was_expected(tmp_path: Path) -> None:
    packet = "01 0000000000 0000 00" + "00" * 24
    outcome = run(tmp_path, "tables", f"packet 0 {packet}\nexpect 2 FE\n")

    assert outcome.verdict is StfVerdict.FAILED
    assert outcome.reason == "port 2: packet 1 differs at byte 0: FE expected, got FF"
    assert "line 2 expects, line 1 led to:" in outcome.detail


def test_entries_follow_priorities_whichever_came_first(tmp_path: Path) -> None:
    add = "add ternary_table {} flags:0x8* set_ternary(value:{})\n"
    packet = f"packet 0 01 00000000 0000 80 {'00' * 24}\nexpect 2 {'*' * 64} 0000"

    for order in ((1, 2), (2, 1)):
        entries = "".join(add.format(priority, priority) for priority in order)
        outcome = run(tmp_path, "tables", f"{entries}{packet}02")
        assert outcome.verdict is StfVerdict.FAILED  # no hit of exact_table: lpm is 0xaa
        outcome = run(tmp_path, "tables", f"{entries}{packet[:-2]}AA02")
        assert outcome.reason == ""


@pytest.mark.parametrize(
    ("program", "line", "message"),
    [
        ("tables", "add nowhere x:1 set_lpm(value:1)", "unknown table, got 'nowhere'"),
        ("tables", "add lpm_table x:1 set_lpm(value:1)", "unknown key, got 'x'"),
        ("tables", "add lpm_table address:1 set_map(value:1)", "unknown action, got 'set_map'"),
        ("tables", "add lpm_table address:1 set_lpm(v:1)", "unknown parameter of I.set_lpm"),
        ("tables", "add lpm_table address:1 set_lpm()", "I.set_lpm needs 'value', got ''"),
        ("tables", "add lpm_table address:1 set_lpm(value:256)", "value: must have at most 8 bit"),
        ("tables", "add ternary_table flags:0x1 NoAction()", "needs a priority, got none"),
        ("tables", "setdefault which_way left()", "default action is constant"),
        (
            "flows",  # whose mask leaves the upper digit out
            "add masked 1 middle:0x1110 NoAction()\nadd masked 1 middle:0x2110 NoAction()",
            "entry exists already",
        ),
        ("stateful", "register_write nowhere 1 1", "unknown register, got 'nowhere'"),
        ("stateful", "register_write longs 100 1", "indices 0 to 99, got 100"),
        ("stateful", "check_counter seen(3) packets > 0", "must have packets > 0, got 0"),
        ("stateful", "mc_node_associate 1 0", "unknown multicast group, got '1'"),
        ("stateful", "mc_mgrp_create 1\nmc_node_associate 1 0", "unknown multicast node, got '0'"),
        (
            "stateful",
            "mc_mgrp_create 1\nmc_mgrp_create 2\nmc_node_create 5 6\n"
            "mc_node_associate 1 0\nmc_node_associate 2 0",
            "node 0 is in multicast group 1, got 2",
        ),
    ],
)
def test_what_does_not_fit_the_program_fails_with_its_line(
    tmp_path: Path, program: str, line: str, message: str
) -> None:
    outcome = run(tmp_path, program, f"# a comment\n{line}\n")

    number = 1 + len(line.splitlines())
    assert outcome.verdict is StfVerdict.FAILED
    assert re.search(rf"x\.stf:{number}: .*{re.escape(message)}", outcome.reason)


def test_a_group_that_is_made_twice_keeps_its_nodes(tmp_path: Path) -> None:
    """As by BMv2's `McSimplePre::mc_mgrp_create`."""
    made = "mc_mgrp_create 9\nmc_node_create 7 4\nmc_node_associate 9 0\nmc_mgrp_create 9\n"
    sent = f"packet 0 06 0000 {'00' * 8} 0009 00000000 00\nexpect 4 86\n"

    assert run(tmp_path, "stateful", made + sent).verdict is StfVerdict.PASSED


def test_a_program_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text("{}")
    (tmp_path / "x.stf").write_text("wait")

    outcome = run_test(StfTest(tmp_path / "p.json", tmp_path / "x.stf"))

    assert outcome.verdict is StfVerdict.REFUSED
    assert outcome.reason.startswith("not BMv2 JSON")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#include <core.p4>\npackage Own();", "not of v1model or PSA, got core.p4"),
        ('#include "mine.p4"', "not of v1model or PSA, got pna.p4"),
        (
            "header_type eth_t {\n  fields { a : 8; }\n}",
            "not P4_16, got P4_14's 'header_type eth_t'; give BMv2 JSON of a p4c that takes "
            "--std p4-14",
        ),
        (
            "/*\nheader_type eth_t {\n*/\n#include <core.p4>",
            "not of v1model or PSA, got core.p4",
        ),
    ],
)
def test_a_program_of_another_architecture_is_skipped(
    tmp_path: Path, text: str, reason: str
) -> None:
    (tmp_path / "p.p4").write_text(text)
    (tmp_path / "mine.p4").write_text("#include <core.p4>\n#include <pna.p4>")
    (tmp_path / "x.stf").write_text("wait")

    outcome = run_test(StfTest(tmp_path / "p.p4", tmp_path / "x.stf"))

    assert (outcome.verdict, outcome.reason) == (StfVerdict.SKIPPED, reason)


@pytest.mark.parametrize("name", ["p.bmv2", "p.p4info.txtpb", "p"])
def test_what_is_not_named_p4_is_json(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text((PROGRAMS / "tables.json").read_text())
    (tmp_path / "x.stf").write_text("wait")
    assert run_test(StfTest(tmp_path / name, tmp_path / "x.stf")).verdict is StfVerdict.PASSED


def test_p4_14_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "p.p4").write_text("header_type eth_t { fields { a : 8; } }")
    with pytest.raises(ConfigError, match=r"p.p4: must be P4_16, got P4_14's 'header_type eth_t';"):
        compile_program(tmp_path / "p.p4")


def test_a_bad_line_is_the_callers_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"x\.stf:1: unknown STF statement, got 'nonsense'"):
        run(tmp_path, "tables", "nonsense")
