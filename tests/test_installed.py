"""What packages say of themselves, as `importlib.metadata` reads it too."""

from __future__ import annotations

import sys
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from ringleaf.core import installed
from ringleaf.core.installed import may_have_points, version_of


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is the only one on the path."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [PathFinder])
    return tmp_path


def add(place: Path, folder: str, version: str = "", points: str = "") -> None:
    info = place / folder
    info.mkdir(parents=True)
    name = folder.partition("-")[0]
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nVersion: of a text\n"
    if version:
        (info / "METADATA").write_text(text)
    if points:
        (info / "entry_points.txt").write_text(points)


def test_versions_are_those_that_packages_say() -> None:
    for name in {each.metadata["Name"] for each in metadata.distributions()}:
        assert version_of(name) == metadata.version(name)


def test_a_version_is_what_the_package_says_and_not_what_its_folder_is_called(place: Path) -> None:
    add(place, "Some_Thing-1.0.dist-info", "1.0.0+local")
    add(place, "some_thing_else-2.0.dist-info", "2.0")

    assert version_of("some-thing") == version_of("Some.Thing") == "1.0.0+local"
    assert version_of("else") is None


def test_the_first_on_the_path_counts(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(place / "a", "thing-1.dist-info", "1")
    add(place / "b", "thing-2.dist-info", "2")
    monkeypatch.setattr(sys, "path", [str(place / each) for each in ("none", "b", "a")])

    assert version_of("thing") == "2"


def test_what_is_packed_in_another_way_is_read_by_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whatever finders there are: `importlib_metadata` replaces Python's own."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    info = tmp_path / "thing.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: thing\nVersion: 3\n")

    assert version_of("thing") == metadata.version("thing") == "3"


def test_entry_points_are_noticed_by_the_beginning_of_their_group(place: Path) -> None:
    add(place, "thing-1.dist-info", "1", "[console_scripts]\nringleaf. = a:b\n[ringleaf.x]\n")

    assert may_have_points("ringleaf.")
    assert may_have_points("console")
    assert not may_have_points("pydantic")
    assert not may_have_points("ringleaf.", besides="thing")
    assert may_have_points("ringleaf.", besides="things")


@pytest.mark.parametrize("name", ["packed.zip", "thing.egg"])
def test_an_archive_on_the_path_may_have_entry_points(
    name: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / name).write_bytes(b"")
    assert may_have_points("ringleaf.") is (name == "thing.egg")

    monkeypatch.setattr(sys, "path", [str(place / name)])

    assert may_have_points("ringleaf.")


def test_another_finder_may_know_of_entry_points(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not may_have_points("ringleaf.")
    installed._folders.cache_clear()

    monkeypatch.setattr(sys, "meta_path", [metadata.DistributionFinder])

    assert may_have_points("ringleaf.")
