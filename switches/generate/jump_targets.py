"""Where an action's primitives jump to, and which of them form loops."""

from __future__ import annotations

from collections.abc import Sequence

from ringleaf.switches.source import Constant, Primitive, ProgramSource


def jumps(step: Primitive) -> bool:
    """Return whether a primitive goes on elsewhere, always or under a condition."""
    return step.op in ("_jump", "_jump_if_zero")


def target_of(source: ProgramSource, step: Primitive, size: int) -> int:
    """Return the number of the primitive that a jump goes on with.

    Args:
        source: The program.
        step: A jump.
        size: Number of the action's primitives, which stands for its end.

    Raises:
        ConfigError: If there is no such primitive.
    """
    target = step.parameters[-1]
    if not isinstance(target, Constant) or not 0 <= target.value <= size:
        raise source.refuse("a jump to no primitive", step.op, step.where)
    return target.value


def loops_of(source: ProgramSource, steps: Sequence[Primitive]) -> dict[int, int]:
    """Return the heads of loops, and the last primitive that jumps back to each.

    Raises:
        ConfigError: If a jump goes to no primitive.
    """
    loops: dict[int, int] = {}
    for at, step in enumerate(steps):
        if jumps(step) and (head := target_of(source, step, len(steps))) <= at:
            loops[head] = at
    return loops
