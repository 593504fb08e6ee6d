"""Machine code and other files that are kept between runs: only what was written is believed."""

from __future__ import annotations

import errno
import os
import random
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.soak import damage
from ringleaf.core import compiling, machine_code
from ringleaf.core.compiled import Compiled
from ringleaf.core.private import cache_folder, keep_text
from ringleaf.core.sealed import read_sealed, write_sealed
from ringleaf.errors import ConfigError
from ringleaf.switches.stf.compiling import compile_program

ROOT = Path(__file__).parents[1]

SCRIPT = """
import sys
from ringleaf.core.compiled import compiled
from ringleaf.core.native_types import int64

@compiled(int64(int64))
def triple(x):
    return 3 * x

def adder(n):
    @compiled(int64(int64))
    def add(x):
        return x + n
    return add

numbers = triple(14), adder(1)(14), adder(2)(14)
errors = sys.modules.get("numba.core.errors")
print(*numbers, errors and type(errors.termcolor()).__name__)
"""
COLD, WARM = "42 15 16 NOPColorScheme", "42 15 16 None"  # errors that nobody sees have no colours


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "ringleaf"


def call(script: Path, **variables: str) -> tuple[str, str]:
    """Return what a process that compiles one function prints, and stderr."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "0", "PYTHONPATH": str(ROOT)}
    environment.pop("NUMBA_CACHE_DIR", None)
    environment |= variables
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout.strip(), done.stderr


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a script, whose function is compiled in the cache beside it."""
    folder = tmp_path_factory.mktemp("warm")
    (folder / "script.py").write_text(SCRIPT)
    assert call(folder / "script.py", XDG_CACHE_HOME=str(folder)) == (COLD, "")
    return folder


def copy(warm: Path, home: Path) -> list[Path]:
    """Return the files of machine code in a copy of the cache, by their names."""
    shutil.copytree(warm / "ringleaf", home / "ringleaf")
    return sorted(home.rglob("*.o"))


def test_kept_code_is_loaded_and_damaged_code_is_compiled_again(warm: Path, tmp_path: Path) -> None:
    script = warm / "script.py"
    assert call(script, XDG_CACHE_HOME=str(warm)) == (WARM, "")
    for number in range(3):
        home = tmp_path / str(number)
        damage.flip(random.Random(number), copy(warm, home)[number])
        assert call(script, XDG_CACHE_HOME=str(home)) == (COLD, "")
        assert call(script, XDG_CACHE_HOME=str(home)) == (WARM, "")


def test_code_of_another_function_is_not_loaded(warm: Path, tmp_path: Path) -> None:
    """The two that add differ in nothing but a number that they have from where they were made."""
    one, other, _ = copy(warm, tmp_path)
    assert one.name.startswith("__main__-add-")
    assert other.name.startswith("__main__-add-")
    damage.swap_two(one, other)
    assert call(warm / "script.py", XDG_CACHE_HOME=str(tmp_path)) == (COLD, "")
    assert call(warm / "script.py", XDG_CACHE_HOME=str(tmp_path)) == (WARM, "")


def test_code_of_an_older_source_is_not_loaded(warm: Path, tmp_path: Path) -> None:
    copy(warm, tmp_path)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("3 * x", "4 * x"))
    assert call(script, XDG_CACHE_HOME=str(tmp_path)) == ("56 15 16 NOPColorScheme", "")


def test_where_nothing_can_be_kept_all_is_compiled(warm: Path, tmp_path: Path) -> None:
    """A link in a file's place is replaced, but a folder that is a file stays one."""
    (tmp_path / "file").write_text("")
    found = call(warm / "script.py", NUMBA_CACHE_DIR=str(tmp_path / "file"))
    assert found[0] == COLD
    assert "compiled code can't be kept: " in found[1]


def test_what_is_marked_is_compiled_whatever_the_environment_says_later(
    warm: Path, tmp_path: Path
) -> None:
    """Whether functions are compiled is decided once, when they are marked."""
    script = tmp_path / "script.py"
    later = "import os; os.environ['NUMBA_DISABLE_JIT'] = '1'\nprint("
    script.write_text(SCRIPT.replace("print(", later))
    assert call(script, XDG_CACHE_HOME=str(tmp_path)) == (COLD, "")


def of_module(name: str) -> Any:
    """Return something that is of a module, as functions are."""
    return SimpleNamespace(__module__=name)


def test_helpers_end_with_the_work_and_a_process_with_threads_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy would have the locks of threads that it has not."""
    helpers: list[subprocess.Popen[bytes]] = []

    def fork(_work: object) -> int:
        helpers.append(subprocess.Popen(["sleep", "600"]))
        return helpers[-1].pid

    monkeypatch.setattr(machine_code, "folder", lambda: tmp_path)
    monkeypatch.setattr(machine_code, "_fork", fork)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2})
    monkeypatch.setattr("threading.active_count", lambda: 1)
    with machine_code._helped([of_module("ringleaf.core")] * 5):
        assert len(helpers) == 2
    for each in helpers:
        with pytest.raises(ProcessLookupError):
            os.kill(each.pid, 0)
    monkeypatch.setattr("threading.active_count", lambda: 2)
    with machine_code._helped([of_module("ringleaf.core")] * 5):
        assert len(helpers) == 2


ROOMS = ("ina.a", "core", "hosts.b", "networks.c", "", "networks.d", "ina.b")
"""Of functions, in the order in which they are wanted; the one without is generated."""


@pytest.mark.parametrize(
    ("processes", "orders"),
    [
        (1, ["3514026"]),
        (2, ["3514026", "6204153"]),  # networks first; the others begin with aggregation
        (3, ["3514026", "1402635", "6204153"]),
    ],
)
def test_processes_begin_far_apart_and_neighbours_stay_together(
    processes: int, orders: list[str]
) -> None:
    names = [f"ringleaf.{room}" if room else "ringleaf_engine_1" for room in ROOMS]
    functions = [of_module(name) for name in names]
    made = machine_code._apart(functions, processes)
    assert ["".join(str(functions.index(each)) for each in order) for order in made] == orders


FUNCTIONS = """
import os
from pathlib import Path
from ringleaf.core import compiled, machine_code
from ringleaf.core.native_types import int64

def maker(n):
    @compiled.compiled(int64(int64))
    def add(x):
        return x + n
    return add

compile_object = machine_code._make
def note(function):
    if not machine_code._load(function):
        compile_object(function)
        with open(Path(__file__).with_name("made"), "a") as made:
            print(os.getpid(), file=made)
machine_code._make = note

made = [maker(n) for n in range(8)]
compiled.prepare()
print(*(each(0) for each in made))
"""


def test_processes_compile_each_function_once_together(tmp_path: Path) -> None:
    """Two commands that begin at the same time, with a helper on each of the other processors."""
    script = tmp_path / "script.py"
    script.write_text(FUNCTIONS)
    environment = os.environ | {"NUMBA_DISABLE_JIT": "0", "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    commands = [
        subprocess.Popen(
            [sys.executable, script], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    assert [each.communicate()[0] for each in commands] == ["0 1 2 3 4 5 6 7\n"] * 2
    assert len((tmp_path / "made").read_text().split()) == 8
    assert len(list(tmp_path.rglob("*.o"))) == 8


def test_too_many_open_files_are_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_sealed(tmp_path / "sealed", b"x", "this")

    def fail(path: Path) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", fail)
        with pytest.raises(OSError, match="Too many open files"):
            read_sealed(tmp_path / "sealed", "this")
    assert read_sealed(tmp_path / "sealed", "this") == b"x"


@given(st.binary(max_size=200), st.integers(0, 10**6))
def test_any_damage_to_a_sealed_file_is_noticed(data: bytes, seed: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        path, rng = Path(name, "sealed"), random.Random(seed)
        write_sealed(path, data, "this")
        assert read_sealed(path, "this") == data
        assert read_sealed(path, "that") is None
        assert not path.exists()
        write_sealed(path, data, "this")
        before = path.read_bytes()
        rng.choice([each for each in damage.OF_FILES if each is not damage.swap])(rng, path)
        if not path.is_file() or path.read_bytes() != before:
            assert read_sealed(path, "this") is None
        write_sealed(path, data, "this")  # whatever is in its place
        assert read_sealed(path, "this") == data


@pytest.mark.parametrize("place", ["", "engine", "engine/digest", "engine/digest/module.py"])
@pytest.mark.parametrize("kind", [damage.become_file, damage.become_link])
def test_what_is_in_the_way_is_replaced(
    place: str, kind: damage.Damage, cache: Path, tmp_path: Path
) -> None:
    path = cache / "engine" / "digest" / "module.py"
    keep_text(path, "x = 1\n")
    if not place:  # the cache itself is not ours to remove
        kind(random.Random(1), cache)
        with pytest.raises(ConfigError, match="can't be trusted"):
            cache_folder()
        return
    kind(random.Random(1), cache / place)
    keep_text(path, "x = 2\n")
    assert path.read_text() == "x = 2\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_cache_that_can_only_be_read_is_used(
    warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringleaf.core.private.private_folder", refuse)
    monkeypatch.setenv("XDG_CACHE_HOME", str(warm))
    assert cache_folder() == warm / "ringleaf"


def refuse(path: Path) -> Path:
    raise PermissionError(13, "Permission denied", str(path))


def test_a_relative_base_directory_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if it were not there: XDG Base Directory Specification 0.8, "Basics"."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for base in ("here", "./here", "~/here"):
        monkeypatch.setenv("XDG_CACHE_HOME", base)
        assert cache_folder() == tmp_path / "home" / ".cache" / "ringleaf"


@pytest.mark.parametrize("home", ["none", "/dev/null", "/proc/self"])
def test_a_user_without_a_home_has_a_temporary_cache(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / home))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = cache_folder()
    assert folder == tmp_path / f"ringleaf-{os.geteuid()}" / "cache"
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert not (tmp_path / "none").exists()


def test_no_home_at_all_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cache_folder().is_relative_to(tmp_path)


def test_no_place_at_all_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.setattr("tempfile.tempdir", "/dev/null")
    with pytest.raises(ConfigError, match="cache: must be a folder that can be written, got /dev"):
        cache_folder()


@pytest.mark.parametrize("kind", [each for each in damage.OF_FILES if each is not damage.swap])
@pytest.mark.parametrize("name", ["router.json", "router.p4info.txtpb", "digest.txt"])
def test_outputs_of_the_compiler_that_are_damaged_are_made_again(
    kind: damage.Damage, name: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, source = tmp_path / "p4c-bm2-ss", tmp_path / "router.p4"
    tool.write_text(
        "#!/bin/sh\n"
        'while [ $# -gt 1 ]; do case $1 in -o) echo json > "$2";;\n'
        '--p4runtime-files) echo info > "$2";; esac; shift; done\n'
    )
    tool.chmod(0o700)
    source.write_text("#include <v1model.p4>\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    built = compile_program(source)
    assert built.read_text() == "json\n"
    kind(random.Random(1), built.with_name(name))
    assert compile_program(source).read_text() == "json\n"
    assert built.with_name("router.p4info.txtpb").read_text() == "info\n"


def test_all_of_compiling_is_told_not_only_what_numba_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(compiling, "show", shown.append)

    def compile_object(function: Compiled) -> tuple[str, bytes]:
        assert shown == ["compiling (once), part 2 of 5: hosts' transport"]
        raise LookupError

    compiler = SimpleNamespace(compile_object=compile_object, CompileError=LookupError)
    monkeypatch.setattr(machine_code, "import_module", lambda _: compiler)
    monkeypatch.setattr(machine_code, "_load", lambda _: False)
    function = SimpleNamespace(is_settled=False, __module__="ringleaf.hosts.rc.sender")
    machine_code._make(cast("Compiled", function))
    assert shown[1:] == [""]
    assert isinstance(function.error, LookupError)
