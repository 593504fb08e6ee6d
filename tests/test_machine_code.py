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

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.soak import damage
from ringleaf.core.machine_code import Files
from ringleaf.core.private import cache_folder, keep_text
from ringleaf.core.sealed import read_sealed, write_sealed
from ringleaf.errors import ConfigError
from ringleaf.switches.stf.compiling import compile_program

ROOT = Path(__file__).parents[1]

SCRIPT = """
import numba
from numba import types
from ringleaf.core.compiled import compiled

@compiled(types.int64(types.int64))
def triple(x):
    return 3 * x

print(triple(14), sum(triple.stats.cache_hits.values()))
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "ringleaf"


def call(script: Path, **variables: str) -> tuple[str, str]:
    """Return what a process that compiles one function prints, and stderr."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "0", "PYTHONPATH": str(ROOT)} | variables
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout.strip(), done.stderr


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a script, whose function is compiled in the cache beside it."""
    folder = tmp_path_factory.mktemp("warm")
    (folder / "script.py").write_text(SCRIPT)
    assert call(folder / "script.py", XDG_CACHE_HOME=str(folder)) == ("42 0", "")
    return folder


def test_kept_code_is_loaded_and_damaged_code_is_compiled_again(warm: Path, tmp_path: Path) -> None:
    script = warm / "script.py"
    assert call(script, XDG_CACHE_HOME=str(warm)) == ("42 1", "")
    for number, suffix in enumerate((".nbi", ".nbc")):
        home = tmp_path / str(number)
        shutil.copytree(warm / "ringleaf", home / "ringleaf")
        [file] = home.rglob(f"script*{suffix}")
        damage.flip(random.Random(number), file)
        assert call(script, XDG_CACHE_HOME=str(home)) == ("42 0", "")
        assert call(script, XDG_CACHE_HOME=str(home)) == ("42 1", "")


def test_code_of_another_function_is_not_loaded(tmp_path: Path) -> None:
    one, other = Files(tmp_path, "one-1", "stamp"), Files(tmp_path, "other-1", "stamp")
    one.save("key", "of one")
    other.save("key", "of other")
    (tmp_path / "one-1.nbi").write_bytes((tmp_path / "other-1.nbi").read_bytes())
    assert one.load("key") is None
    assert other.load("key") == "of other"
    [of_other] = tmp_path.glob("other-1.*.nbc")
    one.save("key", "of one")
    [of_one] = tmp_path.glob("one-1.*.nbc")
    of_one.write_bytes(of_other.read_bytes())
    assert one.load("key") is None
    assert not of_one.exists()


def test_code_of_an_older_source_is_not_loaded(tmp_path: Path) -> None:
    Files(tmp_path, "one-1", "before").save("key", "old")
    assert Files(tmp_path, "one-1", "after").load("key") is None


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
