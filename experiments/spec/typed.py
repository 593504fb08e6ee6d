"""Options of experiments as parameters of commands, from which typer makes a command line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

import typer

from ringleaf.experiments.spec.options import Option

RARE = "More options"
"""The panel of those options that only `--help-all` shows."""

COMMON = frozenset(
    {"topo", "algo", "size", "hosts", "ranks", "rate", "delay", "loss", "cc", "net", "switch"}
    | {"seed", "figures", "wide", "out", "jobs", "model", "scheduler", "compute", "iterations"}
    | {"rows", "bags", "policy", "samples", "widths", "flow_sizes", "load", "dp", "tp", "pp"}
)
"""Options that most people type, of all kinds of workloads."""


def _parameter(name: str, option: Option, *, common: bool, hidden: bool) -> Parameter:
    """Return the parameter that typer turns into a command-line option."""
    default = f"; default {option.default}" if option.default else ""
    kind: Any = str | None
    help_ = option.help + default
    if option.is_flag:
        kind, help_ = bool, option.help
    shown = typer.Option(
        False if option.is_flag else None,
        *option.flags.split(),
        help=help_,
        rich_help_panel=None if common else RARE,
        hidden=hidden,
    )
    return Parameter(f"{name}_", Parameter.KEYWORD_ONLY, default=shown, annotation=kind)


def with_options(
    command: Callable[..., None],
    options: Mapping[str, Option],
    *,
    common: Collection[str] = COMMON,
    hidden: Collection[str] = (),
) -> Callable[..., None]:
    """Give a command these options; its first argument is those that were typed.

    Args:
        command: The command. Options of which it has a parameter of its own are left out.
        options: Options by name.
        common: The names of those that most people type.
        hidden: The names of those that no help shows, as they are refused.
    """
    hints = get_type_hints(command, include_extras=True)
    options = {name: option for name, option in options.items() if name not in hints}
    own = [
        parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])
        for name, parameter in list(signature(command).parameters.items())[1:]
    ]
    added = [
        _parameter(name, option, common=name in common, hidden=name in hidden)
        for name, option in options.items()
    ]

    @wraps(command)
    def typed(**arguments: Any) -> None:
        values = {name: arguments.pop(f"{name}_") for name in options}
        texts = {name: "yes" if value is True else value for name, value in values.items() if value}
        command(texts, **arguments)

    parameters = [*added, *own]
    typed.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    typed.__annotations__ = {each.name: each.annotation for each in parameters}
    return typed
