"""JUnit XML, which CI systems show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from ringleaf.core.disk import write_bytes

# Characters that XML 1.0 does not have (section 2.2), not even as references.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a case has not passed."""

    kind: Literal["failure", "error", "skipped"]
    message: str
    type: str = ""
    text: str = ""  # what shows it, lines of it


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """A test case; it passed if it has no trouble."""

    name: str
    trouble: Trouble | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases that belong together; their class is called `class_name`."""

    name: str
    class_name: str
    cases: Sequence[JUnitCase]
    seconds: float


def write_junit(path: Path, name: str, suites: Sequence[Suite]) -> None:
    """Write a report called `name`; what XML can't have in any text becomes `?`."""
    root = ElementTree.Element("testsuites", name=_clean(name))
    for suite in suites:
        _add(root, suite)
    ElementTree.indent(root)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _add(root: ElementTree.Element, suite: Suite) -> None:
    kinds = [case.trouble.kind for case in suite.cases if case.trouble]
    element = ElementTree.SubElement(
        root,
        "testsuite",
        name=_clean(suite.name),
        tests=str(len(suite.cases)),
        failures=str(kinds.count("failure")),
        errors=str(kinds.count("error")),
        skipped=str(kinds.count("skipped")),
        time=f"{suite.seconds:.3f}",
    )
    for case in suite.cases:
        shown = ElementTree.SubElement(
            element,
            "testcase",
            classname=_clean(suite.class_name),
            name=_clean(case.name),
            time=f"{case.seconds:.3f}",
        )
        if case.trouble:
            trouble = ElementTree.SubElement(
                shown,
                case.trouble.kind,
                type=_clean(case.trouble.type),
                message=_clean(case.trouble.message),
            )
            trouble.text = _clean(case.trouble.text)


def _clean(text: str) -> str:
    return _NOT_XML.sub("?", text)
