"""The parts of programs; those of our own programs are taken from the cache."""

from __future__ import annotations

import copy
import pickle
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from ringleaf.core.shipped import built_program
from ringleaf.switches.generate.marks import LineMark
from ringleaf.switches.generate.observing import ORDINARY, Variant
from ringleaf.switches.parts import ProgramParts, _read, read_parts
from ringleaf.switches.source import PSA, V1MODEL, Where


@pytest.fixture(autouse=True)
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "ringleaf" / "answers"


def refuse(*_: object) -> None:
    raise AssertionError("made again")


def plain(value: Any) -> Any:
    """Return what an object holds, also one of a class that compares by identity."""
    if type(value) in (dict, list, tuple):
        items = value.items() if type(value) is dict else value
        return [plain(item) for item in items]
    if isinstance(value, LineMark):
        return [plain(getattr(value, field.name)) for field in fields(value)]
    if hasattr(value, "__dict__") and not isinstance(value, str | Path):
        return type(value), plain(vars(value))
    return value


def content(parts: ProgramParts) -> Any:
    module = parts.module
    held = [plain(getattr(module, field.name)) for field in fields(module)]
    return parts.source, held, parts.code, parts.code.co_filename, parts.title


@pytest.mark.parametrize("name", ["forward", "hpcc", "ugal", "switchml-64"])
def test_our_own_programs_are_made_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = content(_read(built_program(name), ORDINARY))
    assert content(read_parts(built_program(name))) == expected
    for made in ("ringleaf.switches.parts._read", "ringleaf.switches.generate.check._Checker"):
        monkeypatch.setattr(made, refuse)

    assert content(read_parts(built_program(name))) == expected


def test_a_program_is_named_as_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    read_parts(built_program("forward"))
    monkeypatch.chdir(built_program("forward").parent)

    assert read_parts(Path("forward.json")).source.path == Path("forward.json")


def test_variants_are_not_the_ordinary_program() -> None:
    read_parts(built_program("forward"))
    assert read_parts(built_program("forward"), Variant(observed=True)).module.observer is not None


def test_programs_of_others_are_read_each_time(tmp_path: Path, answers: Path) -> None:
    """Theirs may change without any source of ours."""
    path = tmp_path / "forward.json"
    shutil.copy(built_program("hpcc"), path)
    hpcc = read_parts(path)
    shutil.copy(built_program("forward"), path)

    assert read_parts(path).module.text != hpcc.module.text
    assert not answers.exists()


@pytest.mark.parametrize("architecture", [PSA, V1MODEL])
def test_there_is_one_of_each_architecture(architecture: object) -> None:
    assert pickle.loads(pickle.dumps(architecture)) is architecture


def test_places_in_p4_source_can_be_copied() -> None:
    where = copy.copy(Where("a.p4", 3, 7, "x = 1;"))
    assert (where, where.line, where.column, where.fragment) == ("a.p4 line 3", 3, 7, "x = 1;")
