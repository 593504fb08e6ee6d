"""Texts that are names of ours or of files: which of both they mean, and where files are."""

from __future__ import annotations

import os.path
import re
from collections.abc import Collection, Container


def is_file_name(name: str, ours: Container[str], endings: Collection[str] = ()) -> bool:
    """Return whether a text means a file, and not a member of a registry.

    It does if it has a `/` in it, ends as such files do, or if there is a file of that name. One of
    our own names always means our own; a file beside it is `./NAME`.

    Args:
        name: What was typed.
        ours: The names that mean members.
        endings: The ends of names that mean files whether or not they are there, with their dots.
    """
    if name in ours:
        return False
    ending = os.path.splitext(name)[1].lower()
    return "/" in name or ending in endings or os.path.isfile(name)


def in_home(text: str) -> str:
    """Return a text whose files in `~/` are in the home folder, also behind `,` and `=`.

    Shells leave it to others in `--out=~/runs`, and nobody else does it for a file of options.
    """
    return re.sub(r"(?:^|(?<=[,=])) *~(?=/)", lambda _: os.path.expanduser("~"), text)
