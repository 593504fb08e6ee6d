"""NOTICE has the licence of each package that Ringleaf may install, and the wheel has NOTICE."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from making import make

ROOT = Path(__file__).resolve().parents[1]
NOTICE = (ROOT / "NOTICE").read_text()
LISTED = [line for line in NOTICE.splitlines() if line.count(" | ") == 2]
TOOL = runpy.run_path(str(ROOT / ".ci" / "notice.py"))

FREE = (
    "MIT",
    "BSD",
    "3-Clause BSD",
    "Apache",
    "ISC",
    "Python Software Foundation",
    "PSF",
    "MPL",
    "Mozilla",
)
"""Beginnings of the licences with which nobody has to be warned."""


def test_every_package_has_the_licence_that_it_declares() -> None:
    """`make pin` mends a difference; a new kind of licence needs a word above the list."""
    assert TOOL["lines"]() == LISTED


def test_other_kinds_of_licences_are_explained() -> None:
    about = NOTICE.partition(TOOL["HEADING"])[0]
    for line in LISTED:
        package, licence, _ = line.split(" | ")
        allowed = licence.startswith(FREE) or " or BSD License" in licence
        assert allowed or f"{package} is under {licence}" in about, line


@pytest.mark.parametrize(
    ("package", "licence", "user"),
    [
        ("scapy", "GPL-2.0-only", "ringleaf"),
        ("numpy", "BSD-3-Clause", "ringleaf"),
        ("distributed", "BSD-3-Clause", "machines"),
        ("pytest", "MIT", "dev"),
    ],
)
def test_well_known_packages_are_there(package: str, licence: str, user: str) -> None:
    (line,) = (line for line in LISTED if line.startswith(f"{package} | "))
    assert licence in line
    assert line.endswith(f" | {user}")


def test_a_plain_run_loads_no_scapy(tmp_path: Path) -> None:
    words = ["run", "--topo", "leafspine,leaves=1,spines=1,hosts=2", "--algo", "ring,switchml"]
    code = (
        "import sys\nfrom ringleaf.experiments.commands.cli import perform\n"
        f"assert perform({[*words, '--size', '1K', '--out', str(tmp_path / 'out')]!r}) == 0\n"
        "assert 'scapy' not in sys.modules\n"
    )
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", code]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)


def test_all_packages_but_torch_have_hashes() -> None:
    """After make pin: `python .ci/hashes.py`."""
    text = (ROOT / "constraints-hashes.txt").read_text().replace(" \\\n", " ")
    hashed = [line for line in text.splitlines() if not line.startswith("#")]
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    assert [line.split()[0] for line in hashed] == [
        pin for pin in pins if not pin.startswith(("#", "torch=="))
    ]
    for line in hashed:
        assert re.fullmatch(r"\S+==\S+(\s+--hash=sha256:[0-9a-f]{64})+", line)


def test_make_venv_takes_hashed_files_only_if_told() -> None:
    plain = make("-n", "venv", "VENV=/nowhere/.venv")
    hashed = make("-n", "venv", "VENV=/nowhere/.venv", "HASHES=1")
    assert "--require-hashes" not in plain
    assert re.search(r" pip==[0-9.]+ \|\| echo", plain)
    assert " pip==" not in hashed
    assert "--require-hashes --no-deps -r constraints-hashes.txt\n" in hashed
    assert "--no-build-isolation -c constraints.txt -e '.[dev]'\n" in hashed


def test_the_package_brings_its_notice() -> None:
    about = distribution("ringleaf").metadata
    assert about.get_all("License-File") == ["LICENSE", "NOTICE"]
