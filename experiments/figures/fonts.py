"""Fonts in PDF files: reduced to the glyphs that figures use, and embedded so in each.

Matplotlib reads and cuts down the whole font for each file, which was a quarter of all drawing. It
has no option for it, so the function that does it is replaced while a file is written. A release of
matplotlib whose function is another one is slower and no worse.

A reduced font is kept between runs, so that fontTools is imported only by the first one, and for
figures with rare letters.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ringleaf.core.private import cache_folder
from ringleaf.core.sealed import read_sealed, write_sealed
from ringleaf.core.stand_ins import standing_in
from ringleaf.errors import ConfigError

CHARACTERS = (
    "".join(map(chr, range(0x20, 0x7F))) + "\xb5\xd7\u2212\u2192\ufb00\ufb01\ufb02\ufb03\ufb04"
)
"""The characters of an embedded font: ASCII, micro, times, minus, arrow, and f's ligatures.

A figure with others embeds those that it has, alone.
"""

_LAYOUT_TABLES = ("GSUB", "GPOS", "GDEF", "kern")
"""Tables that say how to lay out text: of no use in a PDF, which places each glyph itself."""

Cut = Callable[[str, Collection[int]], AbstractContextManager[Any]]
"""Matplotlib's function that cuts a font file down to some of its glyphs."""


@contextmanager
def embedding() -> Iterator[None]:
    """Embed reduced fonts in the PDF files that matplotlib writes meanwhile."""
    with standing_in("fontTools", "subset"):
        from matplotlib.backends import _backend_pdf_ps as backend

    if not hasattr(backend, "SubsetResults"):  # a release before 3.11
        with _without_layout_tables():
            yield
        return
    usual = backend.get_glyphs_subset
    backend.get_glyphs_subset = partial(_subset, usual)
    try:
        yield
    finally:
        backend.get_glyphs_subset = usual


@contextmanager
def fonts_as_settled() -> Iterator[None]:
    """Have matplotlib look for each font once, as its settings stay as they are meanwhile.

    Each look reads a dozen of them, to see whether they have changed, and there are several for
    each text that is drawn.
    """
    from matplotlib.font_manager import fontManager

    name = "_find_fonts_by_props"
    if hasattr(fontManager, name):  # else, it is another release
        vars(fontManager)[name] = cache(getattr(fontManager, name))
    try:
        yield
    finally:
        vars(fontManager).pop(name, None)


@dataclass(frozen=True, slots=True)
class _FontFile:
    """A font that is written already, in place of fontTools'."""

    data: bytes

    def save(self, file: io.BytesIO, *, reorderTables: bool) -> None:  # noqa: N803
        """Write it, with its tables in the order in which they are."""
        file.write(self.data)


def _subset(cut: Cut, font: str, glyphs: Collection[int]) -> AbstractContextManager[Any]:
    """Return a copy of the reduced font; if it lacks a glyph, a font of just those asked for."""
    from matplotlib.backends._backend_pdf_ps import SubsetResults

    data, places = _reduced(cut, font)
    if places.keys() >= set(glyphs):
        return nullcontext(SubsetResults(_FontFile(data), places))
    return _cut_without_layout(cut, font, glyphs)


@contextmanager
def _cut_without_layout(cut: Cut, font: str, glyphs: Collection[int]) -> Iterator[Any]:
    with _without_layout_tables(), cut(font, glyphs) as subset:
        yield subset


@cache
def _reduced(cut: Cut, font: str) -> tuple[bytes, Mapping[int, int]]:
    """Return a font file of `CHARACTERS`, and the number there of each glyph's number."""
    path = about = None
    with suppress(OSError, ConfigError):
        about = _about(font)
        path = cache_folder() / "fonts" / blake2b(about.encode(), digest_size=8).hexdigest()
        if kept := read_sealed(path, about):
            places, _, data = kept.partition(b"\n")
            return data, dict(json.loads(places))
    data, numbers = _reduce(cut, font)
    if path and about:
        with suppress(OSError):
            write_sealed(path, json.dumps(list(numbers.items())).encode() + b"\n" + data, about)
    return data, numbers


def _about(font: str) -> str:
    """Return all that a reduced font depends on."""
    import fontTools
    import matplotlib

    whole = blake2b(Path(font).read_bytes()).hexdigest()
    tools = f"matplotlib {matplotlib.__version__} fontTools {fontTools.version}"
    return f"font {whole} {tools} {CHARACTERS!a} without {' '.join(_LAYOUT_TABLES)}"


def _reduce(cut: Cut, font: str) -> tuple[bytes, Mapping[int, int]]:
    from matplotlib.backends._backend_pdf_ps import font_as_file
    from matplotlib.font_manager import get_font

    whole = get_font(font)
    glyphs = {whole.get_char_index(ord(character)) for character in CHARACTERS}
    with _cut_without_layout(cut, font, glyphs) as subset:
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
