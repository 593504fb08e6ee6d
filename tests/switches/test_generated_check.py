"""The module's check lets through what the generator makes, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from program_cases import BUILT, PROGRAMS, PSA

from ringleaf.errors import ConfigError
from ringleaf.networks.virtual.switch_set import load_program
from ringleaf.switches.generate.check import HANDLERS, MOST_LETTERS, compile_checked
from ringleaf.switches.generate.module import generate
from ringleaf.switches.json.program import load_source

PATHS = sorted([*PROGRAMS.glob("*.json"), *PSA.glob("*.json"), *BUILT.glob("*.json")])
TEXT = generate(load_source(BUILT / "forward.json")).text
LAST = " return 0\n"


def check(text: str) -> None:
    compile_checked(text, "<test>", "here")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_what_the_generator_makes_is_let_through(path: Path) -> None:
    text = load_program(path).module.text
    check(text)
    assert text.isascii()


@pytest.mark.parametrize(
    ("line", "got"),
    [
        ("open(u_0)", "a call of anything but"),
        ("__import__(u_0)", "a call of anything but"),
        ("pull(arena, row, head, **fields)", "a call of anything but"),
        ("arena.words.tofile(u_0)", "a call of anything but"),
        ("pull(arena, row, head, 'x')", "a str"),
        ("have = 1.5", "a float"),
        ("have = None", "a NoneType"),
        ("have = f'{u_0}'", "a JoinedStr"),
        ("have = np", "a name that is not known"),
        ("have = handler", "a name that is not known"),
        ("have = crc_tables", "a name that is not known"),
        ("have = __builtins__", "a name that is not known"),
        ("have = pull.__globals__", "an attribute"),
        ("arena.words = have", "an attribute"),
        ("have = row.base", "an attribute"),
        ("pull = have", "a variable of that name"),
        *((f"{name} = have", "a variable of that name") for name in ("min", "range", "np")),
        *((f"{name} = have", "a variable of that name") for name in HANDLERS),
        ("u_0 = have", "a variable of that name"),
        ("arena = have", "a variable of that name"),
        ("__class__ = have", "a variable of that name"),
        ("import os", "a Import"),
        ("from os import system", "a ImportFrom"),
        ("have = lambda: 1", "a Lambda"),
        ("have = [1]", "a List"),
        ("have = {1: 2}", "a Dict"),
        ("have = [x for x in words]", "a ListComp"),
        ("(have := 1)", "a NamedExpr"),
        ("global have", "a Global"),
        ("del have", "a Delete"),
        ("raise have", "a Raise"),
        ("assert have", "a Assert"),
        ("have = row[1:2]", "a Slice"),
        ("pull(*row)", "a Starred"),
        ("have: U = 1", "a AnnAssign"),
        ("have = row @ row", "a MatMult"),
        ("have = 1 / 2", "a Div"),
        ("have = 9 ** 9", "a Pow"),
        ("have = row is head", "a Is"),
        ("with row: pass", "a With"),
        ("for lane in row: pass", "a loop over anything but a range"),
        ("for lane in range(3): pass\n else: pass", "a loop over anything but a range"),
        ("def inner(): pass", "a FunctionDef"),
        ("class Inner: pass", "a ClassDef"),
    ],
)
def test_a_line_of_another_kind_is_refused(line: str, got: str) -> None:
    with pytest.raises(ConfigError, match=f"here: generated code never holds {got}"):
        check(TEXT.replace(LAST, f" {line}\n{LAST}", 1))


@pytest.mark.parametrize(
    ("old", "new", "got"),
    [
        ("U = np.uint64\n", "U = np.load\n", "a module that does not begin as ours do"),
        ("\nu_1 = np.uint64(0x1)\n", "\nu_1 = np.load('x')\n", "a statement outside"),
        ("\nu_1 = np.uint64(0x1)\n", "\nu_1 = np.uint64(True)\nimport os\n", "a statement outside"),
        ("\nu_1 = np.uint64(0x1)\n", "\nwindow = np.uint64(0x1)\n", "a statement outside"),
        ("crc_tables('crc32', 13)", "crc_tables('crc99', 13)", "a statement outside"),
        ("@handler\ndef egress", "print()\n@handler\ndef egress", "a statement outside"),
        ("@handler\ndef egress", "@handler\n@pull\ndef egress", "a function that is no handler"),
        ("@handler\ndef egress", "def egress", "a function that is no handler"),
        ("def egress(arena,", "def egress(arena=pull(),", "a function that is no handler"),
        ("def egress(arena,", "def egress(arena: pull(),", "a function that is no handler"),
        ("now_ps):", "now_ps, **more):", "a function that is no handler"),
        ("def egress(", "def other(", "handlers by other names"),
    ],
)
def test_a_module_of_another_form_is_refused(old: str, new: str, got: str) -> None:
    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    if "=pull()" in new:
        text = text.replace("at, packet, now_ps):", "at=0, packet=0, now_ps=0):")
    with pytest.raises(ConfigError, match=f"here: generated code never holds {got}"):
        check(text)


def test_a_module_that_python_can_not_compile_is_refused() -> None:
    deep = "(" * 3000 + "u_0" + ")" * 3000
    with pytest.raises(ConfigError, match="here: the program is nested too deeply, or too large"):
        check(TEXT.replace(LAST, f" have = {deep}\n{LAST}", 1))
    with pytest.raises(ConfigError, match=f"at most {MOST_LETTERS} letters, got "):
        check(" " * (MOST_LETTERS + 1))
