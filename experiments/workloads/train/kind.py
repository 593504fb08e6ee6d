"""Training scripts of the user's own, on an emulated network."""

from __future__ import annotations

import os.path
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringleaf.core.extras import require
from ringleaf.errors import ConfigError
from ringleaf.experiments.runs.kind import Measure, WorkloadKind
from ringleaf.experiments.spec.options import file_name

if TYPE_CHECKING:
    from ringleaf.experiments.estimates.estimate import Need
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
        script = options[SCRIPT]
        first = script if isinstance(script, str) else script[0]
        return file_name(Path(str(first)).stem)

    def check(self, spec: TrainSpec, counts: Counts) -> None:
        """Check that there is PyTorch, such a script, and a host for each rank."""
        require("torch", self.name)
        if not spec.script or not os.path.isfile(spec.script[0]):
            got = spec.script[0] if spec.script else ""
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

    def command(self, options: Mapping[str, Any]) -> str:
        """Return the command that does a run again."""
        others = {name: value for name, value in options.items() if name not in (SCRIPT, "out")}
        typed = [part for name, value in others.items() for part in (f"--{name}", str(value))]
        script = options[SCRIPT]
        words = [script] if isinstance(script, str) else map(str, script)
        return shlex.join(["ringleaf", "train", *typed, "--", *words])


KIND = TrainKind()
