"""Models that are read from options: what pydantic checks, with our messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict

from ringleaf.experiments.spec.renamed import choose_option

WHERE = "where messages begin"
"""The key of messages' beginning in a validator's context; other keys are fields, with options."""


class Checked(BaseModel):
    """A model read from options: every value is checked, every default filled in."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    takes: ClassVar[Sequence[str]] = ()
    """The options that a command takes, in order, if not all; the others have their defaults."""

    defaults: ClassVar[Mapping[str, str]] = {}
    """The defaults, as typed, of inherited fields that have another here."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        for field, default in cls.__dict__.get("defaults", {}).items():
            cls.model_fields[field].default = default

    @classmethod
    @cache
    def names(cls) -> dict[str, str]:
        """Return each field's name as an option: `topo`, its own, then inherited ones."""
        own = cls.__annotations__
        order = sorted(cls.model_fields, key=lambda field: (field != "topo", field not in own))
        names = {field: cls.model_fields[field].alias or field for field in order}
        fields = {name: field for field, name in names.items()}
        return {fields[name]: name for name in cls.takes} or names

    @classmethod
    def read(cls, options: Mapping[str, Any], where: str = "") -> Self:
        """Check options, and fill in the rest.

        Args:
            options: Values by option, as typed or as YAML has them.
            where: The beginning of messages, before the option: `spec jobs.yaml: `.

        Raises:
            ConfigError: If one is wrong; the message names it, its value and the valid ones.
        """
        names = cls.names()
        for name in options:
            choose_option(where.rstrip(": ") or "options", str(name), names.values())
        labels = {field: f"{where}{name}" for field, name in names.items()} | {WHERE: where}
        return cls.model_validate(dict(options), context=labels)
