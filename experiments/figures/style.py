"""The common style of figures, and their files: PNG (screens), PDF (papers), SVG (reports)."""

from __future__ import annotations

import io
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ringleaf.core.disk import write_bytes
from ringleaf.core.plain_matplotlib import load_matplotlib, plain_settings
from ringleaf.core.undocumented import without_properties
from ringleaf.experiments.figures.fonts import embedding, fonts_as_settled
from ringleaf.experiments.records.folder import claim_figure

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

INK = "#1f2328"
"""The colour of text and axes; in SVG it becomes the text colour of the page."""

_STYLE = {
    "font.size": 10,
    "font.family": "DejaVu Sans",  # comes with matplotlib, so it is the same everywhere
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#80808040",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "ringleaf",
    "pdf.fonttype": 42,
    "path.simplify": True,
    "figure.autolayout": False,
    "figure.constrained_layout.use": False,
}
SUFFIXES = (".png", ".pdf")
"""Of the files of a figure."""

DOTS_PER_INCH = 150
"""The resolution of PNG files."""

_SOLID = "mpl_toolkits.mplot3d"

_COLOR = re.compile(r"#[0-9a-f]{6}\b")


@contextmanager
def matplotlib_style() -> Iterator[None]:
    """Set the style of all our figures, whatever the user's settings are."""
    load_matplotlib().use("agg")
    with plain_settings(_STYLE), fonts_as_settled():
        yield


def subplots(
    rows: int = 1, columns: int = 1, *, figsize: tuple[float, float], **grid: Any
) -> tuple[Figure, Any]:
    """Return a new figure, which lays itself out, and its axes, as pyplot's `subplots` does.

    pyplot is for windows: it takes a while to load, and keeps each figure until it is closed.

    Args:
        rows: The rows of axes.
        columns: The columns.
        figsize: The figure's width and height in inches.
        grid: What else matplotlib's `Figure.subplots` takes.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=figsize, layout="constrained")
    return figure, figure.subplots(rows, columns, **grid)


def write_figure(figure: Figure, stem: Path) -> None:
    """Write a figure as PNG and PDF; it has the layout of the first for all that is drawn of it.

    Raises:
        FileExistsError: If its run directory has such a file that is not ours.
        OSError: If a file can't be written.
    """
    for suffix in SUFFIXES:
        claim_figure(stem.with_suffix(suffix))
    _write_png(figure, stem.with_suffix(".png"))
    figure.set_layout_engine(None)  # with an engine, each format draws twice
    data = io.BytesIO()  # matplotlib makes other errors of a disk's while it writes to a file
    with embedding():
        figure.savefig(data, format="pdf", metadata={"CreationDate": None, "Creator": "Ringleaf"})
    write_bytes(stem.with_suffix(".pdf"), data.getvalue())


def _write_png(figure: Figure, path: Path) -> None:
    """Write pixels without transparency, which is faster and smaller than matplotlib's own PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    usual = figure.dpi
    figure.dpi = DOTS_PER_INCH
    try:
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    finally:
        figure.dpi = usual
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())[:, :, :3])
    data = io.BytesIO()
    image.save(data, format="png", dpi=(DOTS_PER_INCH, DOTS_PER_INCH))
    write_bytes(path, data.getvalue())


def save(figure: Figure, stem: Path) -> str:
    """Write PNG and PDF; return SVG whose ink has the colour of the surrounding text."""
    write_figure(figure, stem)
    return themed(to_svg(figure), {INK: "currentColor"})


def mark_logarithmic(axis: Axis) -> None:
    """Label a logarithmic axis by plain numbers: the more of each decade, the shorter it is.

    The lines are drawn already, so that the axis has its ends.
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = axis.get_view_interval()  # of all panels that share the axis
    steps: tuple[float, ...] = (1,)
    if high < 1000 * low:
        steps = (1, 1.5, 2, 3, 4, 5, 7) if high < 10 * low else (1, 2, 5)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def warm_up() -> None:
    """Load fonts, and the parts of matplotlib that it loads only when it draws.

    This is for a process that draws our figures and nothing else.
    """
    with _flat():
        load_matplotlib()
        with without_properties():
            from matplotlib.figure import Figure

    with matplotlib_style(), embedding():
        figure = Figure(figsize=(1, 1))
        for weight in ("normal", "bold"):
            figure.text(0, 0, "a", weight=weight)
        for form in ("pdf", "png", "svg"):
            figure.savefig(io.BytesIO(), format=form)


@contextmanager
def _flat() -> Iterator[None]:
    """Have matplotlib imported without its axes of three dimensions, of which it warns."""
    if _SOLID in sys.modules:
        yield
        return
    sys.modules[_SOLID] = None  # type: ignore[assignment]  # so that its import fails
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        del sys.modules[_SOLID]


def to_svg(figure: Figure, *, words: bool = False) -> str:
    """Return the SVG element; with `words`, letters stay text, which is shorter."""
    import matplotlib as mpl

    text = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none" if words else "path"}):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return re.sub(r"^.*?(?=<svg)", "", text.getvalue(), count=1, flags=re.DOTALL)


def themed(svg: str, colors: Mapping[str, str]) -> str:
    """Replace colours of an SVG; a colour replaced by another becomes a variable of the page."""

    def replaced(match: re.Match[str]) -> str:
        color = match[0]
        other = colors.get(color, color)
        return (
            f"var({variable(color)},{color})"
            if other.startswith("#") and color in colors
            else other
        )

    return _COLOR.sub(replaced, svg)


def variable(color: str) -> str:
    """Return the name of the CSS variable that replaces a colour on the page."""
    return f"--c{color[1:]}"
