"""Experiments from Python: `ringleaf.run`, `ringleaf.sweep`, `ringleaf.load`.

    >>> import ringleaf
    >>> result = ringleaf.run(
    ...     topo="leafspine,leaves=1,spines=1,hosts=3", algo=["ring", "switchml"], size="4K"
    ... )
    >>> [(row.algo, row.size_bytes, row.wrong) for row in result.rows]
    [('ring', 4096, 0), ('switchml', 4096, 0)]
    >>> result.fastest().algo
    'switchml'

Options are those of the command line, as keywords: texts, as one would type them, numbers or lists.
A topology, an algorithm or schedule, and tensors of one's own may stand in for names.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.algorithm import Request as Asked
from ringleaf.collectives.cost import Cost
from ringleaf.collectives.critical_path import sent_bytes
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Schedule
from ringleaf.core.file_names import in_home
from ringleaf.core.tensors import Array
from ringleaf.core.units import format_count, is_whole
from ringleaf.errors import ConfigError
from ringleaf.experiments.records.config import done_places, read_json, read_summary
from ringleaf.experiments.records.folder import PLAN, REPORT, ROWS, SUMMARY, SWEPT_ROWS, folder_of
from ringleaf.experiments.runs import session
from ringleaf.experiments.runs import sweep as sweeps
from ringleaf.experiments.runs.checks import check
from ringleaf.experiments.runs.drawer import Drawer
from ringleaf.experiments.runs.machines import DaskScheduler
from ringleaf.experiments.runs.registry import WORKLOADS
from ringleaf.experiments.runs.request import kind_of_run, resolve
from ringleaf.experiments.runs.spec_file import Case, expand, swept
from ringleaf.experiments.runs.workers import RunProcesses
from ringleaf.experiments.spec.kinds import DTYPES
from ringleaf.experiments.spec.options import file_name
from ringleaf.topologies.family import Counts, Family
from ringleaf.topologies.graph import hosts, index, switches
from ringleaf.topologies.registry import TOPOLOGIES

if TYPE_CHECKING:
    import pandas as pd
    import torch


BY_GRAPH = "given by its graph"
"""What a family says that has one topology, a graph of the caller's."""

_ARRAYS = ("numpy.ndarray", "torch.Tensor")

MOST_DIGITS = 100  # of a whole number: Python can't write one of thousands


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a run, which notebooks can show.

    Attributes:
        path: The PNG file; a PDF lies beside it.
    """

    path: Path
    _own: tempfile.TemporaryDirectory[str] | None = field(default=None, repr=False)

    def _repr_png_(self) -> bytes:
        return self.path.read_bytes()


@dataclass(frozen=True)
class Result:
    """The results that a run or a sweep has left in its folder.

    Attributes:
        folder: The run directory; if none was asked for, it is removed with this object and all
            runs and figures of it.
        tensors: For a run with the caller's own tensors: each rank's tensor at the end, by
            algorithm and size in bytes; NumPy arrays where PyTorch is not installed.
    """

    folder: Path
    tensors: dict[tuple[str, int], list[torch.Tensor | Array]] = field(
        default_factory=dict, repr=False
    )
    _own: tempfile.TemporaryDirectory[str] | None = field(default=None, repr=False)
    _written_ns: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Note the time at which the folder's results were written."""
        object.__setattr__(self, "_written_ns", self._last_written_ns())

    @property
    def is_sweep(self) -> bool:
        """Whether these are the results of several runs.

        Raises:
            ConfigError: If the folder has those of a later call by now.
        """
        if self._last_written_ns() not in (self._written_ns, 0):
            raise ConfigError(
                f"result: its folder has later results by now, got {str(self.folder)!r}; give each "
                "call an out= of its own, or ringleaf.load the folder"
            )
        return (self.folder / PLAN).exists()

    def _last_written_ns(self) -> int:
        """Return the time at which the results were written; 0: there are none."""
        paths = (self.folder / PLAN, self.folder / SUMMARY)
        return next((path.stat().st_mtime_ns for path in paths if path.exists()), 0)

    @property
    def rows(self) -> list[Any]:
        """The rows of the table, times in picoseconds; of a sweep, those of all runs.

        They have the columns of `results.csv` as attributes: `algo`, `time_ps`, `wrong`.
        """
        if self.is_sweep:
            return [row for run in self.runs for row in run.rows]
        summary = read_summary(self.folder)
        return kind_of_run(summary).rows(summary)

    @property
    def runs(self) -> list[Result]:
        """The finished runs of a sweep, in its order; for a single run, only itself."""
        if not self.is_sweep:
            return [self]
        places = done_places(read_json(self.folder / PLAN))
        folders = (self.folder / file_name(place) for place in places)
        return [Result(folder, _own=self._own) for folder in folders if (folder / SUMMARY).exists()]

    @property
    def wrong(self) -> int:
        """The number of wrong values; those of runs without data (data="none") don't count."""
        return sum(read_summary(run.folder)["wrong"] or 0 for run in self.runs)

    def _repr_html_(self) -> str:
        """Return the table, or one for each run of a sweep, which notebooks show."""
        from ringleaf.experiments.pages.parts import table_as_html
        from ringleaf.experiments.runs.drawing import read_results

        parts: list[str] = []
        for run in self.runs:
            results = read_results(run.folder)
            parts += [f"<p>{escape(run.folder.name)}</p>"] if self.is_sweep else []
            parts += table_as_html(results.shown, results.columns, results.mark)
        return "".join(parts)

    def fastest(self) -> Any:
        """Return the right row that took the least time at the largest size, as the table says.

        For jobs, it is the row whose job was completed soonest.

        Raises:
            ConfigError: If nothing was measured.
        """
        from ringleaf.experiments.workloads.collective.rows import compared_bytes, right_rows

        rows = right_rows(self.rows)
        if not rows:
            raise ConfigError(
                f"fastest: nothing was measured, got {str(self.folder)!r}; run it again"
            )
        size = compared_bytes(map(_size_bytes, rows))[-1]
        return min((row for row in rows if _size_bytes(row) == size), key=_took_ps)

    def frame(self) -> pd.DataFrame:
        """Return the rows as a data frame; in a sweep, each row starts with its run's options.

        Raises:
            ConfigError: If pandas is not installed, or the rows can't be read.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ConfigError(
                "frame: needs pandas, got none installed; pip install 'ringleaf[notebooks]'"
            ) from error
        path = self.folder / (SWEPT_ROWS if self.is_sweep else ROWS)
        try:
            return pd.read_csv(path)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"frame: can't read, got {str(path)!r}: {error}; run it again"
            ) from error

    @property
    def figures(self) -> list[str]:
        """The names of all figures, which are drawn first if they do not exist yet."""
        self.report()
        return sorted(self._drawings())

    def figure(self, name: str = "") -> Figure:
        """Return a figure by name; if no name is given, the figure of times.

        Raises:
            ConfigError: If there is no such figure; the message lists the valid names.
        """
        self.report()
        drawings = self._drawings()
        default = next((n for n in ("sweep", "time", "jct") if n in drawings), "")
        if (name or default) not in drawings:
            valid = ", ".join(sorted(drawings))
            raise ConfigError(f"figure: unknown name, got {name!r}; valid: {valid}")
        return Figure(drawings[name or default], self._own)

    def _drawings(self) -> dict[str, Path]:
        paths = (*self.folder.glob("*.png"), *self.folder.glob("figures/*.png"))
        return {path.stem: path for path in paths}

    def report(self) -> Path:
        """Return the report, a page that needs no network; it is drawn if it does not exist."""
        page = self.folder / REPORT
        if page.exists():
            return page
        with Drawer() as beside:  # so this process keeps the backend that it has for its figures
            if beside.draw(self.folder) is None:
                from ringleaf.experiments.runs.drawing import redraw  # imports matplotlib

                redraw(self.folder)
        return page


def run(
    *,
    topo: str | Family | nx.Graph[str] = "fattree",
    algo: str
    | Path
    | Algorithm
    | Schedule
    | Iterable[str | Path | Algorithm | Schedule]
    | None = None,
    tensors: Iterable[torch.Tensor | Array] | None = None,
    out: str | Path | None = None,
    show: bool = False,
    **options: Any,
) -> Result:
    """Perform one run, and return its result.

    Args:
        topo: A topology's name with its parameters; or a family, or a graph (`new_graph`,
            `add_host`, `add_switch`, `connect` of `ringleaf.topologies.graph`), whose links keep
            their own rates and delays.
        algo: Names of algorithms, or files with schedules; or an algorithm, or a schedule that
            fits the number of ranks.
        tensors: The ranks' inputs, float32 or int32, all of one shape (elements,); they are not
            changed. Sizes and the number of ranks follow from them.
        out: The run directory; None: a temporary one that is removed with the result.
        show: Print the table row by row.
        options: Options of the command line: `size="1M"`, `loss=0.01`,
            `jobs=[{"model": "vgg16"}]`.

    Raises:
        RingleafError: If an option, the topology or the network does not allow it.
    """
    [case, *others] = _cases({"topo": topo, "algo": algo, **options})
    if others:
        several = ", ".join(swept([case, *others]))
        raise ConfigError(
            f"run: options must have one value each, got several of {several}, "
            f"{format_count(len(others) + 1, 'combination')}; ringleaf.sweep does them all"
        )
    if tensors is not None:
        tensors = _tensors_in(tensors)
        case |= _shape(tensors, case)
    own, case["out"] = _folder(out)
    emit = _say if show else _ignore
    request = resolve(case)
    check(request)
    own_inputs: dict[str, Any] = {} if tensors is None else {"inputs": tensors}
    done = session.run(request, emit=emit, drawn=False, **own_inputs)
    return Result(Path(case["out"]), getattr(done, "tensors", {}), own)


def sweep(
    *,
    out: str | Path | None = None,
    show: bool = False,
    parallel: int = 1,
    on: str | None = None,
    tls_ca_file: str | None = None,
    tls_cert: str | None = None,
    tls_key: str | None = None,
    unencrypted: bool = False,
    **options: Any,
) -> Result:
    """Perform a run for each combination of the options that are lists; return all results.

    Args:
        out: A folder for all runs; None: a temporary one that is removed with the result. Runs
            that an earlier call has finished there are kept, if it did not finish all.
        show: Print the tables row by row.
        parallel: Number of processes; 0: one for each core.
        on: The address of a Dask scheduler: `tls://host:8786`.
        tls_ca_file: The certificate of who vouches for the scheduler, its workers and this process.
        tls_cert: This process's certificate.
        tls_key: Its private key.
        unencrypted: Whether the scheduler may be unencrypted: `tcp://host:8786`. Whoever reaches
            its port can then run code as this user.
        options: Options as `run` takes them; `algo` and `size` are lists by themselves, and so are
            `counts`, `algo`, `scheduler` and `entries` of jobs.

    Raises:
        RingleafError: If an option, the topology or the network does not allow it.
    """
    scheduler = DaskScheduler(on, tls_ca_file, tls_cert, tls_key, unencrypted) if on else None
    crew = RunProcesses(parallel, scheduler)
    cases = _cases(options, here=crew.is_alone)
    if not swept(cases):
        raise ConfigError(
            "sweep: an option must be a list of several values, got none; use ringleaf.run"
        )
    own, folder = _folder(out)
    emit = _say if show else _ignore
    sweeps.run([{**case, "out": folder} for case in cases], name="sweep", emit=emit, crew=crew)
    return Result(Path(folder), _own=own)


def load(folder: str | Path) -> Result:
    """Return the results that a run or sweep has left in a folder.

    Raises:
        ConfigError: If the folder has no results.
    """
    result = Result(folder_of(Path(in_home(str(folder)))))
    if not result.is_sweep:
        read_summary(result.folder)
    return result


def _cases(options: Mapping[str, Any], *, here: bool = True) -> list[Case]:
    """Return the options of each run as if typed; with `here`, this process does the runs."""
    named = {
        name: _names(name, value, here=here) if name in ("topo", "algo") else _plain(name, value)
        for name, value in options.items()
        if value is not None
    }
    if not _are_texts(named.get("data", "")):
        raise ConfigError(
            f"data: must say which values are drawn, got {named['data']!r:.80}; give your own by "
            "tensors="
        )
    _check_links(named)
    return list(expand(named))


def _names(option: str, value: Any, *, here: bool) -> Any:
    """Return the names of topologies or algorithms, of one topology its name alone."""
    listed = _listed(option, value)
    members = listed if isinstance(listed, list) else [listed]
    if not here and any(not isinstance(each, str | Path) for each in members):
        raise ConfigError(
            f"{option}: other processes know names only, got {listed!r:.80}; make it an "
            "entry point (docs/extending), or leave out parallel and on"
        )
    names = _names_of(option, members)
    return names[0] if option == "topo" and len(names) == 1 else names


def _check_links(options: Mapping[str, Any]) -> None:
    """Check that no option is about links that are what a graph says.

    Raises:
        ConfigError: If there is one: it would have no effect.
    """
    topo = options.get("topo", "")
    families = [TOPOLOGIES.added.get(name) for name in ([topo] if isinstance(topo, str) else topo)]
    if not any(each is not None and each.summary == BY_GRAPH for each in families):
        return
    for name in ("rate", "delay", "inject"):
        if name in options:
            raise ConfigError(
                f"{name}: links of a graph keep their own, got {options[name]!r}; leave it out, or "
                "make the graph with other links"
            )


def _names_of(option: str, members: Sequence[Any]) -> list[str]:
    """Return the names of an option's members.

    Raises:
        ConfigError: If two of them have the same one.
    """
    names: dict[str, Any] = {}
    for member in members:
        name = _name_of(member)
        if isinstance(member, Algorithm | Schedule) and names.get(name, member) is not member:
            raise ConfigError(f"{option}: names must differ, got {name!r} twice; rename one")
        names[name] = member
    return list(names)


def _plain(name: str, value: Any) -> Any:
    """Return an option's value as a file could have it: texts, numbers, lists and mappings of them.

    Types of elements have the names that NumPy and PyTorch use.
    """
    if isinstance(value, type):  # such as numpy.float32
        return value.__name__
    if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
        return str(value).removeprefix("torch.")
    listed = _listed(name, value)
    if isinstance(listed, list):
        return [_plain(name, each) for each in listed]
    if isinstance(listed, Mapping):
        return {key: _plain(name, each) for key, each in listed.items()}
    if isinstance(listed, int) and abs(listed) >= 10**MOST_DIGITS:
        raise ConfigError(f"{name}: a number has at most {MOST_DIGITS} digits, got more")
    return str(listed) if isinstance(listed, Path) else listed


def _listed(name: str, value: Any) -> Any:
    """Return an option's value, as a list if it has several: an array, a range, a generator.

    Raises:
        ConfigError: If it is a set, whose order is another in each process, or bytes, which are
            no text.
    """
    if isinstance(value, Set):
        raise ConfigError(f"{name}: a set has no order, got {value!r:.80}; make it a list")
    if isinstance(value, bytes | bytearray | memoryview):
        raise ConfigError(f"{name}: must be text, got {value!r:.80}; decode it")
    if hasattr(value, "tolist"):  # of NumPy, pandas, PyTorch
        return value.tolist()
    several = isinstance(value, Iterable) and not isinstance(value, str | Mapping | nx.Graph)
    return list(value) if several else value


def _are_texts(value: Any) -> bool:
    return all(isinstance(each, str) for each in (value if isinstance(value, list) else [value]))


def _name_of(member: Any) -> str:
    """Return the name of a topology, algorithm or file; objects are registered under new names."""
    if isinstance(member, Path) and "," in str(member):
        raise ConfigError(
            f"run: a file's name can have no comma, got {str(member)!r}; rename the file"
        )
    if isinstance(member, str | Path):
        return str(member)
    if isinstance(member, Family):
        return _add(member)
    if isinstance(member, nx.Graph):
        return _add(_family_of(member))
    if isinstance(member, Schedule):
        member = _algorithm_of(member)
    if isinstance(member, Algorithm):
        _check_name(member)
        ALGORITHMS.added[member.name] = member
        return member.name
    raise ConfigError(
        "run: topo must be a name, a family or a graph, and algo a name, an algorithm or a "
        f"schedule, got {type(member).__name__}"
    )


def _check_name(member: Algorithm) -> None:
    """Check that an algorithm's name is one word, and no other's: it stays in this process."""
    name = member.name
    if not re.fullmatch(r"[^\s,/]+", name):
        raise ConfigError(f"algo: names must be a word without , and /, got {name!r}; rename it")
    is_other = name in ALGORITHMS and name not in ALGORITHMS.added
    if is_other and ALGORITHMS[name] is not member:
        raise ConfigError(f"algo: the name is taken, got {name!r}; rename yours")


def _add(family: Family) -> str:
    added = TOPOLOGIES.added
    known = (name for name, each in added.items() if each is family)
    name = next(known, f"given-{len(added) + 1}")
    added[name] = family
    return name


def _family_of(graph: nx.Graph[str]) -> Family:
    """Return a family with one topology, whose links are not changed.

    Raises:
        ConfigError: If its nodes are none of ours, or their numbers have gaps.
    """
    how = "make them by add_host and add_switch of ringleaf.topologies.graph"
    strange = next((node for node, data in graph.nodes.items() if "role" not in data), None)
    if strange is not None:
        raise ConfigError(f"topo: a graph's nodes must have roles, got none of {strange!r}; {how}")
    for nodes in (hosts(graph), switches(graph)):
        if [index(node) for node in nodes] != list(range(len(nodes))):
            got = ", ".join(nodes)
            raise ConfigError(f"topo: nodes must be numbered from 0, got {got:.80}; {how}")
    counts = Counts(len(hosts(graph)), len(switches(graph)), graph.number_of_edges())
    return Family(
        BY_GRAPH,
        lambda link, host_link=None: graph.copy(),
        {},
        lambda host_count, sizes: {},
        lambda: counts,
    )


def _algorithm_of(schedule: Schedule) -> Algorithm:
    """Return an algorithm that has one schedule."""

    def schedule_for(asked: Asked) -> Schedule:
        if (asked.ranks, asked.servers) != (schedule.ranks, schedule.servers):
            raise ConfigError(
                f"algo: {schedule.algorithm} is for {format_count(schedule.ranks, 'rank')} and "
                f"{format_count(schedule.servers, 'server')}, got {asked.ranks} and "
                f"{asked.servers}; set hosts= and servers="
            )
        return schedule

    def cost_of(asked: Asked) -> Cost:
        sent = sent_bytes(schedule, asked.size_bytes, element_bytes=1)
        return Cost(0, max(sent), schedule.steps)

    name = f"{schedule.algorithm}-given"
    return Algorithm(name, schedule.collective, schedule.algorithm, schedule_for, cost_of)


def _tensors_in(tensors: Any) -> list[Any]:
    """Return the tensors that somebody gives, of which a generator yields each once.

    Raises:
        ConfigError: If they are none, or not all of their elements are there.
    """
    try:
        listed = list(tensors)
    except TypeError as error:  # a number, or an array of no dimension
        raise ConfigError(
            f"tensors: must be a list of one for each rank, got {tensors!r:.80}"
        ) from error
    for each in listed:
        if not any(f"{of.__module__}.{of.__name__}" in _ARRAYS for of in type(each).__mro__):
            got = " ".join(repr(each).split())
            raise ConfigError(
                f"tensors: must be PyTorch's or NumPy's, one for each rank, got {got:.80}; make "
                "it an array"
            )
        if getattr(each, "is_nested", False):
            raise ConfigError("tensors: must be dense, got a nested tensor; pad it")
        mask = getattr(each, "mask", None)
        if mask is not None and mask.any():
            raise ConfigError(
                "tensors: must have all elements, got a masked array; say what masked ones are, by "
                "its filled()"
            )
    return listed


def _shape(tensors: Sequence[torch.Tensor | Array], case: Mapping[str, Any]) -> Case:
    """Return the options that follow from tensors.

    Raises:
        ConfigError: If they can't be the ranks' inputs, or conflict with other options.
    """
    kinds = {(tuple(each.shape), str(each.dtype).removeprefix("torch.")) for each in tensors}
    if len(kinds) != 1 or len(next(iter(kinds))[0]) != 1:
        raise ConfigError(f"tensors: must be of one type and shape (elements,), got {kinds}")
    [((elements,), dtype)] = kinds
    if dtype not in DTYPES:
        raise ConfigError(f"tensors: must be of {' or '.join(DTYPES)}, got {dtype}")
    fixed = ("size", "min", "max", "factor", "dtype", "data", "density", "compress")
    keys = (kind.key for kind in WORKLOADS.values())
    clashes = [name for name in (*fixed, *keys) if name in case]
    if clashes:
        raise ConfigError(f"tensors: can't go with {', '.join(clashes)}, got both; leave one out")
    return {
        "size": str(elements * DTYPES[dtype]),
        "dtype": dtype,
        "hosts": _hosts_of(len(tensors), case),
    }


def _hosts_of(ranks: int, case: Mapping[str, Any]) -> str:
    """Return the number of hosts for the ranks of tensors, with servers.

    Raises:
        ConfigError: If the options have another one.
    """
    servers = case.get("servers") or "0"
    if not is_whole(servers):
        raise ConfigError(f"servers: must be a whole number, got {servers!r}")
    count = str(ranks + int(servers))
    if case.get("hosts") not in (None, "", count):
        raise ConfigError(
            f"hosts: must be {count}, a host for each tensor and server, got {case['hosts']!r}; "
            "leave it out"
        )
    return count


def _size_bytes(row: Any) -> int:
    size_bytes: int = getattr(row, "size_bytes", 0)  # those of jobs have none
    return size_bytes


def _took_ps(row: Any) -> int:
    took_ps: int = row.jct_ps if hasattr(row, "jct_ps") else row.time_ps
    return took_ps


def _folder(out: str | Path | None) -> tuple[tempfile.TemporaryDirectory[str] | None, str]:
    """Return the owner of a temporary folder, None if one was asked for, and the folder."""
    if out is not None:
        if not isinstance(out, str | Path):
            raise ConfigError(f"out: must be a folder's name, got {out!r:.80}")
        return None, in_home(str(out)) or "runs"
    own = tempfile.TemporaryDirectory(prefix="ringleaf-")
    return own, own.name


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _ignore(line: str) -> None:
    pass
