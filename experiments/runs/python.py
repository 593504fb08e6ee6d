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

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.schedule import Schedule
from ringleaf.core.file_names import in_home
from ringleaf.core.tensors import Array
from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.experiments.records.config import read_summary
from ringleaf.experiments.records.folder import folder_of
from ringleaf.experiments.runs import session
from ringleaf.experiments.runs import sweep as sweeps
from ringleaf.experiments.runs.checks import check
from ringleaf.experiments.runs.machines import DaskScheduler
from ringleaf.experiments.runs.python_values import cases_of, shape_of, tensors_in
from ringleaf.experiments.runs.request import resolve
from ringleaf.experiments.runs.result import Result
from ringleaf.experiments.runs.spec_file import swept
from ringleaf.experiments.runs.workers import RunProcesses
from ringleaf.topologies.family import Family

__all__ = ["Result", "load", "run", "sweep"]

if TYPE_CHECKING:
    import torch


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
    [case, *others] = cases_of({"topo": topo, "algo": algo, **options})
    if others:
        several = ", ".join(swept([case, *others]))
        raise ConfigError(
            f"run: options must have one value each, got several of {several}, "
            f"{format_count(len(others) + 1, 'combination')}; ringleaf.sweep does them all"
        )
    if tensors is not None:
        tensors = tensors_in(tensors)
        case |= shape_of(tensors, case)
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
    cases = cases_of(options, here=crew.is_alone)
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
