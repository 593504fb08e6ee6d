"""The study of sparse allreduces' volumes: small cases against bounds, and bounds by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleaf.collectives.sparse.registry import SPARSE
from ringleaf.collectives.sparse.volumes import HEADERS, WORDS, Volume
from ringleaf.core.yaml_file import read_yaml
from ringleaf.experiments.commands.cli import perform_alone
from studies.sparse_volume import SPEC, SentWords, cases, sparse_volume_command


def test_all_sparse_allreduces_have_bounds() -> None:
    assert set(SPARSE.shipped()) < set(WORDS)
    assert len(WORDS) >= 11


def test_bounds_by_hand() -> None:
    """With 8 ranks, 1 024 elements and 64 sent: 2 k = 128 words of pairs."""
    v = Volume(8, 1024, 64)
    assert WORDS["topka"](v)[1] == 128 * 7
    assert WORDS["gtopk"](v)[1] == 128 * 3
    assert WORDS["oktopk"](v) == (112, 336)
    assert WORDS["scalecom"](v)[1] == 64 * 3 + 112
    assert WORDS["hitopk"](v)[1] == 1.5 * 1024 + 128 / 4
    assert WORDS["ssar-double"](v) == (128 * 3, 128 + 256 + 512)
    assert WORDS["dsar-split"](v) == (896, 7 / 8 * (128 + 1024))
    assert WORDS["sparcml-q"](v)[1] == 7 / 8 * (128 + 128)


def test_a_small_bound_leaves_room_for_headers_only() -> None:
    """Ok-Topk of 2 of 16 384 by 32 ranks: 6 k (n - 1) / n = 11.6 words, and 62 of headers."""
    v = Volume(32, 16_384, 2)
    most, headers = WORDS["oktopk"](v)[1], HEADERS["oktopk"](v)
    assert (most, headers) == (11.625, 62)
    assert SentWords(74, 0, 0, 0).is_within(most, headers)
    assert not SentWords(75, 0, 0, 0).is_within(most, headers)
    assert set(HEADERS) == set(WORDS)
    assert HEADERS["topka"](v) == HEADERS["dsar-split"](v) == 31
    assert HEADERS["gtopk"](v) == 5


def test_the_committed_spec_has_all_densities_and_ranks() -> None:
    found = list(cases(read_yaml(SPEC, "spec"), list(WORDS)))
    assert {case.density for case in found} == {"0.01%", "0.1%", "1%", "10%", "100%"}
    assert {case.ranks for case in found} == {8, 16, 32, 64, 128}
    assert {case.name for case in found} == set(WORDS)


def test_volumes_of_a_small_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("{elements: 2048, densities: [5%], ranks: [8], most_words: 1000000}")
    words = ["--spec", str(spec), "--out", str(tmp_path / "words.png")]
    assert perform_alone("sparse_volume", sparse_volume_command, words) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert [line[0] for line in lines] == list(WORDS)
    assert all(line[8] == "yes" for line in lines if line[0] != "omnireduce")
    assert all(line[-1] == "0" for line in lines)
    assert (tmp_path / "words.png").is_file()
