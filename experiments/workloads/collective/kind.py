"""Collectives: the kind of experiments that name no other workload."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.errors import ConfigError
from ringleaf.experiments.figures.sorting import told_apart
from ringleaf.experiments.runs.kind import Measure, SweepFigure, WorkloadKind
from ringleaf.experiments.setup.ranks import check_given_ranks, count_ranks, one_collective
from ringleaf.experiments.spec.choices import FLOW
from ringleaf.experiments.spec.options import ASIDE, folder_name, options_of
from ringleaf.experiments.workloads.collective.spec import CollectiveSpec
from ringleaf.networks.flow.scope import MOST_WHOLE

if TYPE_CHECKING:
    from ringleaf.experiments.estimates.estimate import Need
    from ringleaf.experiments.records.columns import Column
    from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
    from ringleaf.experiments.workloads.collective.results import (
        CollectiveResults,
    )
    from ringleaf.experiments.workloads.collective.rows import (
        CollectiveRow,
    )
    from ringleaf.topologies.family import Counts

OPTIONS = options_of(CollectiveSpec)
"""The options of experiments with a collective."""


class CollectiveKind(WorkloadKind[CollectiveSpec]):
    """Algorithms of one collective, each at some sizes."""

    name = "collective"
    key = ""
    spec = CollectiveSpec
    lists = ("algo", "size")
    measures = (Measure(("algo", "size_bytes"), "time_ps"),)

    def folder_for(self, options: Mapping[str, Any]) -> str:
        """Return a name made of the options that are not defaults: `fattree-loss=0.1%-seed=3`.

        The same options give the same name, so that running them again replaces equal files.
        """
        return run_name(options)

    def check(self, spec: CollectiveSpec, counts: Counts) -> None:
        """Check that the algorithms are of one collective, and take so many ranks."""
        one_collective(spec.algos)
        ranks = count_ranks(counts.hosts, spec.servers)
        check_given_ranks(spec.algos, ranks)
        for name in spec.algos:
            method = ALGORITHMS[name].method
            if method is not None:
                method.make(0, ranks)  # which may refuse the number
        if spec.net == FLOW and ranks > MOST_WHOLE:
            self._check_classes(spec, ranks)

    def _check_classes(self, spec: CollectiveSpec, ranks: int) -> None:
        """Check that collectives of very many ranks go by classes of them."""
        from ringleaf.experiments.estimates.estimate import without_classes

        symmetric = [name for name in ALGORITHMS.shipped() if ALGORITHMS[name].symmetric]
        for name in spec.algos:
            for size_bytes in spec.sizes_bytes:
                why = without_classes(spec, ALGORITHMS[name], ranks, size_bytes)
                if why:
                    raise ConfigError(
                        f"algo: {name} must go by classes of ranks with more than {MOST_WHOLE} "
                        f"hosts, got {ranks}, but {why}; by classes go {', '.join(symmetric)}"
                    )

    def places(
        self, spec: CollectiveSpec, hosts: range
    ) -> list[tuple[Sequence[int], Sequence[int]]]:
        """Return ranks, and the servers behind them."""
        ranks = len(hosts) - spec.servers
        return [(hosts[:ranks], hosts[ranks:])]

    def need(self, spec: CollectiveSpec, counts: Counts) -> Need:
        """Return the memory and time of the largest row, and of all rows."""
        from ringleaf.experiments.estimates.estimate import need

        return need(spec, counts, 1)

    def plan(self, spec: CollectiveSpec) -> tuple[dict[str, Any], Need]:
        """Return the options as resolved, and the needs, for which little is built."""
        from ringleaf.experiments.estimates.estimate import need
        from ringleaf.experiments.estimates.pace import read_paces
        from ringleaf.experiments.setup.network import build_topology, mean_distance
        from ringleaf.experiments.setup.ranks import count_nodes

        graph = build_topology(
            spec.topo, rate_bps=spec.rate_bps, delay_ps=spec.delay_ps, hosts=spec.hosts
        )
        return spec.plain(), need(spec, count_nodes(spec), mean_distance(graph), read_paces())

    def experiment(self, spec: CollectiveSpec, **own: Any) -> CollectiveExperiment:
        """Return the experiment; `inputs` are the ranks' tensors, if the caller has some."""
        from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment

        return CollectiveExperiment(spec, **own)

    def read(self, folder: Path, summary: Mapping[str, Any]) -> CollectiveResults:
        """Load the results of a run from its directory."""
        from ringleaf.experiments.workloads.collective.results import read_results

        return read_results(folder, summary)

    def rows(self, summary: Mapping[str, Any]) -> list[CollectiveRow]:
        """Return the rows of a run, from its summary."""
        from ringleaf.experiments.workloads.collective.rows import (
            CollectiveRow,
        )

        return [CollectiveRow(**row) for row in summary["rows"]]

    def swept_rows(self, folder: Path, summary: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the rows that a run has in the file of a sweep, each after its network."""
        results = self.read(folder, summary)
        links = results.reference
        about = {"clock": results.clock, "ranks": results.ranks}
        about |= {"rate_bps": links.rate_bps, "delay_ps": links.delay_ps}
        return [about | row for row in summary["rows"]]

    def swept_options(self, names: Sequence[str]) -> list[str]:
        """Return the options that a sweep's rows have: those of sparse tensors in any case."""
        return list(dict.fromkeys([*names, "density", "cluster", "overlap"]))

    def swept_columns(self, lines: Sequence[Mapping[str, Any]]) -> Sequence[Column]:
        """Return the columns of a sweep's page."""
        from ringleaf.experiments.workloads.collective.results import COLUMNS, DROPS

        del lines
        return [*(each for each in COLUMNS if each.is_swept), DROPS]

    def told_apart(self, lines: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
        """Return the options besides algorithm and size, which have columns."""
        return told_apart(lines, names)

    def sweep_figures(
        self, lines: Sequence[Mapping[str, Any]], names: Sequence[str]
    ) -> dict[str, SweepFigure]:
        """Return times against the option with most values, and speed-ups by sparsity."""
        from ringleaf.experiments.figures import swept
        from ringleaf.experiments.workloads.collective import sparse_figure

        caption = "Of each run, against the option with most values."
        figures = {"sweep": SweepFigure(partial(swept.make, lines, names), "Times", caption)}
        texts = sparse_figure.as_texts(lines)
        if sparse_figure.fits(texts):
            caption = "Over a ring with all elements, by the share of those that are not zero."
            draw = partial(sparse_figure.make, texts)
            figures["speedup"] = SweepFigure(draw, "Speed-up by sparsity", caption)
        return figures

    def command(self, options: Mapping[str, Any]) -> str:
        """Return the command that does a run again."""
        return make_command(options)


def run_name(options: Mapping[str, str]) -> str:
    """Return a folder's name for options: those that are not defaults."""
    parts = [options.get("topo", OPTIONS["topo"].default)]
    parts += [
        f"{name}={options[name].replace(' ', '')}"
        for name in OPTIONS
        if name not in ("topo", *ASIDE)
        and options.get(name, OPTIONS[name].default) != OPTIONS[name].default
    ]
    return folder_name("-".join(parts))


def make_command(options: Mapping[str, str]) -> str:
    """Return the command that runs these options again, without the places of results."""
    values = (
        f"{OPTIONS[k].variable}={shlex.quote(v)}" for k, v in options.items() if k not in ASIDE
    )
    return " ".join(("make exp", *values))


KIND = CollectiveKind()

resolve = KIND.resolve
