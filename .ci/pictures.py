"""The drawn pictures of the pages: `python .ci/pictures.py` draws them from docs/pictures.yaml.

A picture is rows of boxes, and arrows between neighbours. A box whose name begins with a small
letter is a folder or file of the tree, which tests/test_documentation.py checks; another is text.
Arrows go down, or sideways. The pictures are SVG files, which GitHub and the site show as they are.
"""

import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parents[1] / "docs"
FILE = FOLDER / "pictures.yaml"

WIDTH, GAP, EDGE = 560, 18, 12
DOWN = 34
"""The height between rows, in which arrows and their labels are."""
LINE, HEAD = 15, 20
LETTER, WIDE_LETTER = 6.1, 8.0
"""The width of a letter of a caption (12 px, sans-serif, on average), and of a name (13 px)."""

STYLE = (
    "text{font-family:sans-serif;font-size:12px;fill:#333}"
    ".n{font-family:monospace;font-size:13px;font-weight:bold;fill:#1c4e80}"
    ".t{font-weight:bold;font-size:13px}"
    ".r{fill:#e8f0f8;stroke:#1c4e80}.o{fill:#f5f1e6;stroke:#8a6d1c}"
    ".a{stroke:#555;stroke-width:1.4;fill:none;marker-end:url(#h)}.l{font-size:11px;fill:#555}"
)
MARKER = (
    '<defs><marker id="h" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0,0L8,4L0,8z" fill="#555"/></marker></defs>'
)


@dataclass(frozen=True, slots=True)
class Box:
    """A box: its name, its first line, the lines below it, and its place in pixels."""

    name: str
    title: str
    lines: tuple[str, ...]
    x: float
    y: float
    width: float
    height: float

    @property
    def is_room(self) -> bool:
        """Whether the name is that of a folder or file."""
        return self.name[0].islower()

    def svg(self) -> str:
        """Return the box as SVG."""
        middle = self.x + self.width / 2
        kind, font = ("r", "n") if self.is_room else ("o", "t")
        texts = [_text(middle, self.y + HEAD, self.title, font)]
        texts += [
            _text(middle, self.y + HEAD + LINE * (n + 1) + 2, line)
            for n, line in enumerate(self.lines)
        ]
        place = f'x="{self.x:g}" y="{self.y:g}" width="{self.width:g}" height="{self.height:g}"'
        return f'<rect class="{kind}" {place} rx="5"/>' + "".join(texts)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "middle") -> str:
    of_kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{of_kind}>{escape(text)}</text>'


def words(name: str, caption: str, width: float) -> tuple[str, tuple[str, ...]]:
    """Return a box's first line and those below; a path that is too long takes two lines."""
    lines = wrap(caption, int(width / LETTER))
    folder, _, file = name.rpartition("/")
    if folder and len(name) * WIDE_LETTER > width:
        while (len(folder) + 1) * LETTER > width and "/" in folder.removeprefix("…/"):
            folder = "…/" + folder.removeprefix("…/").partition("/")[2]
        return file, (f"{folder}/", *lines)
    return name, tuple(lines)


def place(rows: list[dict[str, str | None]]) -> tuple[dict[str, Box], float]:
    """Return a picture's boxes by name, and its height."""
    boxes: dict[str, Box] = {}
    top = float(EDGE)
    for row in rows:
        width = (WIDTH - 2 * EDGE - GAP * (len(row) - 1)) / len(row)
        texts = {name: words(name, caption or "", width) for name, caption in row.items()}
        height = HEAD + LINE * max(len(lines) for _, lines in texts.values()) + 10
        for number, (name, (title, lines)) in enumerate(texts.items()):
            boxes[name] = Box(name, title, lines, EDGE + number * (width + GAP), top, width, height)
        top += height + DOWN
    return boxes, top - DOWN + EDGE


def arrow(start: Box, end: Box, label: str) -> str:
    """Return an arrow as SVG, from a box to one below it or beside it."""
    if start.y == end.y:
        y, is_right = start.y + start.height / 2, start.x < end.x
        x, to = (start.x + start.width, end.x - 1) if is_right else (start.x, end.x + end.width + 1)
        return f'<path class="a" d="M{x:g},{y:g}L{to:g},{y:g}"/>'
    left, right = max(start.x, end.x), min(start.x + start.width, end.x + end.width)
    if left < right:  # one above the other: straight down
        x = to = (left + right) / 2
    else:
        x, to = start.x + start.width / 2, end.x + end.width / 2
    y, low = start.y + start.height, end.y - 1
    said = _text((x + to) / 2 + 6, (y + low) / 2 + 4, label, "l", "start") if label else ""
    return f'<path class="a" d="M{x:g},{y:g}L{to:g},{low:g}"/>{said}'


def draw(picture: dict[str, Any]) -> str:
    """Return a picture as the text of an SVG file."""
    boxes, height = place(picture["rows"])
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
        f'width="{WIDTH}" height="{height:g}" role="img">',
        f"<title>{escape(picture['title'])}</title><style>{STYLE}</style>{MARKER}",
        f'<rect width="{WIDTH}" height="{height:g}" fill="#fff" rx="6"/>',
        *(box.svg() for box in boxes.values()),
    ]
    for each in picture.get("arrows", ()):
        way, _, label = each.partition(": ")
        start, _, end = way.partition(" -> ")
        lines.append(arrow(boxes[start], boxes[end], label))
    return "\n".join([*lines, "</svg>\n"])


def pictures() -> dict[str, dict[str, Any]]:
    """Return the pictures by name."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text())
    return found


def main() -> int:
    for name, picture in pictures().items():
        (FOLDER / f"{name}.svg").write_text(draw(picture))
    return 0


if __name__ == "__main__":
    sys.exit(main())
