from collections.abc import Callable
from pathlib import Path

import pytest

from bench.refusals import measure
from ringleaf.errors import BackendError, ConfigError
from studies.incast import incast_command
from studies.trees import trees_command


def test_a_refusal_is_timed_and_quoted(tmp_path: Path) -> None:
    found = measure("run --topo nosuch", tmp_path, repeats=2)

    assert 0 < found.median_s <= found.longest_s
    assert found.said.startswith("ringleaf: topology: unknown topology, got 'nosuch'")


def test_what_is_not_refused_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"'--help' must be refused, got exit code 0"):
        measure("--help", tmp_path, repeats=1)


@pytest.mark.parametrize("size", ["0", "6"])
@pytest.mark.parametrize("command", [incast_command, trees_command])
def test_studies_refuse_tensors_without_whole_elements(
    command: Callable[..., None], size: str
) -> None:
    with pytest.raises(ConfigError, match=f"^size: must be whole elements of 4 bytes.*'{size}'$"):
        command(size=size)
