"""Models as text: lines with `#` are comments, rows suit awk."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from ringleaf.core.units import PS_PER_MS, format_count, format_size, format_time
from ringleaf.hosts.training.model import DTYPE_BYTES, Model


def listing(models: Iterable[Model]) -> Iterator[str]:
    """Yield a header, and a row per model."""
    yield "#" + f"{'model':>11} {'layers':>6} {'elements':>11} {'gradient':>10} {'compute':>9}"
    yield "#" + f"{'':>11} {'':>6} {'':>11} {'(B)':>10} {'(ms)':>9}"
    for model in models:
        yield (
            f"{model.name:>12} {len(model.layers):>6} {model.elements:>11} "
            f"{model.size_bytes:>10} {model.compute_ps / PS_PER_MS:>9.3f}"
        )


def table(model: Model) -> Iterator[str]:
    """Yield the source of a model, a row per layer in forward order, and totals."""
    yield f"# {model.name}: {format_count(len(model.layers), 'layer')}, gradients in {model.dtype}"
    for line in textwrap.wrap(model.source, 98, break_long_words=False, break_on_hyphens=False):
        yield f"# {line}"
    yield "#"
    width = max(12, *(len(layer.name) for layer in model.layers))
    yield (
        "#"
        + f"{'layer':>{width - 1}} {'elements':>11} {'gradient':>10} {'forward':>9} {'backward':>9}"
    )
    yield "#" + f"{'':>{width - 1}} {'':>11} {'(B)':>10} {'(ms)':>9} {'(ms)':>9}"
    item = DTYPE_BYTES[model.dtype]
    for layer in model.layers:
        yield (
            f"{layer.name.replace(' ', '_') or '-':>{width}} {layer.elements:>11} "
            f"{layer.elements * item:>10} "
            f"{layer.forward_ps / PS_PER_MS:>9.3f} {layer.backward_ps / PS_PER_MS:>9.3f}"
        )
    yield f"# {totals(model)}"


def totals(model: Model) -> str:
    """Return a model's totals as text: elements, bytes, times."""
    forward_ps = sum(layer.forward_ps for layer in model.layers)
    backward_ps = sum(layer.backward_ps for layer in model.layers)
    return (
        f"{format_count(model.elements, 'element', ',')}, {format_size(model.size_bytes)}; "
        f"forward {format_time(forward_ps)}, backward {format_time(backward_ps)}"
    )
