"""Files of figures: glyphs in PDF, and one layout for all formats."""

import io
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from fontTools.subset import Options
from fontTools.ttLib import TTFont
from matplotlib.figure import Figure

from ringleaf.experiments.figures import fonts
from ringleaf.experiments.figures.style import matplotlib_style, save

TRUETYPE = b"\0\1\0\0"


def _fonts(pdf: bytes) -> list[TTFont]:
    """Return the TrueType fonts that a PDF embeds."""
    ends = [found.end() for found in re.finditer(rb"stream\r?\n", pdf)]
    found = []
    for end in ends:
        try:
            data = zlib.decompressobj().decompress(pdf[end:])
        except zlib.error:  # the end of a stream
            continue
        if data.startswith(TRUETYPE):
            found.append(TTFont(io.BytesIO(data)))
    return found


def test_pdf_embeds_the_glyphs_and_no_tables_for_layout(tmp_path: Path) -> None:
    usual = list(Options._drop_tables_default)
    with matplotlib_style():
        figure = Figure(figsize=(2, 1), layout="constrained")
        figure.text(0.1, 0.5, "AV 8 fi µ")
        save(figure, tmp_path / "words")
    embedded = _fonts((tmp_path / "words.pdf").read_bytes())
    glyphs = {glyph for font in embedded for glyph in font.getGlyphOrder()}
    assert {"A", "V", "eight", "mu"} <= glyphs
    assert not any(table in font for font in embedded for table in ("GSUB", "GPOS", "GDEF", "kern"))
    assert Options._drop_tables_default == usual


def test_a_figure_is_drawn_once_for_each_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    draw = Figure.draw

    def counted(figure: Figure, renderer: Any) -> None:
        drawn.append(figure)
        draw(figure, renderer)

    monkeypatch.setattr(Figure, "draw", counted)
    with matplotlib_style():
        save(Figure(figsize=(2, 1), layout="constrained"), tmp_path / "empty")
    assert len(drawn) == 3  # PNG, with the layout, PDF, SVG


def test_a_letter_that_figures_rarely_use_is_embedded_all_the_same(tmp_path: Path) -> None:
    with matplotlib_style():
        figure = Figure(figsize=(2, 1))
        figure.text(0.1, 0.5, "A \N{CYRILLIC SMALL LETTER ZHE}")
        save(figure, tmp_path / "words")
    embedded = _fonts((tmp_path / "words.pdf").read_bytes())
    glyphs = {glyph for font in embedded for glyph in font.getGlyphOrder()}
    assert {"A", "uni0436"} <= glyphs
    assert not any(table in font for font in embedded for table in ("GSUB", "GPOS", "GDEF", "kern"))


def test_ligatures_are_in_the_font_that_figures_share() -> None:
    """Matplotlib joins f and l, as in flows: to cut the font for them anew takes very long."""
    joined = {"\N{LATIN SMALL LIGATURE FI}", "\N{LATIN SMALL LIGATURE FL}"}
    assert joined | {"a", "µ", "→"} <= set(fonts.CHARACTERS)


def test_a_reduced_font_is_kept_for_the_next_run(tmp_path: Path) -> None:
    """Then fontTools is not even imported; a font that is damaged is reduced again."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from matplotlib.figure import Figure\n"
        "from ringleaf.experiments.figures.style import matplotlib_style, save\n"
        "with matplotlib_style():\n"
        "    figure = Figure(figsize=(2, 1))\n"
        "    figure.text(0.1, 0.5, 'flows')\n"
        "    save(figure, Path(sys.argv[1]))\n"
        "print('fontTools.subset' in sys.modules)\n"
    )

    def has_cut(name: str) -> str:
        return subprocess.check_output(
            [sys.executable, "-c", code, str(tmp_path / name)],
            env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
            text=True,
        ).strip()

    assert [has_cut("a"), has_cut("b")] == ["True", "False"]
    (kept,) = (tmp_path / "ringleaf" / "fonts").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    assert has_cut("c") == "True"
    files = [(tmp_path / f"{name}.pdf").read_bytes() for name in "abc"]
    assert files[1:] == files[:-1]


def test_pdf_files_hold_no_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fonts, too, have a date of modification: that of the font file that matplotlib has."""
    embedded: list[TTFont] = []
    for name in ("a", "b"):
        with matplotlib_style():
            figure = Figure(figsize=(2, 1))
            figure.text(0.1, 0.5, "A")
            save(figure, tmp_path / name)
        embedded += _fonts((tmp_path / f"{name}.pdf").read_bytes())
        monkeypatch.setattr("time.time", lambda: 2e9)
    assert len({font["head"].modified for font in embedded}) == 1
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()


@pytest.mark.parametrize("room", [100, 3000])
def test_a_figure_for_which_there_is_no_room_names_its_file(room: int, tmp_path: Path) -> None:
    """Files may have that many bytes (`ulimit -f`): matplotlib made an AttributeError of it."""
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "import matplotlib.pyplot as plt\n"
        "from ringleaf.experiments.figures.style import matplotlib_style, save\n"
        "with matplotlib_style():\n"
        "    figure, axes = plt.subplots()\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)\n"
        "    try:\n"
        "        save(figure, Path(sys.argv[2]))\n"
        "    except OSError as error:\n"
        "        sys.exit(f'{error.filename} {error.strerror}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(room), str(tmp_path / "figure")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == f"{tmp_path / 'figure.png'} File too large\n"
    assert list(tmp_path.iterdir()) == []


def test_figures_are_the_same_whatever_the_users_settings_are(tmp_path: Path) -> None:
    """A backend of another release, and a `matplotlibrc` in the folder, change no byte."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from ringleaf.experiments.figures.style import matplotlib_style, save\n"
        "with matplotlib_style():\n"
        "    import matplotlib.pyplot as plt\n"
        "    figure, axes = plt.subplots(figsize=(2, 1))\n"
        "    axes.plot([1, 2], [3, 4], label='A')\n"
        "    axes.legend()\n"
        "    save(figure, Path('figure'))\n"
    )
    own = {"backend: TkAgg", "savefig.bbox: tight", "axes.labelsize: 30", "lines.linewidth: 9"}
    files = []
    for name, lines in (("usual", set[str]()), ("own", own)):
        place = tmp_path / name
        place.mkdir()
        (place / "matplotlibrc").write_text("\n".join(sorted(lines)))
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=place,
            env=os.environ | ({"MPLBACKEND": "qt4agg"} if lines else {}),
            check=True,
        )
        files.append([(place / f"figure{suffix}").read_bytes() for suffix in (".png", ".pdf")])
    assert files[0] == files[1]


def test_settings_that_can_not_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_bytes(b"font.size: \xff")
    done = subprocess.run(
        [sys.executable, "-m", "ringleaf", "topo", "show", "torus2d,x=2,y=2", "-o", "drawn.png"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "ringleaf: matplotlib: must find settings that it can read, got " in done.stderr
    assert done.stderr.rstrip().endswith("or in that of matplotlib's settings")


def test_a_font_is_looked_for_once_while_settings_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.font_manager import FontManager, FontProperties, fontManager

    looks: list[str] = []
    usual = FontManager.findfont

    def findfont(self: FontManager, prop: Any, *rest: Any, **more: Any) -> Any:
        looks.append(str(prop))
        return usual(self, prop, *rest, **more)

    monkeypatch.setattr(FontManager, "findfont", findfont)
    with matplotlib_style():
        places = [
            fontManager._find_fonts_by_props(FontProperties(weight=weight))
            for weight in ("normal", "bold", "normal", "bold")
        ]

    assert len(looks) == 2
    assert places[0] == places[2] != places[1] == places[3]
    assert "_find_fonts_by_props" not in vars(fontManager)
