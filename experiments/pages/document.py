"""The shell of a report: one page, with its style in it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ringleaf.core.plain_matplotlib import load_matplotlib
from ringleaf.core.shipped import PAGE
from ringleaf.experiments.figures.style import variable


def document(title: str, parts: Iterable[str]) -> str:
    """Return a page of a title, which is also its heading, and parts in HTML."""
    body = "\n".join(parts)
    style = (PAGE / "style.css").read_text(encoding="utf-8")
    if "var(--c" in body:
        style += _dark_style()
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{escape(title)}</h1>\n" + body + "\n</main>\n</body>\n</html>\n"
    )


def figure(svg: str, title: str, caption: str) -> str:
    """Return a figure with a caption below, and a label for screen readers."""
    drawing = svg.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1)
    text = ". ".join(escape(part) for part in (title, caption) if part)
    return f"<figure>{drawing}<figcaption>{text}</figcaption></figure>"


def _dark_style() -> str:
    """Return the CSS that replaces drawings' colours on a dark page."""
    load_matplotlib()
    from ringleaf.topologies.draw import dark_colors  # imports matplotlib

    colors = "".join(f"{variable(was)}:{now};" for was, now in dark_colors().items())
    return f"@media (prefers-color-scheme: dark) {{ :root {{ {colors} }} }}\n"
