"""The licences of all packages that Ringleaf may install, as they declare them, for NOTICE.

`python .ci/notice.py` writes them into NOTICE below its last heading, from the environment's
packages that constraints.txt names (`make pin`). tests/test_notice.py compares both.
"""

import re
import sys
from collections import defaultdict
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
NOTICE = ROOT / "NOTICE"
HEADING = "Packages, their declared licences, and what needs them:\n"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
ALWAYS, DEVELOPMENT = "ringleaf", "dev"


def pinned() -> list[str]:
    """Return the packages that constraints.txt names."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line.partition("==")[0] for line in lines if line and not line.startswith("#")]


def licence_of(package: Distribution) -> str:
    """Return a package's licence as it declares it: an SPDX expression, or what it has instead."""
    about = package.metadata
    if expression := about.get("License-Expression"):
        return str(expression)
    kinds = [kind for kind in about.get_all("Classifier", []) if kind.startswith("License :: ")]
    names = [kind.rpartition(" :: ")[2] for kind in kinds if kind != "License :: DFSG approved"]
    first = next(iter((about.get("License") or "").splitlines()), "")
    return " or ".join(names) or first or "none declared"


def normal(name: str) -> str:
    """Return a package's name as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needs(name: str, extra: str = "") -> set[str]:
    """Return what a package, with one of its extras, needs, and what those packages need."""
    found: set[str] = set()
    waiting = [(name, {extra, ""} if extra else {""})]
    while waiting:
        each, extras = waiting.pop()
        try:
            lines = distribution(each).requires or []
        except PackageNotFoundError:
            continue
        for needed in map(Requirement, lines):
            if _applies(needed, extras) and normal(needed.name) not in found:
                found.add(normal(needed.name))
                waiting.append((needed.name, {"", *needed.extras}))
    return found


def _applies(needed: Requirement, extras: set[str]) -> bool:
    """Return whether a requirement holds with some of a package's extras, on any Python."""
    pythons = [{"python_version": each, "python_full_version": f"{each}.0"} for each in PYTHONS]
    return needed.marker is None or any(
        needed.marker.evaluate({"extra": extra, **python}) for extra in extras for python in pythons
    )


def users() -> dict[str, list[str]]:
    """Return by package what needs it: Ringleaf itself, or its extras, or its development."""
    always = needs(ALWAYS)
    found = {name: [ALWAYS] for name in always}
    extras: dict[str, list[str]] = defaultdict(list)
    for extra in distribution(ALWAYS).metadata.get_all("Provides-Extra", []):
        for name in needs(ALWAYS, extra) - always if extra != DEVELOPMENT else ():
            extras[name].append(extra)
    return found | {name: sorted(those) for name, those in extras.items()}


def lines() -> list[str]:
    """Return NOTICE's lines: package, licence, and what needs it.

    Some packages are for other versions of Python than this one; theirs stay as they are.
    """
    known = users()
    before = {line.partition(" | ")[0]: line for line in NOTICE.read_text().splitlines()}
    found = []
    for name in pinned():
        try:
            licence = licence_of(distribution(name))
        except PackageNotFoundError:
            found += [before[name]] if name in before else []
            continue
        found.append(f"{name} | {licence} | {', '.join(known.get(normal(name), [DEVELOPMENT]))}")
    return found


def main() -> int:
    head = NOTICE.read_text().partition(HEADING)[0]
    NOTICE.write_text("".join([head, HEADING, "\n", *(f"{line}\n" for line in lines())]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
