"""Expectations of a scheduler depend on it: they fail where its neighbour is in its place."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from ringleaf.hosts.schedulers.common.registry import SCHEDULERS

NEIGHBOURS = {"fifo": "layers"}
"""What is put in a scheduler's place; all others have `fifo`."""

HERE = Path(__file__).parent
FILES = (*sorted(HERE.glob("test_*.py")), HERE.parent / "test_flow_schedulers.py")


@cache
def _modules() -> list[ModuleType]:
    """Load the files with tests, each by itself, as they are in two folders."""
    found = []
    for path in FILES:
        spec = spec_from_file_location(f"swapped_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        if path != Path(__file__):
            found.append(module_from_spec(spec))
            spec.loader.exec_module(found[-1])
    return found


def _called(module: ModuleType, name: str) -> list[str]:
    """Return what a file calls a scheduler: by its name, or as a constant."""
    return [f'"{name}"', *(key for key, each in vars(module).items() if each is SCHEDULERS[name])]


def _tests_of(name: str) -> Iterator[Callable[[], None]]:
    """Yield the tests that call a scheduler, and need no fixtures or values."""
    for module in _modules():
        called = _called(module, name)
        for test, function in vars(module).items():
            if test.startswith("test_") and not inspect.signature(function).parameters:
                source = inspect.getsource(function)
                if any(each in source for each in called):
                    yield function


def _fails(test: Callable[[], None]) -> bool:
    try:
        test()
    except (
        AssertionError,
        AttributeError,
        IndexError,
        KeyError,
    ):  # another scheduler may lack a method as well as decide otherwise
        return True
    return False


@pytest.mark.parametrize("name", SCHEDULERS.shipped())
def test_a_schedulers_expectations_fail_with_another_in_its_place(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = list(_tests_of(name))
    assert tests, f"{name} has no expectation worked out by hand"
    assert not any(map(_fails, tests))

    other = SCHEDULERS[NEIGHBOURS.get(name, "fifo")]
    for module in _modules():
        for key in _called(module, name)[1:]:
            monkeypatch.setattr(module, key, other)
    monkeypatch.setitem(SCHEDULERS.added, name, other)

    assert any(map(_fails, tests))
