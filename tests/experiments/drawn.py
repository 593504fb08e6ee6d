"""What tests look for in figures: texts on texts, and texts beyond the sheet."""

from collections.abc import Iterator
from itertools import combinations

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def collisions(figure: Figure) -> list[str]:
    """Return pairs of texts that lie on each other, and texts that are not wholly on the sheet."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = [(text.get_text(), box(text, canvas)) for text in visible(figure)]
    sheet = figure.bbox.padded(1)
    found = [
        f"{a} on {b}"
        for (a, one), (b, other) in combinations(boxes, 2)
        if one.padded(-0.5).overlaps(other.padded(-0.5))
    ]
    outside = [a for a, one in boxes if edges(Bbox.union([sheet, one])) != edges(sheet)]
    return found + [f"{a} beyond the sheet" for a in outside]


def edges(box: Bbox) -> tuple[float, ...]:
    return tuple(map(float, box.extents))


def box(text: Text, canvas: FigureCanvasAgg) -> Bbox:
    return text.get_window_extent(canvas.get_renderer())


def visible(figure: Figure) -> list[Text]:
    """Return the texts that are really drawn."""
    hidden = {id(text) for axes in figure.axes for text in undrawn(axes)}
    return [
        text
        for text in figure.findobj(Text)
        if isinstance(text, Text)
        and text.get_text().strip()
        and text.get_visible()
        and id(text) not in hidden
    ]


def undrawn(axes: Axes) -> Iterator[Text]:
    """Yield texts of an axes that is not shown, and labels of ticks beyond its limits."""
    if not axes.get_visible():
        yield from (text for text in axes.findobj(Text) if isinstance(text, Text))
        return
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        slack = 1e-9 * (high - low)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if not low - slack <= tick.get_loc() <= high + slack:
                yield from (tick.label1, tick.label2)
