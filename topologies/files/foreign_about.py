"""What files of other programs say of themselves, where it has a name of ours.

Programs keep whatever they like about a graph: NetworkX's `G.graph` may have a `layout` that is
`spring`. What has nothing of our values is not ours, and is named in a note.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ringleaf.topologies.files.attributes import (
    HOSTS,
    LAYOUTS,
    OF_FILE,
    READING,
    ROUTINGS,
    nearest,
)
from ringleaf.topologies.files.foreign_names import hinted
from ringleaf.topologies.files.maps import EACH
from ringleaf.topologies.files.rows import FileRow, NetworkRows

_VALUES = {HOSTS: (EACH,), "routing": ROUTINGS, "layout": LAYOUTS}
_SIZES = re.compile(r"[\dx,;*() \[\]]+", re.ASCII)


def with_own_about(rows: NetworkRows) -> NetworkRows:
    """Return rows without what the file says of itself by names of ours and means otherwise.

    Files of our own formats are returned as they are.
    """
    if rows.strict:
        return rows
    about = rows.about.values
    others = [name for name in about if name in OF_FILE and not _is_ours(name, about[name])]
    unused = [hinted(name, OF_FILE) for name in about if name in others or _is_nearly(name)]
    if not unused:
        return rows
    kept = {name: value for name, value in about.items() if name not in others}
    note = f"not used: {', '.join(unused)} of the file"
    return replace(rows, about=FileRow(rows.about.line, kept), notes=(*rows.notes, note))


def _is_ours(name: str, value: str) -> bool:
    """Return whether a value is one of ours, or so nearly one that it is left to be refused."""
    if name in _VALUES:
        return bool(nearest(value.strip().lower(), _VALUES[name]))
    return name in READING or _SIZES.fullmatch(value) is not None


def _is_nearly(name: str) -> bool:
    return name not in OF_FILE and bool(nearest(name, OF_FILE))
