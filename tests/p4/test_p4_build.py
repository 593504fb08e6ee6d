"""What is committed under p4/build belongs to the sources beside it."""

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ringleaf.errors import BackendError

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "p4" / "build"
NAMES = (
    *("forward", "tensorexpress", "hpcc", "ugal", "switchml-64", "switchml-256", "router", "acl"),
    *("atp-64", "atp-256", "atp-switchml-64", "atp-switchml-256", "panama-64", "panama-256"),
    *("netreduce-64", "netreduce-256", "a2tp-64", "a2tp-256", "esa-64", "esa-256"),
    *("omnireduce-64", "omnireduce-256", "vote", "tern", "a2tp-switchml-64", "esa-switchml-64"),
)


def load_compile() -> ModuleType:
    """The command `python -m ringleaf.p4.compile` as a module (p4 is no package)."""
    spec = importlib.util.spec_from_file_location("p4_compile", ROOT / "p4" / "compile.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


p4_compile = load_compile()


def strings(value: Any) -> list[str]:
    """All strings anywhere in a JSON value."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in strings(each)]
    if isinstance(value, list):
        return [text for each in value for text in strings(each)]
    return [value] if isinstance(value, str) else []


def test_outputs_are_of_these_sources() -> None:
    assert p4_compile.MANIFEST.read_text() == p4_compile.manifest(), "run `make p4`"


def test_a_changed_source_changes_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "p4", tmp_path / "p4")
    monkeypatch.setattr(p4_compile, "FOLDER", tmp_path / "p4")
    assert p4_compile.manifest() == p4_compile.MANIFEST.read_text()

    (tmp_path / "p4" / "include" / "ecn.p4").write_text("")

    assert p4_compile.manifest() != p4_compile.MANIFEST.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_no_machine_paths_in_outputs(name: str) -> None:
    program = json.loads((BUILD / f"{name}.json").read_text())

    assert [text for text in strings(program) if text.startswith(("/", "~/"))] == []


def test_every_target_has_its_outputs() -> None:
    assert {target.name for target in p4_compile.TARGETS} == set(NAMES)
    assert {path.name for path in BUILD.iterdir()} == {
        "sources.sha256",
        *(f"{name}{suffix}" for name in NAMES for suffix in (".json", ".p4info.txtpb")),
    }


def test_missing_compiler_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "")

    with pytest.raises(BackendError, match="no P4 compiler on PATH, got no 'p4c-bm2-ss'; install"):
        p4_compile.compile_target(p4_compile.TARGETS[0], tmp_path)
    assert p4_compile.main() == 1
    assert "p4lang-p4c" in capsys.readouterr().err


@pytest.mark.p4c
@pytest.mark.parametrize("name", NAMES)
def test_recompiling_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    (target,) = (target for target in p4_compile.TARGETS if target.name == name)

    p4_compile.compile_target(target, tmp_path)

    for suffix in (".json", ".p4info.txtpb"):
        ours, fresh = BUILD / f"{name}{suffix}", tmp_path / f"{name}{suffix}"
        assert fresh.read_bytes() == ours.read_bytes()


@pytest.mark.p4c
def test_wrong_lanes_are_refused_by_name(tmp_path: Path) -> None:
    target = p4_compile.BuiltProgram("switchml-65", "switchml.p4", ("-DLANES=65",))

    with pytest.raises(BackendError, match="LANES must be 64 or 256"):
        p4_compile.compile_target(target, tmp_path)
