"""Models and their division among ranks, by name.

Sizes are like those of models of that kind; rates of computation are parameters, not measurements.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringleaf.hosts.workload.llm.sizes import Split, TransformerSizes


@dataclass(frozen=True, slots=True)
class Preset:
    """A model, and a way to divide it."""

    title: str
    sizes: TransformerSizes
    split: Split


PRESETS = {
    "gpt13b": Preset(
        "GPT of 13 billion parameters on 128 ranks",
        TransformerSizes(layers=40, hidden=5120, heads=40, kv_heads=40, ffn=20480, sequence=2048),
        Split(tp=8, pp=4, dp=4, micro_batches=8),
    ),
    "llama70b": Preset(
        "Llama-like model of 70 billion parameters on 512 ranks",
        TransformerSizes(
            layers=80,
            hidden=8192,
            heads=64,
            kv_heads=8,
            ffn=28672,
            ffn_matrices=3,
            sequence=4096,
        ),
        Split(tp=8, pp=4, dp=16, micro_batches=8, sequence_parallel=True, zero=1),
    ),
    "moe8x7b": Preset(
        "Mixture of 8 experts, 47 billion parameters, on 64 ranks",
        TransformerSizes(
            layers=32,
            hidden=4096,
            heads=32,
            kv_heads=8,
            ffn=14336,
            ffn_matrices=3,
            sequence=4096,
            experts=8,
            topk=2,
        ),
        Split(tp=2, pp=4, dp=8, ep=8, micro_batches=8),
    ),
}
