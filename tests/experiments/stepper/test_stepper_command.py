"""`ringleaf step` and `make step` as people type them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.experiments.commands import cli
from ringleaf.experiments.stepper import votes
from ringleaf.ina.vote.wire import SIGNS


def call(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as exited:
        cli.make_app()([str(argument) for argument in arguments])
    code = exited.value.code
    assert isinstance(code, int)
    return code


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_every_collective_is_told_to_a_pipe(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("step", name, "--ranks", "3") == 0

    told = capsys.readouterr().out
    assert "3 ranks" in told
    assert "\x1b" not in told
    assert told.endswith(" must: all right\n")


@pytest.mark.parametrize(("can_read", "term"), [(False, "xterm"), (True, "dumb")])
def test_a_terminal_without_keys_or_a_dumb_one_is_told_as_a_pipe(
    can_read: bool,
    term: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A view there would wait for keys that never come."""
    monkeypatch.setitem(sys.modules, "textual", None)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: can_read)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", term)
    assert call("step", "ring", "--ranks", "3") == 0
    assert capsys.readouterr().out.endswith(" must: all right\n")


def test_a_vote_of_a_subset_does_not_look_like_one_of_all() -> None:
    """By hand: of 3 ranks' votes for pivots, those of ranks 0 and 2, ties being for."""
    tensors = votes.pivots(3, SIGNS)
    counted = tensors[0] + tensors[2]
    result = np.where(counted >= 0, 1, -1).tolist()

    assert votes.who(result, 3) != (0, 1, 2)
    assert 1 not in votes.who(result, 3)
    for ranks in (2, 3, 4, 7, 63):
        everybody = np.sum(votes.pivots(ranks, 900), axis=0)
        majority = np.where(everybody >= 0, 1, -1).tolist()
        assert votes.who(majority, ranks) == tuple(range(ranks))
        assert votes.who(majority[768:], ranks) == tuple(range(ranks))


@pytest.mark.parametrize(
    ("algo", "elements", "message"),
    [
        ("vote", "773", "step: elements of votes must be 6 or more in each block of 768, to tell"),
        ("tern", "3", "elements of ternary sums must be 4 or more in each block of 768, to tell 3"),
    ],
)
def test_a_block_too_short_to_tell_whose_numbers_it_has_is_refused(
    algo: str, elements: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("step", algo, "--ranks", "3", "--elements", elements) == 2
    assert message in capsys.readouterr().err


def test_a_page_is_written_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "new" / "ring.html"

    assert call("step", "ring", "--ranks", "4", "--elements", "8", "--html", page) == 0

    assert capsys.readouterr().out == f"# page: {page}\n"
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "ringleaf step ring --ranks 4 --elements 8" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ring", "--elements", "2"), "elements must be 4 or more, one for each chunk of ring"),
        (("ring", "--ranks", "1"), "step: ranks must be 2 to 64, got 1"),
        (("rng",), "did you mean 'ring'?"),
        (("broadcast", "--root", "7"), "root must be one of 4 ranks, got 7"),
        (("ring", "--root", "2"), "ring allreduce: has no root, got 2; leave it out"),
        (("ring", "--segments", "3"), "ring allreduce: has no segments, got 3; leave it out"),
        (("switchml", "--segments", "3"), "switchml allreduce: has no segments, got 3"),
        (("ring", "--root", "0"), "ring allreduce: has no root, got 0; leave it out"),
        (("ring", "--html", "/dev/null/x.html"), "step: can't write the page, got"),
    ],
)
def test_mistakes_exit_2_with_a_message(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("step", *arguments) == 2

    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""
