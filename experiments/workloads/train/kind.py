"""Training scripts of the user's own, on an emulated network."""

from __future__ import annotations

import os.path
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringleaf.core.extras import require
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.kind import Measure, WorkloadKind
from ringleaf.experiments.spec.kinds import parse_yes
from ringleaf.experiments.spec.options import file_name, options_of
from ringleaf.experiments.workloads.train.modules import check_module, script_words

if TYPE_CHECKING:
    from ringleaf.experiments.estimates.estimate import Need
    from ringleaf.experiments.records.columns import Column
    from ringleaf.experiments.workloads.train.account import CallRow
    from ringleaf.experiments.workloads.train.experiment import TrainExperiment
    from ringleaf.experiments.workloads.train.results import TrainResults
    from ringleaf.experiments.workloads.train.spec import TrainSpec
    from ringleaf.topologies.family import Counts

SCRIPT = "script"
"""The key that makes an experiment one of a training script."""


class TrainKind(WorkloadKind["TrainSpec"]):
    """A script, each rank of which is a process."""

    name = "train"
    key = SCRIPT
    lists = (SCRIPT, "detours")
    clashing = ("algo", "ranks")  # of a call
    measures = (
        Measure(("call", "group", "ranks", "size_bytes", "dtype", "redop", "algo"), "time_ps"),
    )

    @property
    def spec(self) -> type[TrainSpec]:
        """Its options."""
        from ringleaf.experiments.workloads.train.spec import TrainSpec

        return TrainSpec

    def folder_for(self, options: Mapping[str, Any]) -> str:
        """Return the script's name."""
        first = next(iter(script_words(options[SCRIPT])), "")
        is_module = parse_yes("module", str(options.get("module") or "no"))
        return file_name(first.rpartition(".")[2] if is_module else Path(first).stem)

    def check(self, spec: TrainSpec, counts: Counts) -> None:
        """Check that there is PyTorch, such a script, and a host for each rank."""
        require("torch", self.name)
        got = spec.script[0] if spec.script else ""
        if spec.module:
            check_module(got)
        elif not os.path.isfile(got):
            raise ConfigError(f"script: must be a Python file, got {got!r}, and there is none")
        if spec.ranks > counts.hosts:
            raise ConfigError(
                f"ranks: must be at most {counts.hosts}, the hosts of {spec.topo}, got "
                f"{spec.ranks}; take a larger topology, like fattree,k=8"
            )

    def need(self, spec: TrainSpec, counts: Counts) -> Need:
        """Return the memory that processes need, but for what the script takes."""
        del counts  # of all hosts; the network has one for each rank
        from ringleaf.experiments.setup.ranks import count_nodes
        from ringleaf.experiments.workloads.train.need import need_of_script

        fitted = spec.model_copy(update={"hosts": spec.hosts or spec.ranks})
        return need_of_script(spec, count_nodes(fitted))

    def experiment(self, spec: TrainSpec, **own: Any) -> TrainExperiment:
        """Return the experiment; `serve` is the folder of a fabric, if others start the ranks."""
        from ringleaf.experiments.workloads.train.experiment import TrainExperiment

        return TrainExperiment(spec, **own)

    def read(self, folder: Path, summary: Mapping[str, Any]) -> TrainResults:
        """Load the results of a run from its directory."""
        from ringleaf.experiments.workloads.train.results import read_results

        return read_results(folder, summary)

    def rows(self, summary: Mapping[str, Any]) -> list[CallRow]:
        """Return the rows of a run, from its summary."""
        from ringleaf.experiments.workloads.train.account import CallRow

        return [CallRow(**row) for row in summary["rows"]]

    def swept_columns(self, lines: Sequence[Mapping[str, Any]]) -> Sequence[Column]:
        """Return the columns of a sweep's page."""
        from ringleaf.experiments.workloads.train.results import COLUMNS

        del lines
        return COLUMNS

    def command(self, options: Mapping[str, Any]) -> str:
        """Return the command that does a run again."""
        flags = {name for name, option in options_of(self.spec).items() if option.is_flag}
        typed: list[str] = []
        for name, value in options.items():
            if name in flags:  # one with a value would take the script's place by it
                typed += [f"--{name}"] if parse_yes(name, str(value)) else []
            elif name not in (SCRIPT, "out"):
                typed += [f"--{name}", str(value)]
        return shlex.join(["ringleaf", "train", *typed, "--", *script_words(options[SCRIPT])])


KIND = TrainKind()
