"""Options that several instruments have.

One that takes several values is given once for each, as values may have commas, like topologies.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ringleaf.errors import choose

FORMATS = (".png", ".pdf", ".svg")


def several(of: str, **more: Any) -> Any:
    """Return an option that is given once for each of its values."""
    return typer.Option(help=f"{of}; may be given several times; default: the usual ones.", **more)


def _drawable(path: Path | None) -> Path | None:
    if path is not None:
        choose("figure", "format", path.suffix, FORMATS)
    return path


Topologies = Annotated[list[str] | None, several("Topology: fattree,k=4")]
Algorithms = Annotated[list[str] | None, several("Algorithm")]
Sizes = Annotated[list[str] | None, several("Bytes per rank")]
FigureFile = Annotated[
    Path | None, typer.Option(help="Figure to write: PNG, PDF or SVG.", callback=_drawable)
]
