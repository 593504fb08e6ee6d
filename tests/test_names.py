"""Public classes have names of their own, so that a name says what it is wherever it stands."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OURS = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"]


def test_public_classes_have_unique_names() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in (path for folder in OURS for path in sorted(folder.rglob("*.py"))):
        where = path.relative_to(ROOT).as_posix()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(where)
    assert len(places) > 1000
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
