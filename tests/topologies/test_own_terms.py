"""A topology says which of an experiment's rate and delay none of its links takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleaf.topologies.own_terms import own_terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fattree", ()),
        ("fattree,rate=10G", ("rate",)),
        ("fattree,rate=10G,delay=2us", ("rate", "delay")),
        ("fattree,host_rate=10G", ()),  # links between switches take the experiment's
    ],
)
def test_families_have_what_their_text_says(text: str, expected: tuple[str, ...]) -> None:
    assert own_terms(text) == expected


@pytest.mark.parametrize(
    ("edges", "more", "expected"),
    [
        ("h0 s0 rate=1G\nh1 s0 rate=2G delay=1us\n", "", ("rate",)),
        ("h0 s0 rate=1G\nh1 s0 delay=1us\n", "", ()),
        ("h0 s0 delay=1us\nh1 s0 delay=2us\n", "", ("delay",)),
        ("h0 s0\nh1 s0\n", ",rate=10G", ("rate",)),
    ],
)
def test_files_have_what_all_their_links_say(
    edges: str, more: str, expected: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "my.edges"
    path.write_text(edges)
    assert own_terms(f"{path}{more}") == expected
