"""Without PyTorch most commands do the same to the byte, and the others say what they need.

An import hook hides it in processes of their own, which do the commands as people type them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_imports import MODULES, imports_of

from ringleaf.collectives.codec import encoded
from ringleaf.core import extras, tensors
from ringleaf.core.installed import version_of
from ringleaf.errors import ConfigError
from ringleaf.experiments.records import config

ROOT = Path(__file__).resolve().parents[1]
SWITCH = "leafspine,leaves=1,spines=1,hosts=4"
HOOK = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
"""
JOBS = f"""
topo: {SWITCH}
jobs: [{{model: two.yaml, ranks: 2, iterations: 2}}]
algo: [ring, switchml]
figures: no
"""
MODEL = """
name: two
dtype: float32
source: by hand
layers:
  - {name: front, elements: 3000, forward: 1us, backward: 2us}
  - {name: back, elements: 5000, forward: 1us, backward: 2us}
"""
ALL_KINDS = [
    f"run --topo {SWITCH} --algo ring,switchml --size 4K,16K --explain --figures no --out run",
    f"run --topo {SWITCH} --algo ring,ssar-split,omnireduce --servers 1 --density 10% --cluster 2 "
    "--overlap 0.5 --size 8K --figures no --out sparse",
    f"run --topo {SWITCH} --algo ring,allpairs --compress egc:1% --size 8K --figures no --out egc",
    f"run --topo {SWITCH} --algo vote --compress signsgd --size 8K --figures no --out vote",
    f"run --topo {SWITCH} --algo gtopk:5%,sparcml-q:5% --size 8K --figures no --out methods",
    "run --spec jobs.yaml --out jobs",
    f"workload run permutation --ranks 4 --topo {SWITCH} --flow-sizes 8K --figures no --out graph",
    f"nic guo --topo {SWITCH} --rows 64 --bags 4 --cache 8 --figures no --out nic",
    "run --spec sweep.yaml --out sweep",
    "plot run",
    "compare run run",
    "step ring --ranks 3 --html ring.html",
    "step ssar-split --ranks 4",
    "step switchml --ranks 3 --loss 10% --html switchml.html",
    "step vote --ranks 3",
    "step tern --ranks 3",
]
DO_ALL = """
import json, sys
from ringleaf.experiments.commands.cli import perform

for words in json.load(open(sys.argv[1])):
    print("$", *words, flush=True)
    assert perform(words) == 0
assert "torch" not in sys.modules
"""
SWEEP = f"{{topo: '{SWITCH}', algo: [ring, tree], size: 4K, loss: [0, 1%], figures: no}}"
REFUSED = {
    "train": f"train --topo {SWITCH} {ROOT / 'examples' / 'training' / 'ddp.py'}",
    "converge": f"run --spec {ROOT / 'experiments' / 'specs' / 'convergence.yaml'}",
    "workload from-torch": "workload from-torch mymodels:make_net",
}
TENSORS = f"""
import numpy as np
import ringleaf
from ringleaf.errors import ConfigError
from ringleaf.experiments.setup.network import build_topology
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork

given = [np.arange(50, dtype=np.int32)] * 4
found = ringleaf.run(topo="{SWITCH}", algo="ring", tensors=given)
assert all((each == 4 * given[0]).all() for each in found.tensors["ring", 200])
graph = build_topology("{SWITCH}", rate_bps=10**10, delay_ps=10**6, hosts=None)

def load():
    import ringleaf.torch

for ask in (load, ringleaf.time, lambda: VirtualNetwork(graph, NetworkOptions()).tensors(8)):
    try:
        ask()
    except ConfigError as error:
        print(error)
"""
NEEDS = r"needs the package torch, got none installed; pip install 'ringleaf\[torch\]'"


def environment(folder: Path, *, hidden: bool) -> dict[str, str]:
    found = dict(os.environ)
    if hidden:
        (folder / "sitecustomize.py").write_text(HOOK)
        found["PYTHONPATH"] = os.pathsep.join([str(folder), found.get("PYTHONPATH", "")])
    return found


def python(folder: Path, code: str, *words: str, hidden: bool = True) -> str:
    """Return what a process prints, started in a folder of its own."""
    place = folder / ("hidden" if hidden else "there")
    place.mkdir()
    (place / "jobs.yaml").write_text(JOBS)
    (place / "two.yaml").write_text(MODEL)
    (place / "sweep.yaml").write_text(SWEEP)
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=place, env=environment(folder, hidden=hidden),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files(folder: Path) -> dict[str, bytes]:
    """Return the files of runs that the same options and seed give the same bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("config.json", "log.txt", "sweep.json")
    }


def steady(printed: str) -> list[str]:
    """Return the lines that have no wall-clock times."""
    return [line for line in printed.splitlines() if not re.search(r"hops in|needs about", line)]


@pytest.mark.slow
def test_all_kinds_of_runs_are_the_same_to_the_byte(tmp_path: Path) -> None:
    (tmp_path / "words.json").write_text(json.dumps([line.split() for line in ALL_KINDS]))
    given = (DO_ALL, str(tmp_path / "words.json"))

    there, hidden = (python(tmp_path, *given, hidden=each) for each in (False, True))

    assert steady(hidden) == steady(there)
    written = files(tmp_path / "hidden")
    assert written == files(tmp_path / "there")
    tables = [name for name in written if name.endswith("results.csv")]
    assert {name.partition("/")[0] for name in tables} >= {
        "run", "sparse", "egc", "vote", "methods", "jobs", "graph", "nic", "sweep",
    }  # fmt: skip


def test_a_packet_is_followed_without_it(tmp_path: Path) -> None:
    """In a process of its own, which a command starts again without compiling."""
    done = subprocess.run(
        [sys.executable, "-m", "ringleaf", "trace", "forward", "--example"],
        cwd=tmp_path, env=environment(tmp_path, hidden=True),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "p4/forward.p4" in done.stdout


def test_what_cannot_do_without_it_says_so_at_once(tmp_path: Path) -> None:
    for where, line in REFUSED.items():
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "ringleaf", *line.split()],
            cwd=tmp_path, env=environment(tmp_path, hidden=True),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        imports = [row for row in done.stderr.splitlines() if row.startswith("import time:")]
        told = [row for row in done.stderr.splitlines() if row not in imports]

        assert done.returncode == 2
        assert not done.stdout
        assert len(told) == 1
        assert re.fullmatch(f"ringleaf: {where}: {NEEDS}", told[0])
        loaded = {row.rpartition("|")[2].strip() for row in imports}
        assert not loaded & {"numba", "matplotlib", "scapy", "torch"}  # which take longer


def test_python_has_arrays_and_refuses_tensors(tmp_path: Path) -> None:
    told = python(tmp_path, TENSORS).splitlines()

    for where, line in zip(
        ["import ringleaf.torch", "ringleaf.time", "tensors"], told, strict=True
    ):
        assert re.fullmatch(f"{where}: {NEEDS}", line)


class Theirs:
    """A codec of another package, on tensors."""

    name = "theirs"
    is_lossless = True

    def encode(self, values: Any) -> Any:
        return values

    def decode(self, data: Any, elements: int, dtype: Any) -> Any:
        return data

    def most_bytes(self, elements: int, item_bytes: int) -> int:
        return elements * item_bytes


def test_a_codec_with_tensors_is_refused_where_they_are_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tensors._torch.cache_clear()
    monkeypatch.setattr(extras, "find_spec", lambda package: None)

    with pytest.raises(ConfigError, match=f"tensors: {NEEDS}"):
        encoded(Theirs(), np.zeros(4, np.float32))


def test_only_scripts_trainings_and_modules_load_it() -> None:
    """Anything else that imports it when it is loaded would need it, whatever is run."""
    loading = {
        module
        for module, path in MODULES.items()
        for name in imports_of(path, when_loaded=True)
        if name.partition(".")[0] == "torch"
    }

    assert {
        module
        for module in loading
        if not module.startswith("ringleaf.experiments.workloads.train.")
    } == {
        "ringleaf.experiments.workloads.converge.models",
        "ringleaf.experiments.commands.workload.profile",
        "ringleaf.experiments.commands.workload.torch_module",
    }


def test_the_core_does_not_bring_it() -> None:
    """Not even through another package."""
    found, waiting = set[str](), ["ringleaf"]
    while waiting:
        for line in metadata.requires(waiting.pop()) or []:
            name = re.split(r"[^\w.-]", line)[0]
            if "extra ==" not in line and name not in found:
                found.add(name)
                waiting += [name] if _is_installed(name) else []

    assert "numpy" in found
    assert "torch" not in found


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def test_a_package_whose_folder_is_left_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip leaves folders of packages in which others have written files."""
    (tmp_path / "removed" / "lib").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)

    assert extras.is_missing("removed")
    assert not extras.is_missing("numpy")


def test_a_record_has_versions_of_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with_it = config.versions()
    name = f"{config.__name__}.version_of"
    monkeypatch.setattr(name, lambda package: None if package == "torch" else version_of(package))
    assert config.versions.__wrapped__() == {
        package: text for package, text in with_it.items() if package != "torch"
    }
