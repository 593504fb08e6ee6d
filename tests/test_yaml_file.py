"""YAML from anywhere is read within bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleaf.core.yaml_file import MOST_BYTES, parse_yaml, read_yaml
from ringleaf.errors import ConfigError

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LAUGHS, "at most 500000 values, 50 deep, got more"),
        ("[" * 60 + "]" * 60, "at most 500000 values, 50 deep, got more"),
        ("[" * 500_000, "at most 500000 values, 50 deep, got more"),
        ("a: &a [*a]", "a value can't hold itself"),
        ("b: 1\na: [{c: 1, d: 2, 'c': 3}]", "a name must be there once, got 'c' twice; leave"),
        ("!!python/object/apply:os.system ['touch owned']", "not YAML: could not determine"),
        ("a: 2001-99-99", "not YAML: month must be in"),
        (f"a: {'9' * 5000}", "a number has at most 100 digits, got 5000"),
        (f"a: [0x{'f' * 4000}]", "a number has at most 100 digits, got 4002"),
        ("a: 010", "a number has no 0 before it and no colon, got 010, which .* of base 8"),
        ("a: [-0_7]", "a number has no 0 before it and no colon, got -0_7, which .* of base 8"),
        ("a: 1:30", "a number has no 0 before it and no colon, got 1:30, which .* of base 60"),
        ("a: 1:30.5", "a number has no 0 before it and no colon, got 1:30.5, .* of base 60"),
        ("a: \xff\0", "not YAML: "),
        ("#" * (MOST_BYTES + 1), "must have at most 1048576 bytes, got more"),
    ],
)
def test_hostile_text_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=rf"spec .*spec\.yaml: {message}"):
        read_yaml(path, "spec")


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("-0", 0), ("00.5", 0.5), ("0x10", 16), ("'010'", "010"), ("'1:30'", "1:30")],
)
def test_numbers_are_what_people_take_them_for(text: str, value: object) -> None:
    assert parse_yaml(f"a: {text}".encode(), "spec") == {"a": value}


def test_aliases_that_are_few_are_written_out(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text("a: &a [1, 2]\nb: [*a, *a]\n<<: {c: 3}\n<<: {d: 4}\n")
    assert read_yaml(path, "spec") == {"a": [1, 2], "b": [[1, 2], [1, 2]], "c": 3, "d": 4}


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"spec: can't read, got '.*no.yaml': No such file"):
        read_yaml(tmp_path / "no.yaml", "spec")
    with pytest.raises(ConfigError, match=r"spec: can't read, got .*: embedded null"):
        read_yaml(Path("a\0b"), "spec")


def test_an_empty_file_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("")
    assert read_yaml(tmp_path / "spec.yaml", "spec") is None
