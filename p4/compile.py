"""Compiles the P4 programs to `p4/build/`: BMv2 JSON, P4Info, and the digests of the sources.

Run as `python -m ringleaf.p4.compile`. What it writes is committed, so that only who changes a P4
program needs the compiler, and a test notices when the two no longer belong together.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from ringleaf.core.p4c import find_compiler
from ringleaf.core.shipped import BuiltProgram
from ringleaf.errors import BackendError, RingleafError
from ringleaf.ina.registry import SYSTEMS

FOLDER = Path(__file__).resolve().parent
BUILD = FOLDER / "build"
MANIFEST = BUILD / "sources.sha256"
INSTALL = "install the P4 project's package p4lang-p4c (https://github.com/p4lang/p4c)"


_SOME_HEADERS = ("--Wdisable=unused",)  # of those that include/headers.p4 has for all

TARGETS = (
    BuiltProgram("forward", "forward.p4"),
    BuiltProgram("tensorexpress", "tensorexpress.p4"),
    BuiltProgram("hpcc", "hpcc.p4"),
    BuiltProgram("ugal", "ugal.p4"),
    *(target for name in SYSTEMS.shipped() for target in SYSTEMS[name].builds),
    BuiltProgram("router", "router.p4", _SOME_HEADERS),
    BuiltProgram("acl", "acl.p4", _SOME_HEADERS),
)


def manifest() -> str:
    """Digests of all P4 sources, as `sha256sum` prints them in the folder `p4`."""
    sources = sorted(FOLDER.glob("*.p4")) + sorted(FOLDER.glob("include/*.p4"))
    return "".join(
        f"{hashlib.sha256(source.read_bytes()).hexdigest()}  {source.relative_to(FOLDER)}\n"
        for source in sources
    )


def compile_target(target: BuiltProgram, folder: Path) -> None:
    """Write the target's JSON and P4Info to `folder`.

    The JSON is written without white space, which is more than half of what the compiler writes.

    Raises:
        BackendError: If there is no compiler, or it finds an error.
    """
    info, program = (folder / f"{target.name}{end}" for end in (".p4info.txtpb", ".json"))
    command = [
        find_compiler("p4", INSTALL),
        *("--p4v", "16", "--Werror", *target.options),
        *("--p4runtime-files", str(info), "-o", str(program)),
        f"{FOLDER.name}/{target.source}",
    ]
    # The compiler writes the sources' paths into the JSON as it was given them.
    done = subprocess.run(command, cwd=FOLDER.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BackendError(f"p4: {target.source} does not compile, got: {done.stderr.strip()}")
    program.write_text(json.dumps(json.loads(program.read_text()), separators=(",", ":")) + "\n")


def main() -> int:
    """Compile all programs; return the exit status."""
    try:
        for target in TARGETS:
            compile_target(target, BUILD)
    except RingleafError as error:
        print(error, file=sys.stderr)  # noqa: T201 (a command's message)
        return 1
    MANIFEST.write_text(manifest())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
