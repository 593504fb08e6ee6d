"""The form of a kind of workload, as the engine of runs needs it.

A kind is a folder of `experiments/workloads`, or an entry point of a package in the group
`ringleaf.workloads`. It has options (a model of them), an experiment, which measures, and results,
which are written, read and shown. All else is the engine's: resolution of options, sessions,
tables, files, pages, figures, estimates, sweeps, `plot` and `compare`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ringleaf.experiments.estimates.estimate import Need
    from ringleaf.experiments.estimates.pace import RunPaces
    from ringleaf.experiments.records.columns import Column
    from ringleaf.experiments.records.folder import RunFolder
    from ringleaf.experiments.records.results import Results
    from ringleaf.experiments.runs.progress import Progress
    from ringleaf.experiments.spec.network import NetworkSpec
    from ringleaf.topologies.family import Counts

SpecT = TypeVar("SpecT", bound="NetworkSpec")


@dataclass(frozen=True, slots=True)
class Measure:
    """How rows of a file are compared with those of another run.

    Attributes:
        keys: The columns that tell rows apart, besides the options of a sweep.
        time: The column of the time that is compared, in picoseconds.
        more: Columns of further times: each is compared as if it were a row's of its own.
        whole: The time of a whole run in its summary, compared likewise; "": rows are all.
    """

    keys: tuple[str, ...]
    time: str
    more: tuple[str, ...] = ()
    whole: str = ""

    @property
    def times(self) -> tuple[str, ...]:
        """All columns of times that are compared."""
        return (self.time, *self.more)


@dataclass(frozen=True, slots=True)
class SweepFigure:
    """A figure of a sweep.

    Attributes:
        draw: Draws it.
        title: Its title on the page.
        caption: What it shows.
    """

    draw: Callable[[], Figure]
    title: str
    caption: str


class Experiment(ABC, Generic[SpecT]):
    """A run with its topology, which measures one thing after the other.

    Attributes:
        spec: The options.
        results: What it has measured so far.
        paces: The paces of this machine, if it takes note of them.
        taken_s: The time that measurements have taken.
        log: Lines for `log.txt`, which may differ from run to run.
        watched: Whether timelines are wanted.
    """

    spec: SpecT
    paces: RunPaces | None = None
    taken_s: float = 0.0
    watched: bool = True

    if TYPE_CHECKING:

        @property
        def results(self) -> Results:
            """Return what it has measured so far."""

    def __init__(self) -> None:
        self.log: list[str] = []

    @property
    def count(self) -> int:
        """The number of measurements."""
        return 1

    @property
    def need(self) -> Need | None:
        """The memory and time that it will need; None: not known."""
        return None

    @property
    def expected_s(self) -> float:
        """The time of all measurements, as foretold; 0: nobody knows."""
        return 0.0

    def plain(self) -> dict[str, Any]:
        """Return what `config.json` and `--dry-run` tell: the options as resolved, and a plan."""
        return self.spec.plain()

    @abstractmethod
    def record(self, shown: Progress, folder: RunFolder) -> Generator[None]:
        """Measure all, and yield after each measurement, when the results have its rows.

        Args:
            shown: The progress line.
            folder: The run directory, for files that are written meanwhile.
        """


class WorkloadKind(ABC, Generic[SpecT]):
    """A kind of workload. It has no state.

    To learn which kind some options are of, a command loads all kinds, so a kind's module has
    little: the rest is imported by the methods that need it.

    Attributes:
        name: Its name, in `summary.json` and in messages.
        title: What messages call it: `training jobs`.
        key: The option that makes an experiment one of this kind; "": all that have no such key.
        lists: Options that are lists by themselves, and not swept.
        is_typed: Whether `ringleaf run` takes its options' flags, too.
        measures: How rows are compared, of runs and of sweeps.
        clashing: Options whose names are columns of rows for something else.
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    key: ClassVar[str]
    lists: ClassVar[Sequence[str]] = ("algo",)
    is_typed: ClassVar[bool] = False
    measures: ClassVar[Sequence[Measure]] = ()
    clashing: ClassVar[Sequence[str]] = ()

    @property
    @abstractmethod
    def spec(self) -> type[SpecT]:
        """Its options."""

    def spec_for(self, options: Mapping[str, Any]) -> type[SpecT]:
        """Return the model of these options."""
        del options
        return self.spec

    def specs(self) -> list[type[SpecT]]:
        """Return all models of options that this kind has."""
        return [self.spec]

    def lists_of(self, spec: type[SpecT]) -> Collection[str]:
        """Return the options of a model that are lists by themselves, and not swept."""
        del spec
        return self.lists

    def meant(self, options: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Return the options that these mean; `where` begins messages.

        Raises:
            ConfigError: If they make no sense.
        """
        del where
        return dict(options)

    @abstractmethod
    def folder_for(self, options: Mapping[str, Any]) -> str:
        """Return the name of the folder for results, if none is given."""

    def resolve(self, options: Mapping[str, Any], where: str = "") -> SpecT:
        """Check the options of an experiment of this kind, and fill in the rest.

        Args:
            options: Options as typed, or as YAML has them.
            where: The beginning of messages: `spec jobs.yaml: `.

        Raises:
            ConfigError: If one is wrong; the message names it, its value and the valid ones.
        """
        meant = self.meant(options, where)
        out = {"out": str(Path("runs") / self.folder_for(options))}
        return self.spec_for(options).read(out | meant, where)

    def fitted(self, spec: SpecT) -> SpecT:
        """Return the spec with what follows from its workload: the number of hosts.

        Raises:
            ConfigError: If the workload can't be made or read.
        """
        return spec

    def check(self, spec: SpecT, counts: Counts) -> None:
        """Check what only this kind knows, before anything large is made.

        Args:
            spec: The options, fitted.
            counts: The size of the topology.

        Raises:
            ConfigError: If it can't be run; the message names the option, the value and a remedy.
        """

    def places(self, spec: SpecT, hosts: range) -> list[tuple[Sequence[int], Sequence[int]]]:
        """Return the hosts of workers, and of servers, of each group whose switches add.

        They are numbers, which racks follow from; none: racks are not checked beforehand.
        """
        del spec, hosts
        return []

    @abstractmethod
    def need(self, spec: SpecT, counts: Counts) -> Need:
        """Return the memory and time that a run will need, by little more than counting.

        Args:
            spec: The options, fitted.
            counts: The size of the topology.
        """

    def plan(self, spec: SpecT) -> tuple[dict[str, Any], Need | None]:
        """Return what `--dry-run` tells: the options as resolved, with a plan, and the needs."""
        from ringleaf.experiments.setup.ranks import count_nodes

        experiment = self.experiment(spec)
        fitted = self.fitted(spec)
        return experiment.plain(), experiment.need or self.need(fitted, count_nodes(fitted))

    def command(self, options: Mapping[str, Any]) -> str:
        """Return the command that does a run again, which may read its `spec.yaml`."""
        del options
        return "ringleaf run --spec spec.yaml"

    @abstractmethod
    def experiment(self, spec: SpecT, **own: Any) -> Experiment[SpecT]:
        """Return the experiment of a spec; `own` is what only this kind knows.

        Raises:
            RingleafError: If the options, or the topology, do not allow it.
        """

    @abstractmethod
    def read(self, folder: Path, summary: Mapping[str, Any]) -> Results:
        """Load the results of a run from its directory, given its summary.

        Raises:
            ConfigError: If a file is missing or wrong.
        """

    def rows(self, summary: Mapping[str, Any]) -> list[Any]:
        """Return the rows of a run, from its summary."""
        return list(summary["rows"])

    def swept_rows(self, folder: Path, summary: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the rows that a run has in the file of a sweep, without options."""
        del folder
        return [dict(row) for row in summary["rows"]]

    def column_of(self, name: str) -> str:
        """Return the column of an option in a sweep's rows: `asked_rate`, if they have a rate."""
        return f"asked_{name}" if name in self.clashing else name

    def swept_options(self, names: Sequence[str]) -> list[str]:
        """Return the options that a sweep's rows have, of runs that differ by `names`."""
        return list(names)

    def swept_columns(self, lines: Sequence[Mapping[str, Any]]) -> Sequence[Column]:
        """Return the columns of a sweep's page, behind options, for the rows of all runs."""
        del lines
        return ()

    def told_apart(self, lines: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
        """Return the options that a sweep's page tells, of runs that differ by `names`."""
        del lines
        return list(names)

    def sweep_figures(
        self, lines: Sequence[Mapping[str, Any]], names: Sequence[str]
    ) -> dict[str, SweepFigure]:
        """Return figures of all runs of a sweep, by name.

        Args:
            lines: The rows of all runs, each with the options by which runs differ.
            names: These options.
        """
        del lines, names
        return {}
