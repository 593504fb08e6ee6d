"""Find a torch module by its name, and samples to feed it with."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass

import torch
from torch import nn

from ringleaf.errors import ConfigError

BROKEN = (
    RuntimeError, TypeError, ValueError, LookupError, AttributeError, AssertionError, OSError,
    ArithmeticError,
)  # fmt: skip
"""The errors that other people's modules raise when they are built or used in a wrong way."""


def find_module(target: str, where: str) -> nn.Module:
    """Return the module that `package.module:factory` names: a module, or a function making one.

    The file's name, `package/module.py`, stands for its module.

    Raises:
        ConfigError: If it can't be imported or made, or is no module.
    """
    name, colon, attribute = target.partition(":")
    if not (name and colon and attribute):
        raise ConfigError(f"{where}: must be MODULE:FACTORY, got {target!r}; as mymodels:make_net")
    if name.endswith(".py"):
        name = name.removesuffix(".py").removeprefix("./").replace("/", ".")
    module = _import(name, where)
    for part in attribute.split("."):
        if not hasattr(module, part):
            raise ConfigError(f"{where}: module {name} has no {attribute}, got {target!r}")
        module = getattr(module, part)
    if not isinstance(module, nn.Module) and callable(module):
        try:
            module = module()
        except BROKEN as error:
            raise ConfigError(
                f"{where}: {target} must be callable without arguments, got {brief(error)}"
            ) from error
    if not isinstance(module, nn.Module):
        raise ConfigError(f"{where}: {target} must give a torch module, got {module!r}")
    return module


def _import(name: str, where: str) -> object:
    """Import a module, which may lie in the current folder, as with `python -m`."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except (ImportError, SyntaxError) as error:
        raise ConfigError(
            f"{where}: can't import {name!r}, got {brief(error)}; "
            "install it, or put it into this folder"
        ) from error


def brief(error: BaseException) -> str:
    """Return an error as one line of text."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}"


@dataclass(frozen=True, slots=True)
class Feed:
    """The samples that a module is fed with.

    If `words` is not 0, they are whole numbers below it, else floats.
    """

    shape: tuple[int, ...]
    batch: int
    words: int

    def __str__(self) -> str:
        return f"batch {self.batch} of {'x'.join(map(str, self.shape)) or 'scalars'}"

    def draw(self, device: torch.device, batch: int | None = None) -> torch.Tensor:
        """Return random samples, the same every time."""
        size = (self.batch if batch is None else batch, *self.shape)
        dice = torch.Generator().manual_seed(1)
        if self.words:
            return torch.randint(self.words, size, generator=dice).to(device)
        return torch.randn(size, generator=dice).to(device)


def find_feed(module: nn.Module, shape: str | None, batch: int, where: str) -> Feed:
    """Return the feed of the module's first layer: word numbers for an embedding, else floats.

    The first layer is the first module without others inside: models have positions and the like
    as parameters of their own, around their layers.

    Raises:
        ConfigError: If the shape is not valid, or isn't given and can't be told from the layer, or
            parameters are of a type that models don't have.
    """
    if batch < 1:
        raise ConfigError(f"{where}: batch must be at least 1, got {batch}")
    for parameter in module.parameters():
        if parameter.requires_grad and parameter.dtype is not torch.float32:
            raise ConfigError(
                f"{where}: parameters must be float32, got {parameter.dtype}; convert them by "
                ".float()"
            )
    parts = [part for part in module.modules() if any(True for _ in part.parameters(False))]
    first = next((part for part in parts if not any(True for _ in part.children())), parts[0])
    words = first.num_embeddings if isinstance(first, nn.Embedding) else 0
    if shape is not None:
        return Feed(_shape(shape, where), batch, words)
    if isinstance(first, nn.Linear):
        return Feed((first.in_features,), batch, 0)
    raise ConfigError(
        f"{where}: input can't be told from the first layer, got {type(first).__name__}; "
        "give a sample's shape, as --input 3,224,224"
    )


def _shape(text: str, where: str) -> tuple[int, ...]:
    parts = text.replace("x", ",").split(",")
    if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise ConfigError(
            f"{where}: input must be a sample's shape, got {text!r}; write it like 3,224,224"
        )
    return tuple(int(part) for part in parts)
