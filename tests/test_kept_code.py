"""Code that is compiled once: the same classes and patterns, from files of a cache."""

import dataclasses
import re
import sys
import typing
from dataclasses import FrozenInstanceError, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ringleaf.core import kept_code
from ringleaf.core.kept_code import kept

PATTERN_MAKER = vars(re)["_compiler"]
BEFORE = PATTERN_MAKER.compile


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "ringleaf" / "code"


def make() -> Any:
    """Return a class that has all methods that Python writes."""

    @dataclass(frozen=True, slots=True, order=True)
    class Both:
        """A pair."""

        left: int
        right: str = "r"

    return Both


def refuse(*_: object, **__: object) -> None:
    raise AssertionError("compiled")


def check(both: Any) -> None:
    one = both(1)
    assert (one, hash(one)) == (both(1, "r"), hash((1, "r")))
    assert repr(one).endswith("Both(left=1, right='r')")
    assert [one < both(2), one > both(2), one == (1, "r")] == [True, False, False]
    with pytest.raises(FrozenInstanceError):
        one.left = 2
    with pytest.raises(TypeError, match="left"):
        both()


def test_methods_are_compiled_once_and_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    with kept("command"):
        check(make())
    monkeypatch.setattr(kept_code, "compile", refuse, raising=False)
    with kept("command"):
        again = make()

    check(again)
    assert again.__init__.__qualname__ == make().__init__.__qualname__


def make_pair() -> Any:
    """Return a class with annotations, which Python takes as texts."""

    class Pair(NamedTuple):
        left: "list[int]"
        right: "dict[str, int]"

    return Pair


def test_annotations_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with kept("command"):
        make_pair()
    monkeypatch.setattr(kept_code, "compile", refuse, raising=False)
    with kept("command"):
        again = make_pair()

    assert typing.get_type_hints(again) == {"left": list[int], "right": dict[str, int]}
    assert again(left=[1], right={}) == ([1], {})


PATTERNS = [
    (r"(?P<name>[^\W\d]\w*)(?:=(\d+))?", re.IGNORECASE, "Ab=12 é"),
    (rb"\n(?:from ([\w.]+) import|import ([\w.]+))", 0, b"\nimport x.y"),
    (r"^ [a-f\x00-\u20ac]{2,3}? $  # a comment", re.VERBOSE | re.MULTILINE, "xx\nab\n"),
]


@pytest.mark.parametrize(("text", "flags", "searched"), PATTERNS)
def test_patterns_are_compiled_once(
    text: Any, flags: int, searched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = re.compile(text, flags)
    for attempt in range(2):
        re.purge()
        with kept("command"):
            again = re.compile(text, flags)
        monkeypatch.setattr(PATTERN_MAKER._parser, "parse", refuse)
        assert again is not expected, attempt
        assert again == expected
        assert (again.flags, again.groupindex) == (expected.flags, expected.groupindex)
        matches = [pattern.search(searched) for pattern in (again, expected)]
        assert len({match and (match.span(), match.groups()) for match in matches}) == 1
        assert matches[0]


def test_wrong_patterns_are_refused_as_ever() -> None:
    with kept("command"), pytest.raises(re.error, match="unterminated"):
        re.compile("[a-")


def test_what_is_no_expression_is_refused_as_ever() -> None:
    with kept("command"), pytest.raises(SyntaxError, match="Forward reference"):
        typing.ForwardRef("int or")


def test_each_name_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with kept("command"):
        make()
    monkeypatch.setattr(kept_code, "compile", refuse, raising=False)
    with pytest.raises(AssertionError, match="compiled"), kept("other"):
        make()


def test_dataclasses_are_made_as_ever_afterwards() -> None:
    with kept("command"):
        assert "exec" in vars(dataclasses)
        assert "compile" in vars(typing)
        assert PATTERN_MAKER.compile is not BEFORE
    assert "exec" not in vars(dataclasses)
    assert "compile" not in vars(typing)
    assert PATTERN_MAKER.compile is BEFORE


@pytest.mark.parametrize("error", [SystemExit(2), SystemExit("no"), ValueError()])
def test_a_command_that_is_refused_keeps_nothing(error: BaseException, folder: Path) -> None:
    manager = kept("command")
    manager.__enter__()
    make()
    assert not manager.__exit__(type(error), error, None)

    assert not folder.exists()


@pytest.mark.parametrize("code", [0, None])
def test_a_command_that_is_done_keeps_all(code: object, folder: Path) -> None:
    manager = kept("command")
    manager.__enter__()
    make()
    ended = SystemExit(code)
    assert not manager.__exit__(SystemExit, ended, None)

    assert [path.name for path in folder.iterdir()] == ["command"]


def test_a_damaged_file_is_made_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        with kept("command"):
            check(make())
        (folder / "command").write_bytes((folder / "command").read_bytes()[:-9] + b"\xff" * 9)
    with kept("command"):
        check(make())
    monkeypatch.setattr(kept_code, "compile", refuse, raising=False)
    with kept("command"):
        check(make())


def test_another_python_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with kept("command"):
        make()
    monkeypatch.setattr(kept_code, "compile", refuse, raising=False)
    monkeypatch.setattr(sys, "version", "another")
    with pytest.raises(AssertionError, match="compiled"), kept("command"):
        make()


def test_methods_that_nobody_asks_for_are_left_out_of_a_large_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kept("command"):
        make()
    before = (folder / "command").stat().st_size
    monkeypatch.setattr(kept_code, "MOST", 1)
    with kept("command"):

        @dataclass
        class Other:
            """Another one."""

            number: int

        assert Other(1) == Other(1)

    assert (folder / "command").stat().st_size < before
