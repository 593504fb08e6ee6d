"""Options have other names elsewhere, and had in earlier versions: who types them is told ours."""

from __future__ import annotations

import pytest

from ringleaf.errors import ConfigError
from ringleaf.experiments.commands.cli import perform
from ringleaf.experiments.spec.renamed import choose_option, other_name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("run --bandwidth 100G", "run: --bandwidth is called --rate here, got --bandwidth"),
        ("run --latency=1us", "run: --latency is called --delay here, got --latency"),
        ("run --ranks 4", "run: --ranks is called --hosts here, got --ranks"),
        ("run --packet-loss 1%", "run: --packet-loss is called --loss here, got --packet-loss"),
        ("step ring --hosts 4", "step: --hosts is called --ranks here, got --hosts"),
        ("train x.py --nproc_per_node 2", "train: --nproc_per_node is called --ranks here"),
        ("train x.py --hosts", "train: option '--hosts' requires an argument; ringleaf train"),
        ("run --hostz 4", "run: no such option: --hostz"),
        ("topo show --latency 1us", "topo show: no such option: --latency"),
    ],
)
def test_names_of_others_are_told_ours(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only where the command has such an option."""
    assert perform(words.split()) == 2
    assert f"ringleaf: {message}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "valid", "message"),
    [
        ("link_bandwidth", ["topo", "rate"], "spec: link_bandwidth is called rate here, got"),
        ("order", ["scheduler"], "spec: order is called scheduler since 0.2.0, got 'order'"),
        ("ranks", ["lanes", "rate"], "spec: unknown option, got 'ranks'; did you mean 'lanes'"),
    ],
)
def test_names_in_files_are_told_ours(name: str, valid: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        choose_option("spec", name, valid)


def test_an_option_s_own_name_counts_first() -> None:
    for name in ("hosts", "ranks"):
        choose_option("spec", name, ["hosts", "ranks"])
    assert other_name("nodes", ["size"]) == other_name("order", ["size"]) == ("", "")
