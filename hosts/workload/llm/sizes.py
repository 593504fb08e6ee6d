"""The sizes of a transformer, and of the ways in which it is divided among ranks."""

from __future__ import annotations

from dataclasses import dataclass

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.graph import check_ranks
from ringleaf.hosts.workload.llm.pipeline import CHIMERA, INTERLEAVED, check_pipeline


@dataclass(frozen=True, slots=True)
class TransformerSizes:
    """A transformer of equal layers; its embedding and head are left out.

    Attributes:
        layers: Number of layers.
        hidden: Width of a token's activation.
        heads: Attention heads.
        kv_heads: Heads of keys and values; fewer than `heads` with grouped queries.
        ffn: Inner width of the feed-forward network, of one expert's if there are experts.
        ffn_matrices: Its matrices: 2, or 3 if it is gated.
        sequence: Tokens of a sequence.
        experts: Experts of each layer; 0: none.
        topk: Experts that each token is sent to.
        item_bytes: Bytes of a parameter, gradient or activation.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    ffn_matrices: int = 2
    sequence: int = 2048
    experts: int = 0
    topk: int = 2
    item_bytes: int = 2

    @property
    def kv_hidden(self) -> int:
        """The width of a token's keys, and of its values."""
        return self.hidden * self.kv_heads // self.heads

    @property
    def attention_parameters(self) -> int:
        """Parameters of a layer's attention: queries and output, keys and values."""
        return 2 * self.hidden * self.hidden + 2 * self.hidden * self.kv_hidden

    @property
    def ffn_parameters(self) -> int:
        """Parameters of a layer's feed-forward network, or of one of its experts."""
        return self.ffn_matrices * self.hidden * self.ffn

    @property
    def parameters(self) -> int:
        """Parameters of all layers."""
        return self.layers * (
            self.attention_parameters + max(self.experts, 1) * self.ffn_parameters
        )


@dataclass(frozen=True, slots=True)
class Split:
    """The division of a model and its batch among tp * cp * dp * pp ranks.

    Attributes:
        tp: Ranks that share each layer's matrices (tensor parallel).
        pp: Ranks in a row, each with some of the layers (pipeline parallel).
        dp: Replicas, each with a part of the batch (data parallel).
        ep: Of these, replicas that share the experts of a layer (expert parallel).
        expert_parts: Parts of a micro-batch's tokens that go to experts one after the other.
        cp: Ranks that share each sequence (context parallel).
        micro_batch: Sequences of a micro-batch.
        micro_batches: Micro-batches of an iteration, of each replica.
        schedule: Order of the pipeline's work, one of `pipeline.SCHEDULES`.
        chunks: Parts of the model on each rank, if the schedule is interleaved.
        zero: Stage of ZeRO, 0 to 3: how far replicas share the model's state.
        sequence_parallel: Whether all-reduces of `tp` are reduce-scatters and all-gathers.
        scatter_gather: Whether each rank of `tp` sends its part of an activation only.
        layers_per_stage: Layers of each stage that are simulated; 0: all of them.
        flops: Floating-point operations per second of a rank, as it really computes.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    expert_parts: int = 1
    cp: int = 1
    micro_batch: int = 1
    micro_batches: int = 1
    schedule: str = "1f1b"
    chunks: int = 1
    zero: int = 0
    sequence_parallel: bool = False
    scatter_gather: bool = False
    layers_per_stage: int = 0
    flops: float = 150e12

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self.tp * self.cp * self.dp * self.pp

    @property
    def reduces_each(self) -> bool:
        """Whether replicas add up the gradients of each micro-batch, as none keeps them whole.

        With a pipeline, they do so once for all micro-batches.

        Source:
            DeepSpeed's engine.allreduce_gradients, and backward_maybe_with_nosync of PyTorch's
            pipeline stages.
        """
        return self.zero > 1 and self.pp == 1

    @property
    def stages(self) -> int:
        """Stages that a micro-batch passes: several of a rank, if it has several chunks."""
        return self.pp * self.chunks


def check(sizes: TransformerSizes, split: Split, where: str) -> None:
    """Check that a model can be divided so.

    Raises:
        ConfigError: If it can't; the message names the size.
    """
    check_ranks(where, split.ranks)
    check_pipeline(split.schedule, split.pp, split.micro_batches, split.chunks, where)
    for name, value, by, of in (
        ("layers", sizes.layers, split.stages, "pp times chunks"),
        ("heads", sizes.heads, split.tp, "tp"),
        ("heads", sizes.heads, sizes.kv_heads, "kv_heads"),
        ("hidden", sizes.hidden, sizes.heads, "heads"),
        ("ffn", sizes.ffn, split.tp, "tp"),
        ("sequence", sizes.sequence, split.cp * split.tp, "cp times tp"),
        ("dp", split.dp, split.ep, "ep"),
        ("experts", sizes.experts, split.ep, "ep"),
    ):
        if value % by:
            raise ConfigError(f"{where}{name}: must be a multiple of {of}, {by}, got {value}")
    if sizes.kv_heads % split.tp and split.tp % sizes.kv_heads:
        raise ConfigError(
            f"{where}kv_heads: must be a multiple of tp, {split.tp}, or a divisor, got "
            f"{sizes.kv_heads}"
        )
    if split.ep > 1 and not sizes.experts:
        raise ConfigError(f"{where}ep: needs a model with experts, got {split.ep} and none")
    if split.expert_parts > 1 and not sizes.experts:
        raise ConfigError(
            f"{where}expert_parts: needs a model with experts, got {split.expert_parts} and none"
        )
    if sizes.experts and not 1 <= sizes.topk <= sizes.experts:
        raise ConfigError(
            f"{where}topk: must be from 1 to the {format_count(sizes.experts, 'expert')}, got "
            f"{sizes.topk}"
        )
    most = sizes.layers // split.stages
    if not 0 <= split.layers_per_stage <= most:
        raise ConfigError(
            f"{where}layers_per_stage: a stage has {format_count(most, 'layer')}, got "
            f"{split.layers_per_stage}"
        )
    if split.zero == 3 and split.schedule in (INTERLEAVED, CHIMERA):
        raise ConfigError(
            f"{where}zero: stage 3 goes with schedules of one model part per rank, got "
            f"{split.schedule!r}; take zero 2, or schedule 1f1b"
        )
