"""A job of sums of ternary gradients: SwitchML's, with two bits for each element."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import networkx as nx
import numpy as np

import ringleaf.ina.tern.worker as worker
from ringleaf.core.arena import Store
from ringleaf.core.tensors import Array
from ringleaf.errors import ConfigError
from ringleaf.ina.jobs import WorkersJob
from ringleaf.ina.switchml.job import SwitchMLVariant, join_as
from ringleaf.ina.systems import JobRequest
from ringleaf.ina.tern.wire import (
    ELEMENTS,
    FIRST_UDP_PORT,
    HEADER_BYTES,
    MOST_WORKERS,
    SUM_WORDS,
    WORDS,
)

KIND = SwitchMLVariant(
    "tern",
    worker,
    worker.begin_tensor,
    first_port=FIRST_UDP_PORT,
    header_bytes=HEADER_BYTES,
    fraction_bits=0,  # no exponents to agree on
    elements=ELEMENTS,
    sum_lanes=SUM_WORDS,
    returns_sums=True,
)


def check_ternary(values: Array) -> None:
    """Check that elements are 0, or one number and its negative.

    Raises:
        ConfigError: If they are not, or of a type other than float32.
    """
    if values.dtype != np.dtype(np.float32):
        raise ConfigError(f"tern: elements must be float32, got {values.dtype}; take algo=switchml")
    sizes = np.abs(values)
    scale = sizes.max(initial=np.float32(0))
    strange = values[~((sizes == 0) | (sizes == scale)) | ~np.isfinite(values)]
    if strange.size:
        raise ConfigError(
            f"tern: elements must be 0, or one number and its negative, got {float(strange[0])!r} "
            f"beside {float(scale)!r}; take compress=terngrad, or algo=switchml"
        )


def join(graph: nx.Graph[str], store: Store, request: JobRequest) -> WorkersJob:
    """Make a job, over the tree of least depth; it needs no servers.

    Raises:
        ConfigError: If it does not fit the switches, or has more workers than counts have room for.
    """
    workers = len(request.members)
    if workers > MOST_WORKERS:
        raise ConfigError(
            f"tern job {request.number}: switches add up {MOST_WORKERS} workers, got {workers}"
        )
    kind = replace(KIND, extend=partial(worker.make_extras, workers=workers))
    return replace(join_as(kind, graph, store, replace(request, lanes=WORDS)), check=check_ternary)
