"""Experiments whose workload is trainings of small models, judged by their loss."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import ValidationInfo, model_validator

from ringleaf.errors import ConfigError
from ringleaf.experiments.spec import kinds
from ringleaf.experiments.spec.checked import WHERE
from ringleaf.experiments.spec.choices import VIRTUAL
from ringleaf.experiments.spec.kinds import ValueReader, label, option
from ringleaf.experiments.spec.network import NetworkSpec


def _names(text: str, where: str) -> tuple[str, ...]:
    del where
    return tuple(part.strip() for part in text.split(",") if part.strip())


class ConvergeSpec(NetworkSpec):
    """Trainings on an emulated network, by a plan."""

    networks: ClassVar = (VIRTUAL,)  # trainings of a plan take simulated time
    converge: Annotated[str, ValueReader(lambda text, where: text)] = option(
        "", "Plan of trainings: all (the one that comes along), or a YAML file"
    )
    parts: Annotated[tuple[str, ...], ValueReader(_names, listed=True)] = option(
        "", "Parts of the plan; default: all"
    )
    steps: kinds.AnyCount = option("", "Gradients per rank; default: the plan's")

    @model_validator(mode="after")
    def _check_converge(self, info: ValidationInfo) -> Self:
        where = label(info, WHERE)
        for name in ("pcap", "record"):
            if getattr(self, name):
                raise ConfigError(
                    f"{where}{name}: not with trainings of a plan, got "
                    f"{str(getattr(self, name))!r}; leave it out"
                )
        return self
