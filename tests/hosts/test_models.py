"""The models that come with Ringleaf, against published totals; and models as files."""

from __future__ import annotations

from pathlib import Path

import make_models
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.units import PS_PER_S
from ringleaf.hosts.training.model import (
    MODELS,
    Layer,
    Model,
    as_yaml,
    load_model,
    names,
    read_model,
)

PUBLISHED = {
    # parameters; batch and samples per second that its times shall give
    "resnet50": (25_557_032, 64, 384),  # torchvision; NVIDIA
    "vgg16": (138_357_544, 32, 196),  # torchvision; see its source
    "bert-large": (336_226_108, 32, 50),  # transformers' BertForPreTraining; NVIDIA
    "gpt2": (124_439_808, 4, None),  # transformers' GPT2LMHeadModel
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_totals_are_as_published(name: str) -> None:
    elements, batch, rate = PUBLISHED[name]
    model = load_model(name)
    assert model.elements == elements
    assert model.source
    assert 10 < len(model.layers) < 60
    if rate is not None:
        assert batch * PS_PER_S / model.compute_ps == pytest.approx(rate, rel=0.01)


def test_forward_flops_are_as_published() -> None:
    """Multiplications and additions of one image: He et al., torchvision; 15.5 GMAC of VGG-16."""
    flops = {
        "resnet50": sum(entry.flops for entry in make_models.resnet50()),
        "vgg16": sum(entry.flops for entry in make_models.vgg16()),
    }
    assert flops["resnet50"] / 2e9 == pytest.approx(4.09, abs=0.01)
    assert flops["vgg16"] / 2e9 == pytest.approx(15.47, abs=0.01)


def test_files_are_what_makes_them() -> None:
    made = {model.name: as_yaml(model) for model in make_models.models()}
    assert sorted(made) == names() == sorted(PUBLISHED)
    for name, text in made.items():
        assert (MODELS / f"{name}.yaml").read_text() == text


texts = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200)
layers = st.builds(
    Layer, texts, st.integers(1, 1 << 40), st.integers(0, 10**15), st.integers(0, 10**15)
)


@given(texts, texts, st.lists(layers, min_size=1, max_size=5))
def test_a_file_is_read_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, name: str, source: str, found: list[Layer]
) -> None:
    path: Path = tmp_path_factory.getbasetemp() / "model.yaml"
    model = Model(name, source, "int32", tuple(found))
    path.write_text(as_yaml(model))
    assert read_model(path) == model
