"""A wheel holds all that runs need, and leaves a user's own folders alone.

It is installed into an environment of its own, which finds what Ringleaf depends on in this one,
and is used from a folder with packages that are called as some of ours.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MADE = ("runs", "build", "dist", "ringleaf.egg-info")  # at the top, by other commands


def run(*command: str | Path, at: Path) -> str:
    done = subprocess.run(
        list(map(str, command)),
        cwd=at,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def not_sources(folder: str, names: list[str]) -> set[str]:
    """Return the entries of a folder that a clone would not have."""
    made = MADE if Path(folder) == ROOT else ("__pycache__",)
    return {name for name in names if name.startswith(".") or name in made}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT, folder / "clone", symlinks=True, ignore=not_sources)
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    run(*pip, "--wheel-dir", folder, folder / "clone", at=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def commands(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an environment's commands, in which only the wheel is installed."""
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", folder, at=folder)
    scheme = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", vars=scheme))
    needed = [each for each in sys.path if each.endswith("site-packages")]
    (packages / "needed.pth").write_text("\n".join(needed))
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install")
    run(*pip, "--quiet", "--no-deps", "--no-index", wheel, at=folder)
    return folder / "bin"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A user's folder, with packages that ours must not be taken for."""
    for name in ("hosts", "networks", "experiments"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('this is the user\\'s')\n")
    return tmp_path


def test_the_wheel_has_one_package(commands: Path, elsewhere: Path) -> None:
    code = (
        "import ringleaf, importlib.util as u; print(ringleaf.__file__, u.find_spec('topologies'))"
    )
    place, other = run(commands / "python", "-c", code, at=elsewhere).rsplit(maxsplit=1)

    assert Path(place).is_relative_to(commands.parent)
    assert other == "None"


def test_the_wheel_has_all_data_of_our_packages(wheel: Path) -> None:
    packages = [link for link in (ROOT / "ringleaf").iterdir() if link.is_symlink()]
    data = {
        f"ringleaf/{link.name}/{path.relative_to(link.resolve())}"
        for link in packages
        for path in link.resolve().rglob("*")
        if path.suffix in (".yaml", ".json", ".html", ".js", ".css", ".cc", ".p4", ".txtpb")
    }
    with zipfile.ZipFile(wheel) as packed:
        missing = data - set(packed.namelist())

    assert len(data) > 50
    assert not missing


def test_instruments_are_not_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        tops = {name.partition("/")[0] for name in packed.namelist()}
    assert {each for each in tops if not each.endswith(".dist-info")} == {"ringleaf"}


def test_an_installed_ringleaf_runs_collectives(commands: Path, elsewhere: Path) -> None:
    topo = "leafspine,leaves=2,spines=1,hosts=2"
    options = ("--topo", topo, "--size", "1K", "--algo", "ring,switchml", "--out", "out")
    printed = run(commands / "ringleaf", "run", *options, at=elsewhere)

    assert "# wrong values: 0 OK" in printed
    assert (elsewhere / "out" / "report.html").exists()


def test_an_installed_ringleaf_traces_steps_and_replays(commands: Path, elsewhere: Path) -> None:
    ringleaf = commands / "ringleaf"

    assert "p4/forward.p4" in run(ringleaf, "trace", "forward", "--example", at=elsewhere)
    run(ringleaf, "step", "ring", "--ranks", "3", "--html", "ring.html", at=elsewhere)
    assert "rank" in (elsewhere / "ring.html").read_text()
    shutil.copytree(ROOT / "tests" / "traces" / "l2l3", elsewhere / "trace")
    assert run(ringleaf, "replay", "trace", at=elsewhere).startswith("equal")
