"""Options as people meet them, and names of folders that are made of them.

The same names serve the command line (`--loss`), make (`LOSS=`) and YAML (`loss:`).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from ringleaf.experiments.spec.network import LOOKS, NetworkSpec

ASIDE = ("record", "out", "threads", *LOOKS)
"""Options that results do not depend on: where they lie, who works on them, and how they look."""

MOST_LETTERS = 120  # of a run directory's name; some file systems end at 255 bytes


@dataclass(frozen=True, slots=True)
class Option:
    """One option as people meet it."""

    flags: str  # on the command line; "": it is for files only
    variable: str  # of make
    default: str  # as typed; "" if the default is worked out
    help: str

    @property
    def is_flag(self) -> bool:
        """Whether it is typed without a value."""
        return self.default == "no"


def options_of(model: type[NetworkSpec]) -> dict[str, Option]:
    """Return a kind of experiment's options by name."""
    options = {}
    for field, name in model.names().items():
        info = model.model_fields[field]
        extra: Any = info.json_schema_extra
        default, variable = str(info.default), extra["variable"] or name.upper()
        options[name] = Option(extra["flags"], variable, default, info.description or "")
    return options


def folder_name(text: str) -> str:
    """Return a text as the name of a folder; a long one is cut, and stays apart from others."""
    name = _plain(text)
    return name if len(name) <= MOST_LETTERS and text.isascii() else with_digest(name, text)


def file_name(text: str) -> str:
    """Return a text as the name of a file or folder, which can't be a path elsewhere.

    Texts of the same length in other scripts than Latin stay apart.
    """
    name = _plain(text)
    return name if text.isascii() else with_digest(name, text)


def with_digest(name: str, text: str) -> str:
    """Return a plain name that is made different from those of other texts."""
    digest = hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()
    return f"{name[:MOST_LETTERS]}-{digest[:8]}"


def _plain(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9,=.%+_-]", "_", text)
    return name if name.strip(".") else "run"
