"""Names come from outside: whatever they are, nothing of them is executed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program_cases import BUILT, PROGRAMS

from ringleaf.errors import ConfigError
from ringleaf.switches.generate.check import compile_checked
from ringleaf.switches.parts import file_of
from ringleaf.switches.program import Program, _execute

FORWARD = json.loads((BUILT / "forward.json").read_text())
PIECES = [
    *("\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", '"', "'", '"""', "\\", "\\\n"),
    *("{0}", "#", ";", ":", " ", "\t", "\0", "import os", "__import__('os').abort()", "0"),
]


def renamed(item: Any, old: str, new: str) -> Any:
    """Return JSON with one string replaced wherever it stands."""
    if isinstance(item, dict):
        return {renamed(key, old, new): renamed(part, old, new) for key, part in item.items()}
    if isinstance(item, list):
        return [renamed(part, old, new) for part in item]
    return new if item == old else item


def names_of(item: Any) -> set[str]:
    """Return all strings that a program's JSON gives as somebody's name."""
    if isinstance(item, dict):
        own = {item["name"]} if isinstance(item.get("name"), str) else set()
        return own.union(*(names_of(part) for part in item.values()))
    if isinstance(item, list):
        return set().union(*(names_of(part) for part in item))
    return set()


FIXED = {"ingress", "egress", "standard_metadata", "scalars"}  # which BMv2 itself knows
NAMES = sorted(names_of(FORWARD) - FIXED)


def load(data: Any, folder: Path) -> Program:
    path = folder / "hostile.json"
    path.write_text(json.dumps(data))
    return Program.load(path)


@pytest.mark.parametrize("name", NAMES)
def test_text_is_the_same_whatever_a_name_is(name: str, tmp_path: Path) -> None:
    plain = load(FORWARD, tmp_path).module.text
    owned = tmp_path / "owned"
    code = f"__import__('pathlib').Path({str(owned)!r}).touch()"
    for hostile in (f"{name}\n  {code}", f'{name}"""\n{code}\n"""', f"{name}\u2028{code}"):
        try:
            program = load(renamed(FORWARD, name, hostile), tmp_path)
        except ConfigError:
            continue  # names that can't be printed are refused
        assert program.module.text == plain
    assert not owned.exists()


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(NAMES), pieces=st.lists(st.sampled_from(PIECES), max_size=6))
def test_any_name_is_data(
    name: str, pieces: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    hostile = name + "".join(pieces)
    folder = tmp_path_factory.mktemp("hostile")
    try:
        module = load(renamed(FORWARD, name, hostile), folder).module
    except ConfigError:
        return
    assert module.text == load(FORWARD, folder).module.text
    assert module.text.isascii()


def test_names_are_kept_beside_the_text() -> None:
    module = Program.load(PROGRAMS / "l2l3.json").module
    source = Program.load(PROGRAMS / "l2l3.json").source
    tables = {table.name for line in (source.ingress, source.egress) for table in line.tables}
    for label, name in module.names.items():
        if label.startswith("t"):
            assert name in tables
            assert f"# table {label}\n" in module.text
        if label.startswith("f"):
            header, _, field = name.partition(".")
            assert header.startswith("$") or header in source.headers
            assert field


def test_names_that_join_to_the_same_are_two(tmp_path: Path) -> None:
    """A field `b.c` of a header `a` is not the field `c` of a header `a.b`."""
    data = renamed(FORWARD, "ethernet", "ip")
    for kind in data["header_types"]:
        for field in kind["fields"]:
            if kind["name"] == "ethernet_h" and field[0] == "dst":
                field[0] = "v4.dst"
    text = json.dumps(data).replace('["ip", "dst"]', '["ip", "v4.dst"]')
    text = text.replace('"ipv4"', '"ip.v4"')
    module = load(json.loads(text), tmp_path).module
    twice = [label for label, name in module.names.items() if name == "ip.v4.dst"]
    assert len(twice) == 2


def test_what_was_put_into_the_cache_is_not_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = Program.load(BUILT / "acl.json")
    text = program.module.text
    path = file_of(text, "acl")
    path.parent.mkdir(parents=True)
    path.write_text(f"open({str(tmp_path / 'owned')!r}, 'w')\n" + text)
    (path.parent / "__pycache__").mkdir()

    program.declare()

    assert not (tmp_path / "owned").exists()
    assert path.read_text() == text
    assert program.ingress is not None


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError])
def test_an_interruption_leaves_no_half_of_a_module(
    interruption: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It once was found by the next network, which then had no `ingress`."""
    text = Program.load(BUILT / "acl.json").module.text + f"\n# {interruption.__name__}\n"
    path = tmp_path / interruption.__name__ / "acl.py"
    code = compile_checked(text, str(path), "acl")

    def interrupt(*_: object) -> None:
        raise interruption

    with monkeypatch.context() as patched:
        patched.setattr("builtins.exec", interrupt)
        with pytest.raises(interruption):
            _execute(code, path)
    assert _execute(code, path).ingress is not None


def test_a_module_with_anything_else_in_it_is_not_executed(tmp_path: Path) -> None:
    text = Program.load(BUILT / "acl.json").module.text
    text += f"open({str(tmp_path / 'owned')!r}, 'w')\n"
    with pytest.raises(ConfigError, match="acl: generated code never holds a statement outside"):
        compile_checked(text, str(tmp_path / "0" / "acl.py"), "acl")
    assert not (tmp_path / "owned").exists()
