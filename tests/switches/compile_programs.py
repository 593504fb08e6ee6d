"""Compiles the test programs; run as `python tests/switches/compile_programs.py`.

What it writes is committed, without white space, so that only who changes a program needs p4c.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
PSA = Path(__file__).parent / "psa"
COMPILERS = {
    PROGRAMS: ("p4c-bm2-ss",),
    PSA: ("p4c-bm2-psa", "--target", "bmv2", "--arch", "psa"),
}
SCALAR_ERROR = re.compile(r'\["psa_\w+\.parser_error",\s*32,\s*false\]')
"""A scalar that no part of a program names; p4c 1.2.5 writes [] for it, others the whole."""


def compile_program(source: Path) -> dict[str, str]:
    """Return the text of each output file, by name."""
    with tempfile.TemporaryDirectory() as folder:
        names = f"{source.stem}.json", f"{source.stem}.p4info.txtpb"
        files = [Path(folder, name) for name in names]
        command = [
            *COMPILERS[source.parent],
            "--p4runtime-files",
            str(files[1]),
            "-o",
            str(files[0]),
            source.name,
        ]
        subprocess.run(command, check=True, cwd=source.parent)
        text = re.sub(r'"[^"]*/p4include/', '"', files[0].read_text())  # wherever that is
        text = SCALAR_ERROR.sub("[]", text)
        data = json.loads(text)
        return {
            names[0]: json.dumps(data, separators=(",", ":")) + "\n",
            names[1]: files[1].read_text(),
        }


def main() -> None:
    for folder in COMPILERS:
        for source in sorted(folder.glob("*.p4")):
            for name, text in compile_program(source).items():
                (folder / name).write_text(text)


if __name__ == "__main__":
    main()
