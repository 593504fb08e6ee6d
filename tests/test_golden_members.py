"""Every member of every registry has a golden value, and two changes that its test must notice.

`tests/mutants/members.yaml` names the test, and `make mutants` tries the changes with that test
alone, so that a test without a value does not pass for one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from ringleaf.core.registry import Registry

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))

from plan import MEMBERS, Mutant, PlanError, read_members  # noqa: E402

LEAST_CHANGES = 2
FAR = 3  # imports from a member to a file that counts as its own
_DECLARED = re.compile(r"^\w+: Registry\[", re.MULTILINE)
_IMPORTED = re.compile(r"(?:from|import)\s+ringleaf\.([\w.]+)(?: import (?:\(([^)]*)\)|(.*)))?")
_NAMED = re.compile(r"\"ringleaf\.([\w.]+)[:\"]")


def sources() -> Iterator[Path]:
    """Yield our modules."""
    packages = [path for path in (ROOT / "ringleaf").iterdir() if path.is_symlink()]
    for package in [*packages, ROOT / "ringleaf"]:
        yield from sorted(package.resolve().rglob("*.py"))


def declared() -> Iterator[Registry[object]]:
    """Yield all registries that a module of ours declares."""
    for path in sources():
        if _DECLARED.search(path.read_text()):
            name = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
            module = import_module("ringleaf." + name.removeprefix("ringleaf."))
            yield from (each for each in vars(module).values() if isinstance(each, Registry))


REGISTRIES = list({id(each): each for each in declared()}.values())
FAMILIES = {each.family: set(each.shipped()) or set(each._taken()) for each in REGISTRIES}
"""Our members by family: files, or names that are taken if members are none."""

TABLE: dict[str, dict[str, list[object]]] = yaml.safe_load(MEMBERS.read_text())
CHANGES = read_members()


def test_registries_are_found() -> None:
    assert len(FAMILIES) == len(REGISTRIES), "two have one name"
    assert {"compressors", "algorithms", "schedulers", "systems", "models", "disciplines"} <= set(
        FAMILIES
    )
    assert sum(map(len, FAMILIES.values())) > 150


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_members_are_those_of_the_registries(family: str) -> None:
    """A member that is added without a golden value is named here."""
    assert set(TABLE.get(family, ())) == FAMILIES[family]


def changes_of(family: str, member: str) -> list[Mutant]:
    return [each for each in CHANGES if each.name.startswith(f"{family}, {member}: ")]


@pytest.mark.parametrize("family", sorted(TABLE))
def test_every_member_has_changes_of_its_own(family: str) -> None:
    for member in TABLE[family]:
        found = {(each.file, each.new) for each in changes_of(family, member)}
        assert len(found) >= LEAST_CHANGES, member
        own = files_of(family, member)
        strange = {file for file, _ in found if file not in own and not beside(file, own)}
        assert not strange, f"{member}: no files of its own"


@pytest.mark.parametrize("family", sorted(TABLE))
def test_golden_tests_are_there_and_compare_with_something(family: str) -> None:
    for member in TABLE[family]:
        for node in changes_of(family, member)[0].tests:
            file, _, name = node.partition("::")
            function, _, case = name.partition("[")
            tests = functions(ROOT / file)
            assert function in tests, node
            assert case.rstrip("]") in (ROOT / file).read_text(), node
            assert compares(tests[function], tests), node


def test_entries_that_are_none_are_refused(tmp_path: Path) -> None:
    path = tmp_path / MEMBERS.name
    path.write_text("algorithms:\n  ring:\n    - tests/a.py::test_ring\n    - {name: x, file: y}\n")
    with pytest.raises(PlanError, match="algorithms: ring: needs name, file, from and to, got"):
        read_members(path)


@cache
def functions(path: Path) -> dict[str, ast.FunctionDef]:
    """Return the functions of a module by name."""
    parsed = ast.parse(path.read_text())
    return {node.name: node for node in ast.walk(parsed) if isinstance(node, ast.FunctionDef)}


def compares(function: ast.FunctionDef, others: dict[str, ast.FunctionDef]) -> bool:
    """Return whether a function asserts a comparison, itself or by a helper beside it."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) and any(
            isinstance(each, ast.Compare | ast.Call) for each in ast.walk(node.test)
        ):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            helper = others.get(node.func.id)
            if helper is not None and helper is not function and compares(helper, others):
                return True
    return False


def beside(file: str, own: set[str]) -> bool:
    """Return whether a file is in the folder of a system, or the data of a member."""
    folder = Path(file).parent.as_posix()
    return f"{folder}/system.py" in own or file.endswith(".yaml")


def files_of(family: str, member: str) -> set[str]:
    """Return the member's file, and those that it imports or names, and so on, `FAR` times.

    Members that are no files have the registry's, and those that name it.
    """
    registry = next(each for each in REGISTRIES if each.family == family)
    if member not in registry.shipped():
        return users_of(registry._taken.__module__)
    found = {path_of(registry.module_of(member))}
    for _ in range(FAR):
        found |= {path for each in found for path in imports(each)}
    return found


@cache
def users_of(module: str) -> set[str]:
    """Return the files that name a module, and its own."""
    users = {path.relative_to(ROOT).as_posix() for path in sources() if module in path.read_text()}
    return users | {path_of(module)}


def path_of(module: str) -> str:
    """Return the file of a module of ours; "" if there is none."""
    plain = module.removeprefix("ringleaf.").replace(".", "/")
    for path in (f"{plain}.py", f"ringleaf/{plain}.py", f"{plain}/__init__.py"):
        if (ROOT / path).is_file():
            return path
    return ""


@cache
def imports(file: str) -> frozenset[str]:
    """Return the files of ours that a file imports, or whose modules it names."""
    text = (ROOT / file).read_text()
    names = set(_NAMED.findall(text))
    for module, lines, line in _IMPORTED.findall(text):
        parts = [part.split(" as ")[0].strip() for part in (lines or line).split(",")]
        names |= {module, *(f"{module}.{part}" for part in parts)}
    return frozenset(filter(None, map(path_of, names)))
