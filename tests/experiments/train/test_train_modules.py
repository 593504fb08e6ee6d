"""Scripts that are modules, as `python -m` and `torchrun -m` run them."""

from pathlib import Path

import pytest
from commanding import ringleaf

from ringleaf.errors import ConfigError
from ringleaf.experiments.workloads.train.kind import KIND
from ringleaf.experiments.workloads.train.modules import check_module

TRAIN = """
import os, sys
import torch, torch.distributed as dist
from .values import START

assert dist.is_torchelastic_launched(), "as under torchrun"
assert os.environ["ROLE_RANK"] == os.environ["RANK"]
dist.init_process_group()
total = torch.full((4,), START + dist.get_rank())
dist.all_reduce(total)
words = [total[0].item(), __name__, __package__, sys.argv[1:], sys.argv[0]]
print(f"rank {dist.get_rank()}", *words, sep="|", flush=True)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with packages and modules that may be run."""
    for name in ("sample", "sample/inner", "sample/plain"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / "sample" / "train.py").write_text(TRAIN)
    (tmp_path / "sample" / "values.py").write_text("START = 2.0\n")
    (tmp_path / "sample" / "inner" / "__main__.py").write_text("")
    (tmp_path / "single.py").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_module_of_a_package_is_run_with_its_own_options(project: Path) -> None:
    """2 + 3 = 5; `-m` behind `--` is the script's, and the folder has the module's name."""
    words = "train -m sample.train --ranks 2 --compute 0 -- -m 0.5 --epochs 3"

    done = ringleaf(*words.split(), at=project)

    assert done.returncode == 0, done.stderr
    script = project / "sample" / "train.py"
    options = "['-m', '0.5', '--epochs', '3']"
    assert sorted(line for line in done.stdout.splitlines() if line.startswith("rank")) == [
        f"rank {rank}|5.0|__main__|sample|{options}|{script}" for rank in range(2)
    ]
    assert (project / "runs" / "train" / "results.csv").exists()


@pytest.mark.parametrize("name", ["single", "sample.train", "sample.inner", "json.tool"])
def test_modules_are_looked_for_as_python_does(name: str, project: Path) -> None:
    check_module(name)


@pytest.mark.parametrize(
    "name", ["", ".", "sample", "sample.plain", "sample.none", "single.train", "sample/train.py"]
)
def test_what_is_no_module_is_refused(name: str, project: Path) -> None:
    """A package without `__main__` is none that can be run."""
    with pytest.raises(ConfigError, match="script: must be a module that Python finds from here"):
        check_module(name)


def test_looking_for_a_module_imports_nothing(project: Path) -> None:
    (project / "sample" / "__init__.py").write_text("raise SystemExit('imported')\n")

    check_module("sample.train")


@pytest.mark.parametrize(
    ("options", "folder"),
    [
        ({"script": ["a.b.train", "-x"], "module": "yes"}, "train"),
        ({"script": "a.b.train -x", "module": True}, "train"),
        ({"script": ["a/b.train.py"]}, "b.train"),
    ],
)
def test_folders_have_the_names_of_scripts(options: dict[str, object], folder: str) -> None:
    assert KIND.folder_for(options) == folder


@pytest.mark.parametrize("script", ["a.b.train -x '1 2'", ["a.b.train", "-x", "1 2"]])
def test_a_command_has_the_words_of_a_line(script: object) -> None:
    """A flag is typed without a value, which would be taken for the script."""
    options = {"script": script, "module": "yes", "chakra": "no", "timeline": "no", "out": "o"}

    assert KIND.command(options) == "ringleaf train --module --timeline no -- a.b.train -x '1 2'"
