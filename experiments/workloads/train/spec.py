"""Experiments whose workload is a training script of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import BeforeValidator, ValidationInfo, model_validator

from ringleaf.collectives.compression.registry import parse_compressor
from ringleaf.errors import ConfigError
from ringleaf.experiments.spec import kinds
from ringleaf.experiments.spec.checked import WHERE
from ringleaf.experiments.spec.kinds import ValueReader, label, option
from ringleaf.experiments.spec.network import NetworkSpec
from ringleaf.experiments.workloads.train.clock import parse_compute
from ringleaf.experiments.workloads.train.modules import AS_MODULE, script_words
from ringleaf.experiments.workloads.train.rules import RuleList, parse_rules

MOST_RANKS = 64
"""The most ranks: each is a process."""

_As = Annotated[str, ValueReader(lambda text, where: text)]


def _compressor(text: str, where: str) -> object:
    return text and parse_compressor(text, where)


class TrainSpec(NetworkSpec):
    """A training script on an emulated network."""

    script: Annotated[tuple[str, ...], BeforeValidator(script_words)] = option(
        "", "Training script: a Python file, and its own arguments"
    )
    module: kinds.Yes = option(
        "no",
        "The script is a module's name, as of python -m: package.train",
        flags="--module -m",
    )
    ranks: Annotated[int, kinds.whole(1, MOST_RANKS)] = option(
        "4", "Number of ranks: processes, on the first hosts of the topology", flags="--ranks -n"
    )
    rules: Annotated[_As, kinds.checked(lambda text, where: parse_rules(text, where))] = option(
        "ring",
        "Algorithms, the first rule that fits: 'allreduce>=64K:switchml, allgather@4:allgather, "
        "ring'; a name alone is for all other allreduces",
        flags="--algo",
        name="algo",
    )
    compute: Annotated[str, kinds.checked(lambda text, where: parse_compute(text, where))] = option(
        "1",
        "Time of computing: a factor on the measured processor time, flops:RATE, or a YAML file "
        "with times of modules",
        flags="--compute",
    )
    compress: Annotated[_As, kinds.checked(_compressor)] = option(
        "",
        "Compressor of DDP's gradients, with error feedback: topk:1%, randomk:1%",
        flags="--compress",
    )
    timeline: kinds.Yes = option(
        "yes", "Note the passes of layers, for the timeline", flags="--timeline"
    )
    check: kinds.Yes = option("yes", "Check every result by its definition", flags="--check")

    chakra: kinds.Yes = option(
        "no", "Write Chakra traces of what ranks did, a file per rank", flags="--chakra"
    )

    @property
    def title(self) -> str:
        """The script's name without its folder and its ending, or the module's last one."""
        first = self.script[0]
        return first.rpartition(".")[2] if self.module else Path(first).stem

    @property
    def command_line(self) -> tuple[str, ...]:
        """What each rank is to run, as `python` takes it."""
        return (AS_MODULE, *self.script) if self.module else self.script

    @property
    def algorithms(self) -> RuleList:
        """The rules, read."""
        return parse_rules(self.rules)

    @property
    def needed_hosts(self) -> int:
        """The number of hosts that ranks take."""
        return self.ranks

    @model_validator(mode="after")
    def _check_train(self, info: ValidationInfo) -> Self:
        where = label(info, WHERE)
        refused = {"pcap": self.pcap, "record": self.record is not None}
        for name, is_set in refused.items():
            if is_set:
                got = getattr(self, name)
                raise ConfigError(
                    f"{where}{name}: not with a training script yet, got {str(got)!r}; leave it out"
                )
        return self
