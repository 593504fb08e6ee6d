"""The hashes of all packages that constraints.txt names: `python .ci/hashes.py` writes them.

pip tells what it would install for each version of Python on Linux and x86-64 (z3-solver has no
files for others), and checks what it fetches against these (`make venv HASHES=1`). torch is left
out: its builds for CPUs and for CUDA are different files of one version, in places of PyTorch's
own, and need other packages.
"""

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "constraints-hashes.txt"
HEAD = (
    "# All packages of constraints.txt but torch, with the hashes of their files for Linux on "
    "x86-64:\n"
    "# make venv HASHES=1. After make pin: python .ci/hashes.py\n"
)
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PROCESSOR = "x86_64"
OLDEST, NEWEST = 5, 36  # glibc 2.x of wheels; Debian bookworm has 2.36
LEFT_OUT = "torch"


def report(pins: Path, python: str) -> dict[str, Any]:
    """Return what pip would install there."""
    platforms = [f"manylinux_2_{minor}_{PROCESSOR}" for minor in range(OLDEST, NEWEST + 1)]
    words = [word for each in (*platforms, f"linux_{PROCESSOR}") for word in ("--platform", each)]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    pip += ["--no-deps", "--only-binary=:all:", "--target", "nowhere", "--implementation", "cp"]
    pip += ["--python-version", python, *words, "--report", "-", "-r", str(pins)]
    done = subprocess.run(pip, check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def text(pins: list[str], reports: list[dict[str, Any]]) -> str:
    """Return the file's text: each pin, and the hashes that any of the reports has for it."""
    hashes: dict[str, set[str]] = defaultdict(set)
    for each in (package for found in reports for package in found["install"]):
        name = each["metadata"]["name"]
        hashes[_key(name)].add(each["download_info"]["archive_info"]["hashes"]["sha256"])
    lines = []
    for pin in pins:
        those = sorted(hashes[_key(pin.partition("==")[0])])
        lines.append(" \\\n".join([pin, *(f"    --hash=sha256:{each}" for each in those)]))
    return HEAD + "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def pins() -> list[str]:
    """Return the lines of constraints.txt that have hashes."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line for line in lines if "==" in line and not line.startswith(f"{LEFT_OUT}==")]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder, "pins.txt")
        wanted.write_text("".join(f"{pin}\n" for pin in pins()))
        reports = [report(wanted, python) for python in PYTHONS]
    FILE.write_text(text(pins(), reports))
    return 0


if __name__ == "__main__":
    sys.exit(main())
