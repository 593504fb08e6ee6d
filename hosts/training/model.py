"""A model as a list of layers, each with its compute times and the size of its gradient.

Its file is YAML:

    name: resnet50
    source: where shapes and times come from
    dtype: float32
    layers:
      - {name: conv1, elements: 9408, forward: 1.2ms, backward: 2.4ms}
      - {name: conv2, elements: 9408, forward: 1.2ms, backward: 2.4ms, weights: 1ms}
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringleaf.core.registry import Registry
from ringleaf.core.shipped import PACKAGE
from ringleaf.core.units import exact_time, format_count, parse_time
from ringleaf.core.yaml_file import read_yaml
from ringleaf.errors import ConfigError, choose

MODELS = PACKAGE / "hosts" / "training" / "models"
DTYPE_BYTES = {"float32": 4, "int32": 4}

_KEYS = ("name", "source", "dtype", "layers")
_LAYER_KEYS = ("name", "elements", "forward", "backward", "weights")


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer; `elements` of gradient, times in picoseconds for one iteration on one rank.

    `weights_ps` is the part of its backward pass that computes the weights' gradient (dW); the rest
    is for its inputs' (dO). None means half: matrix products take as many operations for either.
    """

    name: str
    elements: int
    forward_ps: int
    backward_ps: int
    weights_ps: int | None = None

    @property
    def dw_ps(self) -> int:
        """The time of its weights' gradient."""
        if not self.elements:
            return 0
        return self.backward_ps // 2 if self.weights_ps is None else self.weights_ps


@dataclass(frozen=True, slots=True)
class Model:
    """Layers from the front (where a forward pass begins) to the back."""

    name: str
    source: str
    dtype: str
    layers: tuple[Layer, ...]

    @property
    def elements(self) -> int:
        """Return the number of elements of the whole gradient."""
        return sum(layer.elements for layer in self.layers)

    @property
    def size_bytes(self) -> int:
        """The size of all gradients together."""
        return self.elements * DTYPE_BYTES[self.dtype]

    @property
    def compute_ps(self) -> int:
        """The time of an iteration without any wait for gradients."""
        return sum(layer.forward_ps + layer.backward_ps for layer in self.layers)


_ELSEWHERE: Registry[Path] = Registry(
    "models", "model", kind=Path, taken=lambda: [path.stem for path in MODELS.glob("*.yaml")]
)
"""Model files of packages, whose entry points name a constant that is a path."""


def names() -> list[str]:
    """Return the names of the models that come with Ringleaf, and with installed packages."""
    return sorted({*(path.stem for path in MODELS.glob("*.yaml")), *_ELSEWHERE})


def load_model(name: str, where: str = "model") -> Model:
    """Return a model: one of `names`, or that of a file; `where` begins the message if it is none.

    Raises:
        ConfigError: If there is none, or its file does not make sense.
    """
    if name.endswith((".yaml", ".yml")):
        return read_model(Path(name))
    choose(where, "model", name, names(), "*.yaml")
    return read_model(_ELSEWHERE[name] if name in _ELSEWHERE else MODELS / f"{name}.yaml")


def read_model(path: Path) -> Model:
    """Return the model of a file.

    Raises:
        ConfigError: If it can't be read, or does not make sense.
    """
    where = f"model {path}"
    data = read_yaml(path, "model")
    if not isinstance(data, dict) or not isinstance(data.get("layers"), list):
        raise ConfigError(f"{where}: must be a mapping with a list 'layers', got {_kind(data)}")
    for key in data:
        choose(where, "key", str(key), _KEYS)
    layers = tuple(_layer(f"{where}: layer {i}", row) for i, row in enumerate(data["layers"]))
    if not sum(layer.elements for layer in layers):
        raise ConfigError(
            f"{where}: must have a gradient, got {format_count(len(layers), 'layer')} without any"
        )
    dtype = choose(where, "dtype", str(data.get("dtype", "float32")), DTYPE_BYTES)
    return Model(str(data.get("name", path.stem)), str(data.get("source", "")), dtype, layers)


def _kind(data: Any) -> str:
    return f"keys {', '.join(map(str, data))}" if isinstance(data, dict) else type(data).__name__


def _layer(where: str, row: Any) -> Layer:
    if not isinstance(row, dict) or not {"elements", "forward", "backward"} <= set(row):
        raise ConfigError(f"{where}: must have elements, forward and backward, got {row!r}")
    for key in row:
        choose(where, "key", str(key), _LAYER_KEYS)
    elements = row["elements"]
    if type(elements) is not int or elements < 0:
        raise ConfigError(f"{where}: elements must be a whole number >= 0, got {elements!r}")
    backward_ps = parse_time(str(row["backward"]), f"{where}: backward")
    weights_ps = parse_time(str(row["weights"]), f"{where}: weights") if "weights" in row else None
    if weights_ps is not None and weights_ps > backward_ps:
        raise ConfigError(
            f"{where}: weights must take no longer than backward, got {row['weights']!r}"
        )
    forward_ps = parse_time(str(row["forward"]), f"{where}: forward")
    return Layer(str(row.get("name", "")), elements, forward_ps, backward_ps, weights_ps)


def as_yaml(model: Model) -> str:
    """Return the text of a model's file, which `read_model` reads back without loss."""
    import yaml

    head = {"name": model.name, "source": model.source, "dtype": model.dtype}
    lines = [yaml.safe_dump(head, sort_keys=False, width=98).rstrip(), "layers:"]
    for layer in model.layers:
        row = {
            "name": layer.name,
            "elements": layer.elements,
            "forward": exact_time(layer.forward_ps),
            "backward": exact_time(layer.backward_ps),
        }
        if layer.weights_ps is not None:
            row["weights"] = exact_time(layer.weights_ps)
        text = yaml.safe_dump(row, sort_keys=False, default_flow_style=True, width=1 << 30)
        lines.append(f"  - {text.rstrip()}")
    return "\n".join(lines) + "\n"


def scaled(model: Model, size: float, compute: float) -> Model:
    """Return the model with gradients and compute times multiplied by factors, for quick looks.

    Each layer that had a gradient keeps at least one element.
    """
    layers = tuple(
        Layer(
            layer.name,
            max(round(layer.elements * size), 1) if layer.elements else 0,
            round(layer.forward_ps * compute),
            round(layer.backward_ps * compute),
            None if layer.weights_ps is None else round(layer.weights_ps * compute),
        )
        for layer in model.layers
    )
    return Model(model.name, model.source, model.dtype, layers)
