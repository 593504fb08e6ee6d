"""Fonts in PDF files: reduced once to the glyphs that figures use, and embedded so in each.

Matplotlib reads and cuts down the whole font for each file, which was a quarter of all drawing. It
has no option for it, so the function that does it is replaced while a file is written. A release of
matplotlib whose function is another one is slower and no worse.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from typing import Any

CHARACTERS = "".join(map(chr, range(0x20, 0x7F))) + "\xb5\xd7\u2212\u2192"
"""The characters of an embedded font: ASCII, micro, times, minus and arrow.

A figure with others embeds those that it has, alone.
"""

_LAYOUT_TABLES = ("GSUB", "GPOS", "GDEF", "kern")
"""Tables that say how to lay out text: of no use in a PDF, which places each glyph itself."""

Cut = Callable[[str, Collection[int]], AbstractContextManager[Any]]
"""Matplotlib's function that cuts a font file down to some of its glyphs."""


@contextmanager
def embedding() -> Iterator[None]:
    """Embed reduced fonts in the PDF files that matplotlib writes meanwhile."""
    from matplotlib.backends import _backend_pdf_ps as backend

    if not hasattr(backend, "SubsetResults"):  # a release before 3.11
        with _without_layout_tables():
            yield
        return
    usual = backend.get_glyphs_subset
    backend.get_glyphs_subset = partial(_subset, usual)
    try:
        with _without_layout_tables():
            yield
    finally:
        backend.get_glyphs_subset = usual


def _subset(cut: Cut, font: str, glyphs: Collection[int]) -> AbstractContextManager[Any]:
    """Return a copy of the reduced font; if it lacks a glyph, a font of just those asked for."""
    from fontTools.ttLib import TTFont
    from matplotlib.backends._backend_pdf_ps import SubsetResults

    data, places = _reduced(cut, font)
    if places.keys() >= set(glyphs):
        return nullcontext(SubsetResults(TTFont(io.BytesIO(data), recalcTimestamp=False), places))
    return cut(font, glyphs)


@cache
def _reduced(cut: Cut, font: str) -> tuple[bytes, Mapping[int, int]]:
    """Return a font file of `CHARACTERS`, and the number there of each glyph's number."""
    from matplotlib.backends._backend_pdf_ps import font_as_file
    from matplotlib.font_manager import get_font

    whole = get_font(font)
    glyphs = {whole.get_char_index(ord(character)) for character in CHARACTERS}
    with cut(font, glyphs) as subset:
        return font_as_file(subset.font).getvalue(), subset.glyph_index_map


@contextmanager
def _without_layout_tables() -> Iterator[None]:
    from fontTools.subset import Options

    name = "_drop_tables_default"
    usual = getattr(Options, name, None)
    if usual is None:  # another release of fontTools
        yield
        return
    setattr(Options, name, [*usual, *_LAYOUT_TABLES])
    try:
        yield
    finally:
        setattr(Options, name, usual)
