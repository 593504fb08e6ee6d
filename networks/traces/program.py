"""A trace's program, as text that `Program.load` reads."""

from __future__ import annotations

import json
from pathlib import Path

from ringleaf.networks.traces.manifest import P4INFO, PROGRAM


def write_program(folder: Path, program: str | bytes, p4info: str) -> None:
    """Write BMv2 JSON, without white space, and P4Info beside it."""
    compact = json.dumps(json.loads(program), separators=(",", ":"))
    (folder / PROGRAM).write_text(f"{compact}\n")
    (folder / P4INFO).write_text(p4info)
