"""Compiles P4 programs with p4c, each once: outputs are cached by a digest of all inputs."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from ringleaf.core.p4c import COMPILER, PSA_COMPILER, find_compiler
from ringleaf.core.private import cache_folder, make_room, remove
from ringleaf.errors import ConfigError
from ringleaf.switches.source import PSA, V1MODEL

TIMEOUT_S = 300
_PSA_OPTIONS = ("--target", "bmv2", "--arch", "psa")

_DIGEST = "digest.txt"
"""The file beside p4c's outputs that tells whether they are still what it wrote."""

_FORM = "JSON alone where P4Info can't be"
"""What is in the cache, so that errors of another way to call p4c don't count."""

_P4_14 = re.compile(r"^[ \t]*header_type\s+\w+(?=\s*\{)", re.MULTILINE)
"""A declaration that all programs of P4_14 have, and P4_16 at most in comments."""

_P4_16 = re.compile(
    r"^[ \t]*(?:#[ \t]*include[ \t]*<core\.p4>|(?:control|parser)\s+\w+\s*\()", re.MULTILINE
)

_ERROR = re.compile(r"(?!----|.*\[--Wwarn).*(?:\berror:|:\s*syntax error)")
_CAUSE = "---- Actual error:"

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def compile_program(source: Path, options: Sequence[str] = ()) -> Path:
    """Return the BMv2 JSON of a P4 program; P4Info lies beside it, if P4Runtime can tell of it.

    Args:
        source: The program.
        options: Options for p4c: `-DLANES=64`, `-I FOLDER`.

    Raises:
        ConfigError: If p4c does not accept the program.
        BackendError: If there is no p4c here.
    """
    if old := language_of_old(source):
        raise ConfigError(
            f"{source}: must be P4_16, got {old}; compile it by a p4c that takes --std p4-14, and "
            "give its BMv2 JSON"
        )
    psa = architecture(source) == PSA.include
    name, *own = (PSA_COMPILER, *_PSA_OPTIONS) if psa else (COMPILER, "--arch", "v1model")
    compiler = find_compiler(str(source), "give its BMv2 JSON", name)
    options = (*own, *options)
    folder = cache_folder() / "p4c" / _digest(source, Path(compiler), options)
    built = folder / f"{source.stem}.json"
    complaint = folder / "error.txt"
    if not _is_whole(folder):
        _compile(compiler, source, folder, options)
    if complaint.exists():
        raise ConfigError(f"{source}: p4c: {first_error(complaint.read_text())}")
    return built


def _compile(compiler: str, source: Path, folder: Path, options: Sequence[str]) -> None:
    """Create a folder with the JSON and P4Info, or with p4c's error messages, in one move."""
    make_room(folder)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        output = Path(temporary, "made")
        output.mkdir()
        files = output / f"{source.stem}.json", output / f"{source.stem}.p4info.txtpb"
        command = [compiler, *options, "-o", str(files[0])]
        done = _run([*command, "--p4runtime-files", str(files[1])], source)
        if done.returncode:  # BMv2 runs tables without names, for which P4Info has no words
            files[1].unlink(missing_ok=True)
            done = _run(command, source)
        if done.returncode or not files[0].exists():
            (output / "error.txt").write_text(done.stderr or f"status {done.returncode}")
        (output / _DIGEST).write_text(_digest_of(output))
        if not _is_whole(folder):
            remove(folder)
            with suppress(OSError):  # another process was faster
                output.rename(folder)


def _run(command: Sequence[str], source: Path) -> subprocess.CompletedProcess[str]:
    """Return how p4c ended, with its messages."""
    command = [*command, str(source)]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired as exc:
        raise ConfigError(f"{source}: p4c: no end after {TIMEOUT_S} s") from exc


def _is_whole(folder: Path) -> bool:
    """Return whether a folder holds what p4c has written."""
    try:
        if not all(path.is_file() for path in (folder / _DIGEST, *folder.iterdir())):
            return False  # the reader of a pipe waits for ever
        return (folder / _DIGEST).read_text() == _digest_of(folder)
    except (OSError, ValueError):
        return False


def _digest_of(folder: Path) -> str:
    """Return a digest of all files in a folder, but for that of the digest itself."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.name != _DIGEST:
            digest.update(f"{path.name} {path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def architecture(source: Path) -> str:
    """Return the file of the architecture that a P4 program is written for, as it includes it.

    It is `v1model.p4`, another such as `psa.p4`, or `core.p4` if the program declares its own.
    """
    own = [source, *_included(source, set(), ())]
    texts = [path.read_text(errors="replace") for path in own]
    names = [Path(name).name for text in texts for _, name in _INCLUDE.findall(text)]
    ours = {"core.p4", *(path.name for path in own)}
    others = [name for name in names if name not in ours]
    return V1MODEL.include if V1MODEL.include in names else (others or ["core.p4"])[0]


def language_of_old(source: Path) -> str:
    """Return how a program shows that it is P4_14, which today's p4c does not take; else ""."""
    files = (source, *_included(source, set(), ()))
    text = "\n".join(path.read_text(errors="replace") for path in files)
    declared = _P4_14.search(text)
    if declared is None or _P4_16.search(text):
        return ""
    return f"P4_14's {' '.join(declared[0].split())!r:.60}"


def _digest(source: Path, compiler: Path, options: Sequence[str]) -> str:
    """Return a digest of a program, the files that it includes, the compiler and its options."""
    at = compiler.resolve()
    facts = [_FORM, str(at), str(at.stat().st_size), str(at.stat().st_mtime_ns), *options]
    digest = hashlib.sha256(" ".join(facts).encode())
    folders = [Path(each) for flag, each in pairwise(options) if flag == "-I"]
    for path in dict.fromkeys([source, *_included(source, set(), folders)]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:24]


def _included(path: Path, seen: set[Path], others: Sequence[Path]) -> Iterator[Path]:
    """Yield the files that a program includes; p4c's own are left out: its date covers them."""
    named = os.environ.get("P4C_16_INCLUDE_PATH", "").split(":")
    folders = [path.parent, *others, *map(Path, named)]
    for _, name in _INCLUDE.findall(path.read_text(errors="replace")):
        file = next((f / name for f in folders if (f / name).is_file()), None)
        if file is not None and file.resolve() not in seen:
            seen.add(file.resolve())
            yield file
            yield from _included(file, seen, others)


def first_error(text: str) -> str:
    """Return p4c's first error on one line, without the folder of the file.

    If what p4c calls the error is what follows from one, it is that one: of arguments that a
    package does not take p4c names the package's declaration first.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    errors = [at for at, line in enumerate(lines) if _ERROR.match(line)] or [0]
    first = lines[errors[0] : errors[1] if len(errors) > 1 else None]
    wrong = first[first.index(_CAUSE) + 1] if _CAUSE in first[:-1] else first[0]
    return re.sub(r"^\S*/", "", wrong)
