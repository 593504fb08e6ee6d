"""Lines of a text that has long names in it: they break behind commas, too."""

from __future__ import annotations

import re


def wrapped(text: str, letters: int) -> list[str]:
    """Return a text in lines of at most so many letters, unless one word has more.

    `leafspine,leaves=2,spines=1` may break behind each comma.
    """
    lines, gap = [""], ""
    for piece in re.findall(r"\s+|[^\s,]*,|[^\s,]+", text.strip()):
        if piece.isspace():
            gap = " "
        elif not lines[-1] or len(lines[-1] + gap + piece) <= letters:
            lines[-1] += gap + piece
            gap = ""
        else:
            lines.append(piece)
            gap = ""
    return lines
