"""Options that several instruments have.

One that takes several values is given once for each, as values may have commas, like topologies.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ringleaf.core.units import parse_size
from ringleaf.errors import ConfigError, choose

ELEMENT_BYTES = 4
FORMATS = (".png", ".pdf", ".svg")


def several(of: str, **more: Any) -> Any:
    """Return an option that is given once for each of its values."""
    return typer.Option(help=f"{of}; may be given several times; default: the usual ones.", **more)


def _drawable(path: Path | None) -> Path | None:
    if path is not None:
        choose("figure", "format", path.suffix, FORMATS)
    return path


def tensor_bytes(text: str) -> int:
    """Return the bytes of a tensor of elements of 4 bytes, of which there must be one.

    Raises:
        ConfigError: If they are none, or not whole.
    """
    size_bytes = parse_size(text)
    if size_bytes < ELEMENT_BYTES or size_bytes % ELEMENT_BYTES:
        raise ConfigError(
            f"size: must be whole elements of {ELEMENT_BYTES} bytes and at least one, got {text!r}"
        )
    return size_bytes


Topologies = Annotated[list[str] | None, several("Topology: fattree,k=4")]
Algorithms = Annotated[list[str] | None, several("Algorithm")]
Sizes = Annotated[list[str] | None, several("Bytes per rank")]
FigureFile = Annotated[
    Path | None, typer.Option(help="Figure to write: PNG, PDF or SVG.", callback=_drawable)
]
