"""Files that come with the package: P4 programs, what p4c made of them, models, specs and pages."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

PACKAGE = Path(str(files("ringleaf")))
"""The package's folder; in a clone, the folders below it are links to those at the top."""

P4INFO_SUFFIX = ".p4info.txtpb"  # of the P4Info beside a program's BMv2 JSON, as p4c has it
P4INFO_SUFFIXES = tuple(
    f"{between}.p4info.{ending}"
    for between in ("", ".p4")
    for ending in ("txtpb", "txt", "json", "bin")
)
"""What the names of such files end in: of P4's tutorials `my.p4.p4info.txtpb`, beside `my.json`."""

P4 = PACKAGE / "p4"
P4_BUILD = P4 / "build"  # BMv2 JSON and P4Info of our own P4 programs
SPECS = PACKAGE / "experiments" / "specs"
PAGE = PACKAGE / "experiments" / "pages"  # shells, styles and scripts of HTML pages


@dataclass(frozen=True, slots=True)
class BuiltProgram:
    """A P4 program as it is built: `p4/build/{name}.json` and `p4/build/{name}.p4info.txtpb`.

    Args:
        name: The program's name.
        source: Its source, a file in `p4`.
        options: Options of the compiler: `-DLANES=64`.
    """

    name: str
    source: str
    options: tuple[str, ...] = ()


def p4info_beside(program: Path) -> Path | None:
    """Return the P4Info beside a program's BMv2 JSON; None if there is none."""
    paths = (program.with_name(program.stem + suffix) for suffix in P4INFO_SUFFIXES)
    return next((path for path in paths if path.exists()), None)


def built_programs() -> list[str]:
    """Return the names of our own P4 programs, sorted."""
    return sorted(path.stem for path in P4_BUILD.glob("*.json"))


def built_program(name: str) -> Path:
    """Return the BMv2 JSON of one of our own P4 programs."""
    return P4_BUILD / f"{name}.json"
