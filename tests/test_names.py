"""Names say what they are: public classes' are unique, and modules' are no empty words."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OURS = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"]

_EMPTY = (
    "ahead alike alone apart beside carry common doing found given held inside in_turn kept "
    "helpers later leftovers misc now older other others ours stock straight stuff things told "
    "utils why whole wide"
)
SAY_NOTHING = set(re.findall(r"\w+", _EMPTY))
"""Words that do not say what a module has."""


def test_modules_are_not_called_by_words_that_say_nothing() -> None:
    modules = [path for folder in OURS for path in folder.rglob("*.py")]
    assert len(modules) > 1000
    assert [path for path in modules if path.stem in SAY_NOTHING] == []


def test_public_classes_have_unique_names() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in (path for folder in OURS for path in sorted(folder.rglob("*.py"))):
        where = path.relative_to(ROOT).as_posix()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(where)
    assert len(places) > 1000
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
