"""The error of a live run in which nothing gets through any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ringleaf.errors import BackendError

MOST_EXPLAINED = 16  # hosts


def stalled(
    kind: str, left: Mapping[int, str], answers: Mapping[int, str], more: Sequence[str], *, s: float
) -> BackendError:
    """Return an error that names the hosts that are not done, and those they wait for.

    Args:
        kind: The state that they have not reached: `finished`.
        left: Their numbers and names.
        answers: By number, the answers of those that have said what they wait for.
        more: Other possible reasons.
        s: Seconds for which nothing has got through.
    """
    lines = [
        f"  {name}: {answers.get(number, 'does not answer')}"
        for number, name in list(left.items())[:MOST_EXPLAINED]
    ]
    if len(left) > MOST_EXPLAINED:
        lines.append(f"  and {len(left) - MOST_EXPLAINED} more")
    lines.extend(f"  {line}" for line in more)
    lines.append("bring back what is down; a machine that is too slow needs a larger --scale")
    names = ", ".join(left.values())
    return BackendError(
        f"run: nothing has got through for {s:.0f} s, got hosts that are not {kind}: "
        + "\n".join([names, *lines])
    )
