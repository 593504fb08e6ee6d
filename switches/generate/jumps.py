"""An action's primitives and jumps as nested statements.

Ways that part at a jump are nested up to where they meet again. Jumps go forward, so those places
are found from the end, each from later ones; but for those back to the head of a loop, which
p4c writes for `for` in an action. A loop is a node with several ways to go on if something in it
(`exit`, `return`) jumps beyond its end.
"""

from __future__ import annotations

from ringleaf.switches.generate.flow import Body, If, IfLeft, Leave, Repeat, Statement
from ringleaf.switches.generate.jump_targets import jumps, loops_of, target_of
from ringleaf.switches.generate.lower import lower
from ringleaf.switches.generate.text import TooLargeError
from ringleaf.switches.json.stacks import value_of
from ringleaf.switches.source import (
    ActionSource,
    OperationSource,
    Primitive,
    ProgramSource,
    SelectedSource,
)

MOST_PRIMITIVES = 100_000


def action_body(source: ProgramSource, action: ActionSource) -> Body:
    """Return an action's primitives with its jumps turned into `If`s and `Repeat`s.

    Raises:
        ConfigError: If a jump goes into a loop, or from an inner loop back to an outer one.
    """
    steps = action.primitives
    return _Stretch(source, steps, loops_of(source, steps), 0, len(steps), in_loop=False).body()


def deparser_body(source: ProgramSource) -> Body:
    """Return a deparser's primitives as `action_body` does those of an action."""
    return action_body(source, ActionSource(0, "deparser", (), source.deparser))


class _Stretch:
    """A whole action, or one turn of a loop: primitives `start` to, but without, `end`.

    A turn has places after its last primitive: `end`, where the loop is left, those that jumps
    out of it go to, and after all of them `last`, where the next turn begins.
    """

    def __init__(
        self,
        source: ProgramSource,
        steps: tuple[Primitive, ...],
        loops: dict[int, int],
        start: int,
        end: int,
        *,
        in_loop: bool,
    ) -> None:
        self._source = source
        self._steps = steps
        self._loops = loops
        self._start = start
        self._end = end
        self._in_loop = in_loop
        self._last = len(steps) + 1 if in_loop else end
        self._joins = {end: self._last, self._last: self._last}
        self._turns: dict[int, _Stretch] = {}  # of inner loops, by their heads
        self._nested = 0  # primitives, each as often as it is written
        self.beyond: list[int] = []  # where jumps out of the loop go to, if not to its end
        for at in self._outer():
            self._joins[at] = self._meet(self._next(at))

    def body(self) -> Body:
        """Return the nested statements of the whole stretch."""
        return self._nest(self._start, self._last)

    def _nest(self, at: int, stop: int) -> Body:
        """Return the body from one primitive up to another, which all ways lead to."""
        out: list[Statement] = []
        while at != stop:
            self._nested += 1
            if self._nested > MOST_PRIMITIVES:  # those that ways share are written for each
                raise TooLargeError(
                    f"an action has at most {MOST_PRIMITIVES} primitives, written out"
                )
            join = self._joins[at]
            if at == self._end:
                out.append(Leave(self._start, 0))
            elif at in self.beyond:
                out.append(Leave(self._start, 1 + self.beyond.index(at)))
            elif self._is_head(at):
                out.append(Repeat(at, self._turns[at].body(), self._steps[at].where))
                out.extend(self._after(at, join))
            elif self._steps[at].op == "_jump_if_zero":
                out.append(self._branch(at, join))
            elif self._steps[at].op != "_jump":
                out.extend(lower(self._source, self._steps[at]))
            at = join
        return tuple(out)

    def _branch(self, at: int, join: int) -> If:
        step = self._steps[at]
        tested = step.parameters[0]
        value = value_of(tested) if isinstance(tested, SelectedSource) else tested
        then, otherwise = (self._nest(way, join) for way in self._next(at))
        return If(OperationSource("d2b", None, value), then, otherwise, step.where)

    def _after(self, head: int, join: int) -> Body:
        """Return the body after an inner loop, up to the place where all ways out of it meet."""
        end, *others = self._next(head)
        body = self._nest(end, join)
        for way, other in enumerate(others, 1):
            body = (IfLeft(head, way, self._nest(other, join), body),)
        return body

    def _outer(self) -> list[int]:
        """Return the primitives from the last to the first; of inner loops only the heads."""
        numbers = []
        at = self._start
        while at < self._end:
            numbers.append(at)
            at = self._loops[at] + 1 if self._is_head(at) else at + 1
        return numbers[::-1]

    def _is_head(self, at: int) -> bool:
        return at in self._loops and not (self._in_loop and at == self._start)

    def _turn(self, head: int) -> _Stretch:
        if head not in self._turns:
            end = self._loops[head] + 1
            turn = _Stretch(self._source, self._steps, self._loops, head, end, in_loop=True)
            self._turns[head] = turn
        return self._turns[head]

    def _next(self, at: int) -> list[int]:
        """Return the primitives that may follow; of a conditional jump, first the one if true."""
        step = self._steps[at]
        if self._is_head(at):
            beyond = [self._land(target, step) for target in self._turn(at).beyond]
            return [self._loops[at] + 1, *beyond]
        following = [] if step.op == "_jump" else [at + 1]
        if jumps(step):
            following.append(self._land(target_of(self._source, step, len(self._steps)), step))
        return following

    def _land(self, target: int, step: Primitive) -> int:
        if self._in_loop and target == self._start:
            return self._last
        if self._in_loop and target > self._end and target not in self.beyond:
            self.beyond.append(target)
            self._joins[target] = self._last
        if target not in self._joins:
            raise self._source.refuse("a jump into or between loops", target, step.where)
        return target

    def _meet(self, ways: list[int]) -> int:
        """Return the first primitive that all ways have in common."""
        first, *others = ways
        for other in others:
            while first != other:
                if first < other:
                    first = self._joins[first]
                else:
                    other = self._joins[other]
        return first
