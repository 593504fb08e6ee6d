"""Packages that are imported without what they write into docstrings, and work as ever."""

import inspect

from fresh_process import printed_by

from ringleaf.core.undocumented import indented

BEGIN = """
import inspect
from ringleaf.core.undocumented import without_properties
usual = inspect.cleandoc
from matplotlib import artist
ways = artist.kwdoc, vars(artist.Artist)["_update_set_signature_and_docstring"]
with without_properties():
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
after = artist.kwdoc, vars(artist.Artist)["_update_set_signature_and_docstring"]
"""


def test_docstrings_keep_their_indents_meanwhile() -> None:
    usual = inspect.cleandoc
    with indented():
        assert inspect.cleandoc("a\n  b") == "a\n  b"

    assert inspect.cleandoc is usual


def test_classes_of_matplotlib_have_no_lists_of_properties_and_can_set_them() -> None:
    told = printed_by(
        BEGIN,
        "line = Line2D([0, 1], [0, 1])",
        "line.set(linewidth=3, c='red')",
        "print('linestyle' in str(inspect.signature(Line2D.set)),",
        "      line.get_linewidth(), line.get_color(), Figure(figsize=(1, 2)).get_figheight())",
    )

    assert told == "False 3.0 red 2.0"


def test_what_was_replaced_is_there_again() -> None:
    told = printed_by(
        BEGIN,
        "class Another(Line2D): pass",
        "print(ways == after, inspect.cleandoc is usual, Another([0], [0]).set(c='blue'))",
    )

    assert told == "True True [None]"
