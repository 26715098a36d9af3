# SPDX-License-Identifier: Apache-2.0
"""What a stage of a stencil computes for one cell: a graph of operations.

Equal operations on equal operands are one node, so that what is written twice is computed once; the
order in which operations are written stays, so that results are those of NumPy to the last bit.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Iterable

RADIUS_MAX = 4
NODES_MAX = 20_000


@dataclasses.dataclass(frozen=True, eq=False)
class Node:
    """``kind`` says what ``value`` is:

    number: a Python number.  cell: (field, offsets).  before: a field, as it was before its last
    write.  place: "z", "y", "x" or "step".  binary: one of ``+ - * /``.  compare: ``< <= > >= ==
    !=``.  logic: "and", "or", "not".  call: a function of C.  where, negate: nothing.
    """

    kind: str
    value: object = None
    parts: tuple[Node, ...] = ()

    @property
    def is_condition(self) -> bool:
        return self.kind in ("compare", "logic")


class Graph:
    """Makes nodes, each after its parts."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._known: dict[tuple[object, ...], Node] = {}

    def node(self, kind: str, value: object = None, parts: Iterable[Node] = ()) -> Node:
        operands = tuple(parts)
        key = (kind, type(value), repr(value) if kind == "number" else value,
               *map(id, operands))
        found = self._known.get(key)
        if found is None:
            if len(self.nodes) >= NODES_MAX:
                raise OverflowError
            found = self._known[key] = Node(kind, value, operands)
            self.nodes.append(found)
        return found


@dataclasses.dataclass(frozen=True)
class Reduction:
    name: str
    kind: str  # "sum", "max" or "min"
    term: Node


@dataclasses.dataclass(frozen=True)
class Stage:
    """A part of a step, read: what is computed, and what that needs."""

    name: str
    nodes: tuple[Node, ...]  # those that are needed, each after its parts
    writes: dict[str, Node]
    reductions: tuple[Reduction, ...]
    reads: dict[str, int]  # field: radius
    before: frozenset[str]  # fields of which the level before is read
    dimensions: int | None  # None: no cell is read at an offset


def stage_of(name: str, graph: Graph, writes: dict[str, Node], reductions: list[Reduction],
             dimensions: int | None) -> Stage:
    needed: set[int] = {id(node) for node in writes.values()}
    needed |= {id(reduction.term) for reduction in reductions}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if id(node) in needed:
            needed.update(id(part) for part in node.parts)
            kept.append(node)
    reads: dict[str, int] = {}
    before: set[str] = set()
    for node in reversed(kept):
        if node.kind == "cell":
            field, offsets = node.value  # type: ignore[misc]
            reads[field] = max([reads.get(field, 0), *(abs(offset) for offset in offsets)])
        elif node.kind == "before":
            before.add(node.value)  # type: ignore[arg-type]
    return Stage(name, tuple(reversed(kept)), dict(writes), tuple(reductions), reads,
                 frozenset(before), dimensions)
