"""Writes hosts/training/models: layers from the papers' formulas, times from FLOPs.

    python tests/hosts/make_models.py

An entry has what belongs together: a convolution its batch norm, a matrix its bias. FLOPs are
two per multiplication and addition of convolutions and matrix products; all else is in the
effective rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ringleaf.core.units import PS_PER_S, PS_PER_US
from ringleaf.hosts.training.model import MODELS, Layer, Model, as_yaml

PEAK = 15.7e12  # FLOP/s of an NVIDIA V100 (SXM2), FP32
PEAK_TEXT = "the 15.7 TFLOP/s FP32 peak of an NVIDIA V100 (SXM2)"


@dataclass(frozen=True, slots=True)
class Entry:
    """A layer: parameters, and FLOPs of one sample's forward pass."""

    name: str
    elements: int
    flops: int


def _conv(name: str, inputs: int, outputs: int, kernel: int, side: int, *, extra: int = 1) -> Entry:
    """A convolution that gives a square of `side`; `extra` parameters per output: bias, or norm."""
    weights = inputs * outputs * kernel * kernel
    return Entry(name, weights + extra * outputs, 2 * weights * side * side)


def _linear(name: str, inputs: int, outputs: int) -> Entry:
    return Entry(name, (inputs + 1) * outputs, 2 * inputs * outputs)


def resnet50() -> Iterator[Entry]:
    """Table 1 of He et al.; stride in the 3x3 convolutions (v1.5), as torchvision has it."""
    yield _conv("conv1", 3, 64, 7, 112, extra=2)
    inputs, before = 64, 56
    for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512)), 1):
        side = 56 >> (stage - 1)
        for block in range(blocks):
            name = f"layer{stage}.{block}"
            yield _conv(f"{name}.conv1", inputs, width, 1, before, extra=2)
            yield _conv(f"{name}.conv2", width, width, 3, side, extra=2)
            yield _conv(f"{name}.conv3", width, 4 * width, 1, side, extra=2)
            if block == 0:
                yield _conv(f"{name}.downsample", inputs, 4 * width, 1, side, extra=2)
            inputs, before = 4 * width, side
    yield _linear("fc", 2048, 1000)


def vgg16() -> Iterator[Entry]:
    """Configuration D of Simonyan and Zisserman."""
    inputs, side = 3, 224
    for stage, (count, width) in enumerate(((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)), 1):
        for index in range(1, count + 1):
            yield _conv(f"conv{stage}_{index}", inputs, width, 3, side)
            inputs = width
        side //= 2
    yield _linear("fc6", 512 * 7 * 7, 4096)
    yield _linear("fc7", 4096, 4096)
    yield _linear("fc8", 4096, 1000)


def _block(name: str, width: int, tokens: int) -> Iterator[Entry]:
    """A transformer's block: attention and feed-forward of 4 x width, a layer norm each."""
    norm = 2 * width
    scores = 4 * tokens * tokens * width  # queries x keys, and their softmax x values
    matrices = 4 * width * width
    yield Entry(f"{name}.attention", matrices + 4 * width + norm, 2 * matrices * tokens + scores)
    yield Entry(f"{name}.mlp", 2 * matrices + 5 * width + norm, 4 * matrices * tokens)


def bert_large(tokens: int = 128, masked: int = 20) -> Iterator[Entry]:
    """Devlin et al., for pre-training, uncased: 24 blocks; the decoder is the word embedding."""
    width, words, positions = 1024, 30522, 512
    yield Entry("embeddings", (words + positions + 2 + 2) * width, 0)
    for block in range(24):
        yield from _block(f"encoder.{block}", width, tokens)
    pooler, nsp = _linear("", width, width), _linear("", width, 2)
    yield Entry("pooler", pooler.elements + nsp.elements, pooler.flops + nsp.flops)
    head = _linear("", width, width)
    decoder = 2 * width * words
    yield Entry("mlm_head", head.elements + 2 * width + words, masked * (head.flops + decoder))


def gpt2(tokens: int = 1024) -> Iterator[Entry]:
    """Radford et al., small: 12 blocks; what predicts the next token is the word embedding."""
    width, words, positions = 768, 50257, 1024
    yield Entry("embeddings", (words + positions) * width, 0)
    for block in range(12):
        yield from _block(f"h.{block}", width, tokens)
    yield Entry("ln_f+head", 2 * width, 2 * width * words * tokens)


COMMON = """Times are not measured layer by layer: forward = FLOPs x batch / effective rate,
    backward = 2 x forward, with one rate for all layers (really, norms and small convolutions are
    slower than their FLOPs say, large matrices faster)."""
RESNET50_SOURCE = f"""Parameters: He et al., Deep Residual Learning for Image Recognition (CVPR
    2016), with the stride in the 3x3 convolutions (v1.5); each convolution has its batch norm.
    {COMMON} Batch 64 of 224x224; rate: 60 % of {PEAK_TEXT}, chosen to give the 384 images/s that
    NVIDIA published (DeepLearningExamples, MXNet ResNet50 v1.5, DGX-1 V100 16GB, FP32, batch
    96)."""
VGG16_SOURCE = f"""Parameters: Simonyan and Zisserman, Very Deep Convolutional Networks for
    Large-Scale Image Recognition (ICLR 2015), configuration D. {COMMON} Batch 32 of 224x224;
    rate: 116 % of {PEAK_TEXT}. It may exceed the peak because FLOPs are those of direct
    convolution, and cuDNN's Winograd algorithm needs fewer. The 116 % are those of another GPU, an
    RTX 2080 (10.07 TFLOP/s) with 126 images/s (github.com/ggg17226/rtx2080-dl-benchmark,
    TensorFlow 1.11, FP32, batch 32), carried over; so the 196 images/s here are an assumption."""
BERT_SOURCE = f"""Parameters: Devlin et al., BERT (NAACL 2019), BERT-large uncased for pre-training
    (30,522 words; masked-word and next-sentence heads; the decoder's matrix is the word embedding,
    whose gradient is complete with the embeddings' backward pass; the pooler's entry has the
    next-sentence head). {COMMON} Embeddings' look-ups count as free. Batch 32 of 128 tokens, 20 of
    them predicted; rate: 76.6 % of {PEAK_TEXT}, chosen to give the 50 sequences/s that NVIDIA
    published (DeepLearningExamples, PyTorch BERT, DGX-1 V100 32GB, FP32, sequence length 128,
    batch 32 per accumulation step)."""
GPT2_SOURCE = f"""Parameters: Radford et al., Language Models are Unsupervised Multitask Learners
    (2019), GPT-2 small (50,257 tokens, context 1,024; the output matrix is the word embedding,
    whose gradient is complete with the embeddings' backward pass). {COMMON} Embeddings' look-ups
    count as free, attention is computed in full (not its causal half). Batch 4 of 1,024 tokens;
    rate: 76.6 % of {PEAK_TEXT}, as of BERT-large, whose matrix products are alike; no published
    throughput was at hand to compare with."""


def _model(name: str, source: str, entries: Iterator[Entry], batch: int, share: float) -> Model:
    def time_ps(flops: int) -> int:
        return round(flops * batch / (share * PEAK) * PS_PER_S / PS_PER_US) * PS_PER_US

    layers = tuple(
        Layer(entry.name, entry.elements, time_ps(entry.flops), 2 * time_ps(entry.flops))
        for entry in entries
    )
    return Model(name, " ".join(source.split()), "float32", layers)


def models() -> list[Model]:
    """All that come with Ringleaf."""
    return [
        _model("resnet50", RESNET50_SOURCE, resnet50(), 64, 0.60),
        _model("vgg16", VGG16_SOURCE, vgg16(), 32, 1.16),
        _model("bert-large", BERT_SOURCE, bert_large(), 32, 0.766),
        _model("gpt2", GPT2_SOURCE, gpt2(), 4, 0.766),
    ]


if __name__ == "__main__":
    MODELS.mkdir(exist_ok=True)
    for model in models():
        (MODELS / f"{model.name}.yaml").write_text(as_yaml(model))
