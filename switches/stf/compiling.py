"""Compiles P4 programs with p4c, each once: outputs are cached by a digest of all inputs."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ringleaf.compiled import cache_folder
from ringleaf.errors import BackendError, ConfigError

COMPILER = "p4c-bm2-ss"
TIMEOUT_S = 300
V1MODEL = "v1model.p4"

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def compile_program(source: Path) -> Path:
    """Return the BMv2 JSON of a P4 program; P4Info lies beside it.

    Raises:
        ConfigError: If p4c does not accept the program.
        BackendError: If there is no p4c here.
    """
    compiler = shutil.which(COMPILER)
    if compiler is None:
        raise BackendError(f"{source}: can't be compiled, got no {COMPILER}; give its BMv2 JSON")
    folder = cache_folder() / "p4c" / _digest(source, Path(compiler))
    built = folder / f"{source.stem}.json"
    complaint = folder / "error.txt"
    if not built.exists() and not complaint.exists():
        _compile(compiler, source, folder)
    if complaint.exists():
        raise ConfigError(f"{source}: p4c: {_first_error(complaint.read_text())}")
    return built


def _compile(compiler: str, source: Path, folder: Path) -> None:
    """Create a folder with the JSON and P4Info, or with p4c's error messages, in one move."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        made = Path(temporary, "made")
        made.mkdir()
        files = made / f"{source.stem}.json", made / f"{source.stem}.p4info.txtpb"
        command = [compiler, "--arch", "v1model", "-o", str(files[0])]
        command += ["--p4runtime-files", str(files[1]), str(source)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
            )
        except subprocess.TimeoutExpired as exc:
            raise ConfigError(f"{source}: p4c: no end after {TIMEOUT_S} s") from exc
        if done.returncode or not files[0].exists():
            (made / "error.txt").write_text(done.stderr or f"status {done.returncode}")
        if not folder.exists():
            made.rename(folder)


def architecture(source: Path) -> str:
    """Return the file of the architecture that a P4 program is written for, as it includes it.

    It is `v1model.p4`, another such as `psa.p4`, or `core.p4` if the program declares its own.
    """
    own = [source, *_included(source, set())]
    texts = [path.read_text(errors="replace") for path in own]
    names = [Path(name).name for text in texts for _, name in _INCLUDE.findall(text)]
    ours = {"core.p4", *(path.name for path in own)}
    others = [name for name in names if name not in ours]
    return V1MODEL if V1MODEL in names else (others or ["core.p4"])[0]


def _digest(source: Path, compiler: Path) -> str:
    """Return a digest of a program, the files that it includes, and the compiler."""
    at = compiler.resolve()
    digest = hashlib.sha256(f"{at} {at.stat().st_size} {at.stat().st_mtime_ns}".encode())
    for path in dict.fromkeys([source, *_included(source, set())]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:24]


def _included(path: Path, seen: set[Path]) -> Iterator[Path]:
    """Yield the files that a program includes; p4c's own are left out: its date covers them."""
    folders = [path.parent, *map(Path, os.environ.get("P4C_16_INCLUDE_PATH", "").split(":"))]
    for _, name in _INCLUDE.findall(path.read_text(errors="replace")):
        found = next((f / name for f in folders if (f / name).is_file()), None)
        if found is not None and found.resolve() not in seen:
            seen.add(found.resolve())
            yield found
            yield from _included(found, seen)


def _first_error(text: str) -> str:
    """Return p4c's first error on one line, without the folder of the file."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
    return re.sub(r"^\S*/", "", wrong)
