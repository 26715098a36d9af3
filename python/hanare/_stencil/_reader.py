# SPDX-License-Identifier: Apache-2.0
"""From a syntax tree to what is computed.

The tree is interpreted: what is known (constants, indices of loops) is computed at once, the rest
becomes nodes.  A stage is read twice: when the stencil is made, without knowing the fields of a
grid, so that most mistakes show there, and when it meets a grid.
"""
from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ._calls import Calls
from ._nodes import RADIUS_MAX, Graph, Node, Reduction, Stage, stage_of
from ._source import Source

_ITERATIONS_MAX = 10_000
PLACES = ("step", "z", "y", "x")

_BINARY: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add), ast.Sub: ("-", operator.sub), ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv), ast.Pow: ("**", operator.pow),
    ast.Mod: ("%", operator.mod), ast.FloorDiv: ("//", operator.floordiv),
}
_COMPARE: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ("<", operator.lt), ast.LtE: ("<=", operator.le), ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge), ast.Eq: ("==", operator.eq), ast.NotEq: ("!=", operator.ne),
}


class FieldName:
    """A field, not yet a cell of it."""

    def __init__(self, name: str) -> None:
        self.name = name


class Pending:
    """What a reduction will be known as, after the run."""


class Reader(Calls):
    """Reads one stage.

    fields: name and whether it is a constant one; None where they are not known.
    constants: numbers, sequences of them and functions, by name.
    """

    def __init__(self, source: Source, constants: Mapping[str, Any],
                 fields: Mapping[str, bool] | None, dimensions: int | None) -> None:
        self.source = source
        self.constants = constants
        self.fields = fields
        self.dimensions = dimensions
        self.indexed: ast.AST | None = None
        self.graph = Graph()
        self.locals: dict[str, Any] = {}
        self.used: set[str] = set()
        self.first_places: dict[str, ast.AST] = {}
        self.writes: dict[str, Node] = {}
        self.reductions: list[Reduction] = []
        self.iterations = 0
        self.inlined = 0
        self.subscripted = {node.value.id for statement in source.body
                            for node in ast.walk(statement) if isinstance(node, ast.Subscript)
                            and isinstance(node.value, ast.Name)}

    # What names are.

    def fail(self, place: ast.AST, text: str) -> Any:
        self.source.fail(place, text)

    def is_field(self, name: str) -> bool:
        if self.source.parameters is not None:
            return name in self.source.parameters
        if self.fields is not None:
            return name in self.fields
        return name in self.subscripted and name not in self.constants

    def known_fields(self) -> str:
        names = self.source.parameters if self.source.parameters is not None else self.fields
        return ", ".join(names) if names else "none are known yet"

    def name(self, place: ast.Name) -> Any:
        name = place.id
        if name in self.locals:
            self.used.add(name)
            return self.locals[name]
        if self.is_field(name):
            return FieldName(name)
        if name in self.constants:
            return self.constants[name]
        if name in PLACES:
            if name == "z" and self.dimensions == 2:
                self.fail(place, "there is no z in two dimensions; axes are y and x")
            return self.graph.node("place", name)
        if name in self.source.captured:
            return self.source.captured[name]
        if self.fields is None and self.source.parameters is None:
            return FieldName(name)  # of a grid that is not known yet
        return self.fail(place, f"{name!r} is neither a field ({self.known_fields()}) nor a "
                                "constant that was given")

    def cell(self, place: ast.AST, field: str, offsets: tuple[int, ...] | None) -> Node:
        if offsets is None:
            return self.graph.node("cell", (field, ()))
        if self.dimensions is None:
            self.dimensions, self.indexed = len(offsets), place
        if len(offsets) != self.dimensions:
            axes = "z, y, x" if self.dimensions == 3 else "y, x"
            self.fail(place, f"{field}: {len(offsets)} offsets, but the grid has "
                             f"{self.dimensions} axes ({axes})" if self.indexed is None else
                      f"{field}: {len(offsets)} offsets, but {self.dimensions} elsewhere")
        return self.graph.node("cell", (field, offsets if any(offsets) else ()))

    # Expressions.  A value is a number, a sequence of values, a field's name, a node or a function.

    def value(self, place: ast.expr) -> Any:
        method = getattr(self, f"_value_{type(place).__name__}", None)
        if method is None:
            self.fail(place, f"a stencil cannot have {_described(place)}")
        return method(place)  # type: ignore[misc]

    def number(self, place: ast.expr) -> Any:
        """A number or a node."""
        return self.as_number(place, self.value(place))

    def as_number(self, place: ast.AST, value: Any) -> Any:
        if isinstance(value, Node):
            return value
        if isinstance(value, FieldName):
            if value.name in self.writes:
                self.fail(place, f"{value.name!r} has been assigned above; write {value.name}[0"
                                 f"{', 0' * ((self.dimensions or 3) - 1)}] for what it was before "
                                 "the stage, or give the new value a name of its own")
            return self.cell(place, value.name, None)
        if isinstance(value, Pending):
            self.fail(place, "what is reduced over all cells is known after the run only")
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        if isinstance(value, (int, np.integer)):
            return int(value)
        if isinstance(value, (float, np.floating)):
            return float(value)
        if isinstance(value, np.ndarray) and value.ndim == 0:
            return self.as_number(place, value[()])
        return self.fail(place, f"{_shown(place)} is no number but {_kind(value)}")

    def as_node(self, place: ast.AST, value: Any) -> Node:
        number = self.as_number(place, value)
        if isinstance(number, Node):
            return number
        try:
            return self.graph.node("number", float(number))
        except OverflowError:
            return self.fail(place, "the number is too large")

    def condition(self, place: ast.AST, value: Any) -> Node:
        node = self.as_node(place, value)
        if node.is_condition:
            return node
        return self.graph.node("compare", "!=", (node, self.graph.node("number", 0.0)))

    def _value_Constant(self, place: ast.Constant) -> Any:
        if isinstance(place.value, (bool, int, float)):
            return place.value
        return self.fail(place, f"{place.value!r} is no number")

    def _value_Name(self, place: ast.Name) -> Any:
        return self.name(place)

    def _value_Attribute(self, place: ast.Attribute) -> Any:
        """Numbers of modules, as math.pi, and of objects of the program's own."""
        if isinstance(place.value, ast.Name) and place.value.id in ("math", "np", "numpy") \
                and place.attr in ("pi", "e", "tau", "inf", "nan"):
            return getattr(math, place.attr)
        owner = self.source.captured.get(place.value.id) if isinstance(
            place.value, ast.Name) and not self.is_field(place.value.id) else None
        value = getattr(owner, place.attr, None)
        if isinstance(value, (bool, int, float, tuple, list, np.number, np.ndarray)):
            return value
        return self.fail(place, f"{_shown(place)} is no number")

    def _value_Tuple(self, place: ast.Tuple | ast.List) -> Any:
        return tuple(self.value(each) for each in place.elts)

    _value_List = _value_Tuple

    def _value_BinOp(self, place: ast.BinOp) -> Any:
        # Sums are long chains to the left: no recursion for those.
        chain = [place]
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        value = self.number(chain[-1].left)
        for each in reversed(chain):
            value = self.binary(each, each.op, value, self.number(each.right))
        return value

    def binary(self, place: ast.AST, kind: ast.operator, left: Any, right: Any) -> Any:
        found = _BINARY.get(type(kind))
        if found is None:
            self.fail(place, "operators are + - * / and **; & | ~ are written and, or, not")
        sign, function = found  # type: ignore[misc]
        if not isinstance(left, Node) and not isinstance(right, Node):
            return self.folded(place, function, left, right)
        if sign == "**":
            return self.power(place, left, right)
        if sign in ("%", "//"):
            self.fail(place, f"{sign} is for constants only; use fmod(a, b) or floor(a / b)")
        return self.graph.node("binary", sign, (self.as_node(place, left),
                                                self.as_node(place, right)))

    def folded(self, place: ast.AST, function: Callable[..., Any], *numbers: Any) -> Any:
        try:
            value = function(*numbers)
        except (ArithmeticError, ValueError) as error:
            return self.fail(place, f"of constants: {error}")
        if isinstance(value, complex):
            self.fail(place, "of constants: the result is complex")
        return value

    def _value_UnaryOp(self, place: ast.UnaryOp) -> Any:
        value = self.number(place.operand)
        if isinstance(place.op, ast.Not):
            if not isinstance(value, Node):
                return not value
            return self.graph.node("logic", "not", (self.condition(place, value),))
        if isinstance(place.op, ast.Invert):
            self.fail(place, "~ is written not")
        if isinstance(place.op, ast.UAdd):
            return value
        return self.graph.node("negate", None, (value,)) if isinstance(value, Node) else -value

    def _value_Compare(self, place: ast.Compare) -> Any:
        result: Any = None
        left = self.number(place.left)
        for kind, right_place in zip(place.ops, place.comparators):
            if type(kind) not in _COMPARE:
                self.fail(place, "comparisons are < <= > >= == and !=")
            sign, function = _COMPARE[type(kind)]
            right = self.number(right_place)
            if isinstance(left, Node) or isinstance(right, Node):
                one: Any = self.graph.node("compare", sign, (
                    self.as_node(place, left), self.as_node(place, right)))
            else:
                one = function(left, right)
            result = one if result is None else self.both("and", place, result, one)
            left = right
        return result

    def both(self, kind: str, place: ast.AST, left: Any, right: Any) -> Any:
        if not isinstance(left, Node) and not isinstance(right, Node):
            return (left and right) if kind == "and" else (left or right)
        return self.graph.node("logic", kind, (self.condition(place, left),
                                               self.condition(place, right)))

    def _value_BoolOp(self, place: ast.BoolOp) -> Any:
        kind = "and" if isinstance(place.op, ast.And) else "or"
        result = self.number(place.values[0])
        for each in place.values[1:]:
            result = self.both(kind, place, result, self.number(each))
        return result

    def _value_IfExp(self, place: ast.IfExp) -> Any:
        test = self.number(place.test)
        if not isinstance(test, Node):
            return self.value(place.body if test else place.orelse)
        return self.where(place, test, self.number(place.body), self.number(place.orelse))

    def _value_Subscript(self, place: ast.Subscript) -> Any:
        value = self.value(place.value)
        index = place.slice
        items = index.elts if isinstance(index, ast.Tuple) else [index]
        offsets = tuple(self.constant_integer(item) for item in items)
        if isinstance(value, FieldName):
            if len(offsets) not in (2, 3):
                self.fail(place, f"{value.name}: {len(offsets)} offset(s); cells are indexed [z, "
                                 "y, x], or [y, x] in two dimensions")
            for item, offset in zip(items, offsets):
                if abs(offset) > RADIUS_MAX:
                    self.fail(item, f"{value.name}: an offset of {offset}; at most {RADIUS_MAX} in "
                                    "both directions are possible")
            return self.cell(place, value.name, offsets)
        if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str):
            try:
                for offset in offsets:
                    value = value[offset]
            except (IndexError, TypeError):
                self.fail(place, f"{_shown(place.value)} has no element {list(offsets)}")
            return value
        what = "a local name" if isinstance(value, Node) else _kind(value)
        return self.fail(place, f"{_shown(place.value)} is {what}, which has no cells around; only "
                                f"fields ({self.known_fields()}) are indexed")

    def constant_integer(self, place: ast.expr) -> int:
        value = self.value(place)
        try:
            if isinstance(value, (bool, np.bool_)):
                raise TypeError
            return operator.index(value)
        except TypeError:
            return self.fail(place, "an offset has to be a constant integer, as -1 or 2")

    # Statements.

    def read(self, name: str) -> Stage:
        try:
            self.statements(self.source.body, top=True)
        except OverflowError:
            self.fail(self.source.body[0], "the stencil is too large")
        except RecursionError:
            self.fail(self.source.body[0], "the stencil is nested too deep")
        # Of a text, without a grid, whatever is assigned may turn out to be a field.
        open_end = self.fields is None and self.source.parameters is None and bool(self.locals)
        if not self.writes and not open_end:
            self.fail(self.source.body[-1] if self.source.body else ast.Pass(),
                      "no field is written; "
                      + (f"fields are {self.known_fields()}" if self.fields is not None
                         or self.source.parameters is not None
                         else "a stencil should be like 'u = u[0, 0, 0] + ...'"))
        if self.fields is not None:
            for each, place in self.first_places.items():
                if each not in self.used and not isinstance(self.locals.get(each), Pending):
                    self.fail(place, f"{each!r} is assigned and not used; it is no field "
                                     f"({self.known_fields()})")
        return stage_of(name, self.graph, self.writes, self.reductions, self.dimensions)

    def statements(self, body: Iterable[ast.stmt], top: bool = False) -> None:
        for statement in body:
            method = getattr(self, f"_do_{type(statement).__name__}", None)
            if method is None:
                self.fail(statement, f"a stencil cannot have {_described(statement)}")
            method(statement)  # type: ignore[misc]

    def _do_Pass(self, statement: ast.Pass) -> None:
        pass

    def _do_Expr(self, statement: ast.Expr) -> None:
        if isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str):
            return
        self.fail(statement, "the value is not assigned to anything; a stencil is like "
                             "'u = u[0, 0, 0] + ...'")

    def _do_Assign(self, statement: ast.Assign) -> None:
        if len(statement.targets) != 1:
            self.fail(statement, "one assignment at a time")
        self.assign(statement.targets[0], statement.value)

    def _do_AnnAssign(self, statement: ast.AnnAssign) -> None:
        if statement.value is None:
            self.fail(statement, "no value is assigned")
        self.assign(statement.target, statement.value)  # type: ignore[arg-type]

    def _do_AugAssign(self, statement: ast.AugAssign) -> None:
        target = statement.target
        if isinstance(target, ast.Subscript):
            self._written_name(target)
            target = target.value  # type: ignore[assignment]
        if not isinstance(target, ast.Name):
            self.fail(statement, "only names are assigned to")
        read = ast.copy_location(ast.Name(target.id, ast.Load()), target)
        value = self.binary(statement, statement.op, self.number(read),
                            self.number(statement.value))
        self.store(target, value)  # type: ignore[arg-type]

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            values = self.value(value)
            if not isinstance(values, (tuple, list)) or len(values) != len(target.elts):
                self.fail(value, f"{len(target.elts)} values are needed")
            for each, one in zip(target.elts, values):
                self.store(each, one)
            return
        reduction = self.reduction_kind(value)
        if reduction is not None:
            self.reduce(target, reduction, value)  # type: ignore[arg-type]
            return
        given = self.value(value)
        if isinstance(given, (FieldName, Pending)):
            given = self.as_number(value, given)
        self.store(target, given)

    def _written_name(self, target: ast.Subscript) -> ast.Name:
        items = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        if not isinstance(target.value, ast.Name):
            self.fail(target, "only names are assigned to")
        if any(self.constant_integer(item) != 0 for item in items):
            self.fail(target, "a stencil writes the cell itself only: offsets of what is assigned "
                              "are 0")
        return target.value  # type: ignore[return-value]

    def store(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Subscript):
            target = self._written_name(target)
            if not self.is_field(target.id):
                self.fail(target, f"{target.id!r} is no field ({self.known_fields()})")
        if not isinstance(target, ast.Name):
            self.fail(target, "only names are assigned to")
        name = target.id  # type: ignore[union-attr]
        if self.is_field(name):
            if self.fields is not None and self.fields.get(name):
                self.fail(target, f"{name!r} is a constant field, which stencils do not write")
            if name in self.writes:
                self.fail(target, f"{name!r} is assigned twice in one stage")
            node = self.as_node(target, value)
            if node.is_condition:
                node = self.where(target, node, 1, 0)
            self.writes[name] = node
            return
        if name in self.constants:
            self.fail(target, f"{name!r} is a constant that was given")
        if isinstance(value, FieldName):
            value = self.as_number(target, value)
        self.first_places.setdefault(name, target)
        self.locals[name] = value

    def reduce(self, target: ast.expr, kind: str, value: ast.Call) -> None:
        if not isinstance(target, ast.Name) or self.is_field(target.id):
            self.fail(target, "a reduction over all cells is assigned to a name of its own")
        name = target.id  # type: ignore[union-attr]
        if name in self.locals or any(each.name == name for each in self.reductions):
            self.fail(target, f"{name!r} is assigned twice")
        term = self.as_node(value.args[0], self.value(value.args[0]))
        if term.is_condition:
            term = self.where(value, term, 1, 0)
        self.reductions.append(Reduction(name, kind, term))
        self.locals[name] = Pending()

    def _do_For(self, statement: ast.For) -> None:
        if statement.orelse:
            self.fail(statement, "a loop cannot have an else")
        for value in self.elements(statement.iter):
            self.bind_loop(statement.target, value)
            self.statements(statement.body)

    def elements(self, place: ast.expr) -> Sequence[Any]:
        value = self.value(place)
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if not isinstance(value, (Sequence, range)) or isinstance(value, str):
            self.fail(place, "a loop goes over a range of constants or a sequence of them")
        self.iterations += len(value)
        if self.iterations > _ITERATIONS_MAX:
            self.fail(place, f"loops have more than {_ITERATIONS_MAX} turns")
        return value

    def bind_loop(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Tuple):
            if not isinstance(value, (tuple, list)) or len(value) != len(target.elts):
                self.fail(target, f"{len(target.elts)} values are needed")
            for each, one in zip(target.elts, value):
                self.bind_loop(each, one)
            return
        if not isinstance(target, ast.Name) or self.is_field(target.id):
            self.fail(target, "a loop's variable is a name, and no field")
        self.locals[target.id] = value  # type: ignore[union-attr]

    def _do_If(self, statement: ast.If) -> None:
        test = self.number(statement.test)
        if isinstance(test, Node):
            self.fail(statement.test, "if is for constants only; use where(condition, a, b), or "
                                      "a if condition else b")
        self.statements(statement.body if test else statement.orelse)

    def _do_Return(self, statement: ast.Return) -> None:
        parameters = self.source.parameters
        if parameters is None or statement is not self.source.body[-1]:
            self.fail(statement, "return is the last line of a function only")
        if statement.value is None:
            return
        values = statement.value.elts if isinstance(statement.value, ast.Tuple) else [
            statement.value]
        if len(values) > len(parameters):
            self.fail(statement, f"{len(values)} values are returned for {len(parameters)} "
                                 "parameters")
        numbers = [self.number(value) for value in values]
        for parameter, place, number in zip(parameters, values, numbers):  # type: ignore[arg-type]
            self.store(ast.copy_location(ast.Name(parameter, ast.Store()), place), number)


def _shown(place: ast.AST) -> str:
    text = ast.unparse(place)
    return text if len(text) <= 40 else text[:37] + "..."


def _kind(value: Any) -> str:
    if isinstance(value, FieldName):
        return "a field"
    if isinstance(value, (int, float)):
        return "a number"
    return f"of type {type(value).__name__}"


def _described(place: ast.AST) -> str:
    return {
        "FunctionDef": "a function within", "Lambda": "a lambda", "While": "a while loop",
        "Import": "an import", "ImportFrom": "an import", "Attribute": "an attribute",
        "ListComp": "a list comprehension", "Slice": "a slice", "With": "a with",
        "Starred": "a starred expression", "JoinedStr": "a text", "Dict": "a dict",
        "Set": "a set", "Global": "a global", "Nonlocal": "a nonlocal", "Assert": "an assert",
        "Delete": "a del", "Raise": "a raise", "Try": "a try", "Break": "a break",
        "Continue": "a continue", "ClassDef": "a class", "NamedExpr": "an assignment within",
        "GeneratorExp": "a generator except in sum(), min() or max()",
    }.get(type(place).__name__, f"{type(place).__name__}")
