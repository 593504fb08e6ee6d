"""Folders that hold what is executed are this user's alone."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ringleaf.core.private import is_private_file, private_folder
from ringleaf.errors import ConfigError

ROOT = Path(__file__).parents[1]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_is_made_for_one_user(tmp_path: Path) -> None:
    folder = private_folder(tmp_path / "deep" / "cache")
    assert mode(folder) == 0o700
    assert private_folder(folder) == folder


def test_a_folder_that_others_could_read_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o755)
    (folder / "file").write_text("x")
    (folder / "file").chmod(0o644)
    private_folder(folder)
    assert mode(folder) == 0o700


@pytest.mark.parametrize("bits", [0o777, 0o775, 0o702])
def test_a_folder_that_others_could_write_is_refused(bits: int, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(bits)
    with pytest.raises(ConfigError, match="cache: can't be trusted, as others could have written"):
        private_folder(folder)


@pytest.mark.parametrize("bits", [0o666, 0o664])
def test_files_that_others_could_write_are_refused(bits: int, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    (folder / "inner").mkdir(parents=True)
    for path in (folder, folder / "inner"):
        path.chmod(0o755)
    (folder / "inner" / "pickle").write_text("x")
    (folder / "inner" / "pickle").chmod(bits)
    with pytest.raises(ConfigError, match="pickle: can't be trusted, as others could have written"):
        private_folder(folder)


def test_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(ConfigError, match="link: can't be trusted, as it is a link"):
        private_folder(tmp_path / "link")
    (tmp_path / "real" / "inner").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="inner: can't be trusted, as it is a link"):
        private_folder(tmp_path / "real")


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(ConfigError, match="cache: can't be trusted, as it is no folder"):
        private_folder(tmp_path / "cache")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder").chmod(0o755)
    os.mkfifo(tmp_path / "folder" / "pipe", 0o600)
    with pytest.raises(ConfigError, match="pipe: can't be trusted, as it is no plain file"):
        private_folder(tmp_path / "folder")


def test_somebody_else_s_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").mkdir(mode=0o700)
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    with pytest.raises(ConfigError, match=f"as it belongs to somebody else, got user {own}"):
        private_folder(tmp_path / "cache")


def test_a_folder_in_one_that_everybody_may_change_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(ConfigError, match=r"as everybody can write to .*open, got drwxrwxrwx"):
        private_folder(tmp_path / "open" / "cache")
    (tmp_path / "open").chmod(0o1777)  # as /tmp is
    private_folder(tmp_path / "open" / "cache")


def test_private_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert not is_private_file(path)
    path.write_text("x")
    path.chmod(0o600)
    assert is_private_file(path)
    path.chmod(0o620)
    assert not is_private_file(path)
    (tmp_path / "link").symlink_to(path)
    assert not is_private_file(tmp_path / "link")


def test_machine_code_that_others_could_write_is_not_loaded(tmp_path: Path) -> None:
    """It would be run: the process ends before it looks at any."""
    (tmp_path / "ringleaf").mkdir()
    (tmp_path / "ringleaf").chmod(0o777)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ringleaf.experiments.commands.cli",
            "trace",
            "acl",
            "--example",
        ],
        cwd=ROOT,
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "can't be trusted, as others could have written to it" in done.stderr
    assert "Traceback" not in done.stderr
