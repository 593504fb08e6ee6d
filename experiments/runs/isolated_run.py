"""A run in a folder of its own, whose files come back as bytes.

So whoever does it needs no disk in common with whoever wants it, and a run that was not finished
has left nothing.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ringleaf.errors import BackendError
from ringleaf.experiments.runs.request import resolve


@dataclass(frozen=True, slots=True)
class Leavings:
    """The output of a run: its lines for the terminal, and its files by name."""

    lines: list[str]
    files: dict[str, bytes]

    def check(self, folder: Path) -> None:
        """Check that all files are to be in a folder, whoever has named them.

        Raises:
            BackendError: If one is elsewhere, by its name or by a link.
        """
        for name in self.files:
            if not _is_below(folder, name):
                raise BackendError(
                    f"worker: its files must be in {str(folder)!r}, got {name!r}; nothing of this "
                    "run is written"
                )

    def write(self, folder: Path) -> None:
        """Write the files to a folder.

        Raises:
            BackendError: If one of them is to be elsewhere; then none is written.
        """
        self.check(folder)
        for name, data in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def _is_below(folder: Path, name: str) -> bool:
    """Return whether a name means a file in a folder, with no link on the way or at its place."""
    parts = PurePosixPath(name).parts
    if not name.isprintable() or not parts or parts[0] == "/" or ".." in parts:
        return False
    return not any(
        folder.joinpath(*parts[:count]).is_symlink() for count in range(1, len(parts) + 1)
    )


def run_apart(options: Mapping[str, Any], above: Path | None = None) -> Leavings:
    """Perform a run in a new folder, below `above` if there is one, and return its output.

    Raises:
        RingleafError: If an option, the topology or the network does not allow it.
    """
    from ringleaf.experiments.runs import session  # imports all that a worker needs

    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="ringleaf-", dir=above) as name:
        folder = Path(name)
        with redirect_stderr(io.StringIO()):  # a terminal has room for one line of progress
            request = resolve({**_alone(options), "out": name})
            session.run(request, emit=lines.append, drawn=False)
        files = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
    return Leavings(lines, files)


def _alone(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's options for a worker beside others, which has a core for itself."""
    return {"threads": "1", **options}
