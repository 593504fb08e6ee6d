"""`ringleaf workload`, as typed: models listed, shown, drawn, and made of torch modules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ringleaf.experiments.commands.cli import make_app
from ringleaf.hosts.training.model import Model, load_model
from ringleaf.hosts.training.pieces import cut

NETS = '''
import torch
from torch import nn

class Bag(nn.Module):
    """Tied words, a parameter nobody uses, a frozen one, attention whose out_proj isn't called."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 8)
        self.unused = nn.Linear(3, 3)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.norm.bias.requires_grad = False
        self.shared = nn.Linear(8, 8)
        self.head = nn.Linear(8, 50, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens):
        x = self.words(tokens)
        x = self.norm(self.attention(x, x, x)[0])
        x = self.shared(torch.relu(self.shared(x)))
        return {"logits": self.head(x), "loss": (x.sum(), tokens)}

def bag():
    return Bag()

def convolutions():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 10),
    )

perceptron = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))

def empty():
    return nn.ReLU()

class Positions(nn.Module):
    """A small language model: its positions are a parameter of its own."""

    def __init__(self):
        super().__init__()
        self.positions = nn.Parameter(torch.zeros(7, 8))
        self.words = nn.Embedding(50, 8)
        self.head = nn.Linear(8, 50)

    def forward(self, tokens):
        return self.head(self.words(tokens) + self.positions)

def halves():
    return nn.Linear(6, 5).half()

def choosy(width):
    return nn.Linear(width, 1)

number = 3
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with modules of torch, which `from-torch` finds because it is the present one."""
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "broken.py").write_text("def (")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    import sys

    sys.modules.pop("nets", None)


def workload(*words: str) -> Result:
    return CliRunner().invoke(make_app(), ["workload", *words])


def made(*words: str) -> Model:
    done = workload("from-torch", *words, "-o", "made.yaml")
    assert done.exit_code == 0, done.output
    return load_model("made.yaml")


def test_layers_are_those_with_parameters_and_times_are_measured() -> None:
    model = made("nets:convolutions", "--input", "3,16,16", "--batch", "4", "--runs", "2")
    assert [(layer.name, layer.elements) for layer in model.layers] == [
        ("0", 3 * 4 * 9 + 4), ("1", 8), ("5", 50),
    ]  # fmt: skip
    assert all(layer.forward_ps > 0 for layer in model.layers)
    assert sum(layer.backward_ps for layer in model.layers) > 0
    assert "batch 4 of 3x16x16; measured" in model.source
    assert cut(model)[-1].stop == model.elements


def test_shared_unused_and_frozen_parameters_are_counted_as_ddp_sends_them() -> None:
    model = made("nets:bag", "--input", "7", "--runs", "1")
    assert {layer.name: layer.elements for layer in model.layers} == {
        "words": 50 * 8,  # the head's, too: whole when the backward pass is at the front
        "attention": 4 * (8 * 8 + 8),
        "norm": 8,
        "shared": 8 * 8 + 8,
    }


@pytest.mark.parametrize("target", ["nets:Positions", "nets.py:Positions", "./nets.py:Positions"])
def test_a_language_model_with_parameters_of_its_own_gets_words(target: str) -> None:
    model = made(target, "--input", "7", "--runs", "1")
    assert {layer.elements for layer in model.layers} == {7 * 8, 50 * 8, 8 * 50 + 50}


def test_flops_by_a_rate_need_no_clock() -> None:
    """Dense layers: 2 x batch x inputs x outputs; backward the same for weights and for inputs."""
    model = made("nets:perceptron", "--batch", "1000", "--flops-rate", "1G")
    first, last = model.layers
    us = 10**6
    assert first.forward_ps == 2 * 6 * 5 * us  # x 1000 samples, at 1000 FLOPs per microsecond
    assert first.backward_ps == first.forward_ps  # nobody wants the gradient of the input
    assert (last.forward_ps, last.backward_ps) == (2 * 5 * 2 * us, 2 * 2 * 5 * 2 * us)
    assert made("nets:perceptron", "--batch", "1000", "--flops-rate", "1G") == model


def test_a_model_is_printed_if_no_file_is_named(folder: Path) -> None:
    done = workload("from-torch", "nets:perceptron", "--flops-rate", "1e9")
    (folder / "printed.yaml").write_text(done.output)
    assert load_model("printed.yaml").elements == 6 * 5 + 5 + 5 * 2 + 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nets"], "must be MODULE:FACTORY, got 'nets'"),
        (["nowhere:net"], "can't import 'nowhere', got ModuleNotFoundError"),
        (["broken:net"], "can't import 'broken', got SyntaxError"),
        (["nets:nothing"], "module nets has no nothing"),
        (["nets:number"], "must give a torch module, got 3"),
        (["nets:choosy"], "must be callable without arguments, got TypeError"),
        (["nets:empty"], "must have parameters to train, got none"),
        (
            ["nets:halves"],
            "parameters must be float32, got torch.float16; convert them by .float()",
        ),
        (["nets:convolutions"], "input can't be told from the first layer, got Conv2d"),
        (["nets:convolutions", "--input", "big"], "must be a sample's shape, got 'big'"),
        (["nets:convolutions", "--input", "4,8,8"], "[1, 4, 8, 8] does not fit, got RuntimeError"),
        (["nets:perceptron", "--batch", "0"], "batch must be at least 1, got 0"),
        (["nets:perceptron", "--runs", "0"], "runs must be at least 1, got 0"),
        (["nets:perceptron", "--flops-rate", "fast"], "flops-rate: not understood, got 'fast'"),
        (["nets:perceptron", "-o", "net.txt"], "out must end in .yaml, got net.txt"),
        (["nets:perceptron", "--runs", "1", "-o", "no/net.yaml"], "can't write no/net.yaml"),
    ],
)
def test_what_is_wrong_is_said(words: list[str], message: str) -> None:
    done = workload("from-torch", *words)
    assert done.exit_code == 2
    assert done.stderr.startswith("ringleaf: workload from-torch: ")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_models_are_listed_and_shown() -> None:
    rows = [line.split() for line in workload("list").output.splitlines() if line[0] != "#"]
    assert ["gpt2", "26", "124439808", "497759232", "291.024"] in rows
    shown = workload("show", "gpt2").output.splitlines()
    layers = [line.split() for line in shown if line[0] != "#"]
    assert layers[0] == ["embeddings", "39383808", "157535232", "0.000", "0.000"]
    assert sum(int(layer[1]) for layer in layers) == 124439808
    assert shown[-1].startswith("# 124,439,808 elements, 474.7 MiB; forward 97.01 ms")


def test_large_sizes_are_shown_with_all_digits(folder: Path) -> None:
    (folder / "large.txt").write_text(
        "MICRO\n1\nlayer -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 13509853184 1\n"
    )
    shown = workload("show", "large.txt", "--ranks", "2").output.splitlines()
    rows = [line.split() for line in shown if line[0] != "#"]
    assert ["world", "allreduce", "2", "13509853184", "2", "25.16GiB"] in rows


def test_an_unknown_model_is_answered_with_the_valid() -> None:
    done = workload("show", "resnet5")
    assert done.exit_code == 2
    assert "did you mean 'resnet50'? valid: bert-large, gpt2, resnet50, vgg16" in done.stderr


def test_a_model_is_drawn(folder: Path) -> None:
    assert workload("show", "vgg16", "-o", "vgg16.png").exit_code == 0
    assert (folder / "vgg16.png").read_bytes().startswith(b"\x89PNG")
    done = workload("show", "vgg16", "-o", "vgg16.gif")
    assert done.exit_code == 2
    assert "must end in .png, .svg, .pdf, got '.gif'" in done.stderr
