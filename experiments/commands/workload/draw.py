"""A drawing of a model's layers as bars: sizes of gradients, and times of passes."""

from __future__ import annotations

from pathlib import Path

from ringleaf.core.units import PS_PER_MS
from ringleaf.errors import ConfigError
from ringleaf.hosts.training.model import DTYPE_BYTES, Model

FORMATS = (".png", ".svg", ".pdf")


def draw(model: Model, path: Path) -> None:
    """Draw a model to a PNG, SVG or PDF file.

    Raises:
        ConfigError: If the name has another ending, or the file can't be written.
    """
    if path.suffix not in FORMATS:
        raise ConfigError(f"{path}: must end in {', '.join(FORMATS)}, got {path.suffix!r}")
    from matplotlib.figure import Figure

    layers = model.layers
    places = range(len(layers))
    figure = Figure(figsize=(max(6.0, 1.5 + 0.19 * len(layers)), 6.0), layout="constrained")
    sizes, times = figure.subplots(2, 1, sharex=True)
    mebi = DTYPE_BYTES[model.dtype] / (1 << 20)
    sizes.bar(places, [layer.elements * mebi for layer in layers], color="#3f7fd1")
    sizes.set_ylabel("gradient (MiB)")
    forward = [layer.forward_ps / PS_PER_MS for layer in layers]
    times.bar(places, forward, color="#1f9d8b", label="forward")
    backward = [layer.backward_ps / PS_PER_MS for layer in layers]
    times.bar(places, backward, bottom=forward, color="#e08a2b", label="backward")
    times.set_ylabel("computation (ms)")
    times.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 0.98))
    times.set_xticks(places, [layer.name for layer in layers], rotation=90, fontsize=7)
    times.set_xlim(-0.7, len(layers) - 0.3)
    for axes in (sizes, times):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#80808040", linewidth=0.6)
        axes.set_axisbelow(True)
    sizes.set_title(f"{model.name}: layers in forward order", loc="left", fontsize=11)
    try:
        figure.savefig(path, dpi=130)
    except OSError as error:
        raise ConfigError(f"{path}: can't write, got {error.strerror}") from error
