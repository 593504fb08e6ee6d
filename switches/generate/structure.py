"""p4c's graph of nodes and jumps, as nested statements again.

A graph would have to be walked node by node; nested statements compile to plain branches,
and repeated ones can be found (`lanes.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ringleaf.switches.generate.flow import (
    ActionChoice,
    Apply,
    Body,
    CalledAction,
    If,
    Statement,
    UnlessExited,
    may_exit,
    rebuild,
    substitute,
)
from ringleaf.switches.generate.jumps import action_body
from ringleaf.switches.generate.text import TooLargeError
from ringleaf.switches.source import (
    NO_ACTION,
    ActionCall,
    ActionSource,
    Argument,
    Conditional,
    Constant,
    Expression,
    Node,
    PipelineSource,
    Primitive,
    ProgramSource,
    TableSource,
)

MOST_NODES = 20_000


def pipeline_body(source: ProgramSource, pipeline: PipelineSource, *, calls: bool = False) -> Body:
    """Return a pipeline as nested statements; with `calls`, with notes of the actions it calls."""
    return _Shaper(source, pipeline, calls).body()


class _Shaper:
    """Nests a pipeline's nodes by their immediate post-dominators."""

    def __init__(self, source: ProgramSource, pipeline: PipelineSource, calls: bool) -> None:
        self._source = source
        self._pipeline = pipeline
        self._calls = calls
        self._joins: dict[str, str | None] = {}
        self._built = 0  # nodes, each as often as it is written

    def body(self) -> Body:
        """Return the nested statements of the pipeline; nodes after others are looked at first."""
        for name in self._successors_first():
            self._joins[name] = self._common(self._successors(self._pipeline.nodes[name]))
        return self._build(self._pipeline.first, None)

    def _successors(self, node: Node) -> list[str | None]:
        match node:
            case Conditional():
                return [node.if_true, node.if_false]
            case ActionCall():
                return [node.next]
            case TableSource() if _is_call(node):
                return [_after_call(node)]
            case TableSource() if node.by_hit:
                return [node.next_hit, node.next_miss]
            case TableSource():
                without = [node.next_none] if node.default_action == NO_ACTION else []
                return [*node.next_by_action.values(), *without]

    def _successors_first(self) -> list[str]:
        """Return the reachable nodes, each after all its successors."""
        order: list[str] = []
        seen: dict[str, bool] = {}  # node -> whether it is done
        stack = [self._pipeline.first] if self._pipeline.first else []
        while stack:
            name = stack[-1]
            if seen.get(name):
                stack.pop()
                continue
            after = self._successors(self._pipeline.nodes[name])
            ahead = [one for one in after if one and not seen.get(one)]
            if name not in seen:
                seen[name] = False
            elif ahead:
                raise self._source.refuse("a pipeline with a cycle is not supported", name)
            if ahead:
                stack.extend(reversed(ahead))
            else:
                seen[name] = True
                order.append(name)
                stack.pop()
        return order

    def _common(self, names: Iterable[str | None]) -> str | None:
        """Return the first node that all ways from `names` to the end have in common."""
        chains = [self._chain(name) for name in dict.fromkeys(names)]
        for name in chains[0]:
            if all(name in chain for chain in chains):
                return name
        raise AssertionError("all ways lead to the end")

    def _chain(self, name: str | None) -> list[str | None]:
        chain = [name]
        while name is not None:
            name = self._joins[name]
            chain.append(name)
        return chain

    def _build(self, name: str | None, stop: str | None) -> Body:
        out: list[Statement] = []
        while name != stop:
            assert name is not None
            self._built += 1
            if self._built > MOST_NODES:  # those that ways share are written for each way
                raise TooLargeError(f"a pipeline has at most {MOST_NODES} nodes, written out")
            join = self._joins[name]
            statements = self._statements(self._pipeline.nodes[name], join)
            out.extend(statements)
            if _exits(statements):
                rest = self._build(join, stop)
                if rest:
                    out.append(UnlessExited(rest))
                break
            name = join
        return tuple(out)

    def _statements(self, node: Node, join: str | None) -> Body:
        actions = self._source.actions
        match node:
            case Conditional():
                then = self._build(node.if_true, join)
                otherwise = self._build(node.if_false, join)
                return (If(node.condition, then, otherwise, node.where),)
            case ActionCall():
                return self._call(actions[node.action], ())
            case TableSource() if _is_call(node):
                return self._call(actions[node.default_action], node.default_arguments)
            case TableSource():
                return (self._apply(node, join),)

    def _call(self, action: ActionSource, arguments: tuple[int, ...]) -> Body:
        body = _with_arguments(action_body(self._source, action), arguments)
        return (CalledAction(action), *body) if self._calls else body

    def _apply(self, table: TableSource, join: str | None) -> Apply:
        choices = []
        exits = False
        for number in table.actions:
            action = self._source.actions[number]
            body = action_body(self._source, action)
            following = () if table.by_hit else self._build(table.next_by_action[number], join)
            exits |= _exits(body)
            choices.append(ActionChoice(action, body, _unless(_exits(body), following)))
        hit: Body = ()
        miss: Body = ()
        if table.by_hit:
            hit = _unless(exits, self._build(table.next_hit, join))
            miss = _unless(exits, self._build(table.next_miss, join))
        elif table.default_action == NO_ACTION and table.next_none != join:
            choices.append(ActionChoice(_NOTHING, (), self._build(table.next_none, join)))
        return Apply(table, tuple(choices), hit, miss)


_NOTHING = ActionSource(NO_ACTION, "no action", (), ())
"""The action after a miss in a table without a default."""


def _exits(body: Body) -> bool:
    return any(may_exit(statement) for statement in body)


def _unless(exits: bool, body: Body) -> Body:
    """Return a body that is left out for packets that have just exited, if they may have."""
    return (UnlessExited(body),) if exits and body else body


def _is_call(table: TableSource) -> bool:
    """Return whether a table is p4c's form of an action call: no key, and a constant action."""
    return not table.keys and table.default_const


def _after_call(table: TableSource) -> str | None:
    return table.next_miss if table.by_hit else table.next_by_action[table.default_action]


def _with_arguments(body: Body, arguments: tuple[int, ...]) -> Body:
    """Return an action's body with its parameters replaced by constants."""

    def constant(leaf: Expression) -> Expression:
        return Constant(arguments[leaf.index]) if isinstance(leaf, Argument) else leaf

    def change(inner: Body) -> Body:
        return tuple(one(statement) for statement in inner)

    def one(statement: Statement) -> Statement:
        match statement:
            case Primitive():
                values = tuple(substitute(value, constant) for value in statement.parameters)
                return replace(statement, parameters=values)
            case If():
                condition = substitute(statement.condition, constant)
                then, otherwise = change(statement.then), change(statement.otherwise)
                return If(condition, then, otherwise, statement.where)
            case _:
                return rebuild(statement, change)

    return change(body) if arguments else body
