"""Programs as compiled modules: where they are kept, and what they say of themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from compile_programs import COMPILERS, PROGRAMS, compile_program
from program_cases import BUILT

from ringleaf.switches.parts import file_of
from ringleaf.switches.program import Program

REPOSITORY = Path(__file__).parents[2]
SOURCES = [source for folder in COMPILERS for source in sorted(folder.glob("*.p4"))]


def test_program_says_how_much_room_a_packet_needs() -> None:
    program = Program.load(BUILT / "switchml-64.json")

    assert program.name == "switchml-64"
    assert program.head_bytes == 14 + 20 + 4 + 4 + 10 + 64 * 4
    assert program.lane_count == 64
    assert program.field_count >= 24


def test_headers_that_may_be_added_need_room() -> None:
    program = Program.load(PROGRAMS / "stateful.json")
    assert program.module.parsed_bytes == 18
    assert program.head_bytes == 128 + program.source.headers["result"].size_bytes


def test_generated_module_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "my program!.json"
    shutil.copy(BUILT / "forward.json", path)

    Program.load(path).declare()
    (first,) = (tmp_path / "cache" / "ringleaf" / "engine").glob("*/*")
    written = first.stat().st_mtime_ns
    Program.load(path).declare()

    assert first.name == "my_program_.py"
    assert first.read_text() == Program.load(path).module.text
    assert first.stat().st_mtime_ns == written
    assert file_of("x = 1\n", "my program!").parent != first.parent


def test_same_program_is_generated_alike_in_every_process() -> None:
    """Else nothing would be found in the cache of machine code."""
    command = (
        "from ringleaf.switches.program import Program; "
        "print(Program.load('p4/build/forward.json').module.text)"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", command],
            cwd=REPOSITORY,
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


@pytest.mark.p4c
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_committed_json_is_what_the_compiler_makes(source: Path) -> None:
    compiler = COMPILERS[source.parent][0]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    for name, text in compile_program(source).items():
        assert source.with_name(name).read_text() == text, (
            f"{name}: run {compile_program.__module__}.py"
        )
