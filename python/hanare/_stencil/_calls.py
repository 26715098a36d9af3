# SPDX-License-Identifier: Apache-2.0
"""Calls in stencils: functions of mathematics, where, sums that are written out, reductions over
all cells, and functions of the program's own, which are read in place."""
from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

from ._functions import ALL_NAMES, FUNCTIONS, OTHER_NAMES, SPECIAL
from ._nodes import Node

_INLINED_MAX = 32
_POWER_MAX = 16


class Calls:
    """The part of Reader (_reader.py) that reads calls."""

    def called(self, place: ast.Call) -> tuple[str, Callable[..., Any] | None]:
        """The name of one of FUNCTIONS or SPECIAL, or a function of the program's own."""
        function = place.func
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            name = function.attr
            if function.value.id not in ("math", "np", "numpy"):
                self.fail(function, "functions are called by their names alone, or as of math, np "
                                    "and numpy")
        elif isinstance(function, ast.Name):
            name = function.id
            own = self.constants.get(name, self.source.captured.get(name))
            if inspect.isfunction(own) and OTHER_NAMES.get(name, name) not in FUNCTIONS:
                return name, own
        else:
            self.fail(function, "this cannot be called")
        name = OTHER_NAMES.get(name, name)
        if name not in FUNCTIONS and name not in SPECIAL:
            self.fail(function, f"{name!r} is not known as a function; those known are "
                                + ", ".join(ALL_NAMES))
        return name, None

    def reduction_kind(self, place: ast.expr) -> str | None:
        """Whether a value is a reduction over all cells: sum, max or min of one node."""
        if not (isinstance(place, ast.Call) and isinstance(place.func, ast.Name)
                and place.func.id in ("sum", "max", "min") and len(place.args) == 1
                and not place.keywords):
            return None
        argument = place.args[0]
        if isinstance(argument, (ast.GeneratorExp, ast.ListComp, ast.Tuple, ast.List)):
            return None
        if isinstance(argument, ast.Name):
            from ._reader import FieldName
            value = self.name(argument)
            return place.func.id if isinstance(value, (Node, FieldName)) else None
        return place.func.id

    def _value_Call(self, place: ast.Call) -> Any:
        if place.keywords:
            self.fail(place.keywords[0].value, "arguments are given without names")
        if any(isinstance(argument, ast.Starred) for argument in place.args):
            self.fail(place, "arguments are given one by one")
        name, own = self.called(place)
        if own is not None:
            return self.inline(place, name, own)
        if name in FUNCTIONS:
            return self.mathematics(place, name)
        return getattr(self, f"_call_{name}")(place)

    def arguments(self, place: ast.Call, count: int, form: str) -> list[Any]:
        if len(place.args) != count:
            self.fail(place, f"{len(place.args)} argument(s) where {form} is meant")
        return [self.number(argument) for argument in place.args]

    def mathematics(self, place: ast.Call, name: str) -> Any:
        in_c, count, of_constants = FUNCTIONS[name]
        form = f"{name}({', '.join('ab'[:count])})"
        values = self.arguments(place, count, form)
        if not any(isinstance(value, Node) for value in values):
            return self.folded(place, of_constants, *values)
        return self.graph.node("call", in_c, (self.as_node(place, value) for value in values))

    def _call_where(self, place: ast.Call) -> Any:
        test, yes, no = self.arguments(place, 3, "where(condition, a, b)")
        if not isinstance(test, Node):
            return yes if test else no
        return self.where(place, test, yes, no)

    def where(self, place: ast.AST, test: Node, yes: Any, no: Any) -> Node:
        return self.graph.node("where", None, (self.condition(place, test),
                                               self._plain(place, yes), self._plain(place, no)))

    def _plain(self, place: ast.AST, value: Any) -> Node:
        node = self.as_node(place, value)
        if node.is_condition:
            node = self.graph.node("where", None, (node, self.graph.node("number", 1.0),
                                                   self.graph.node("number", 0.0)))
        return node

    def _call_old(self, place: ast.Call) -> Node:
        from ._reader import FieldName
        value = self.value(place.args[0]) if len(place.args) == 1 else None
        if not isinstance(value, FieldName):
            self.fail(place, "old(field) is the cell of a field before its last write, and takes "
                             "the name of a field")
        return self.graph.node("before", value.name)

    def _call_float(self, place: ast.Call) -> Any:
        return self.arguments(place, 1, "float(a)")[0]

    def _call_range(self, place: ast.Call) -> range:
        if not 1 <= len(place.args) <= 3:
            self.fail(place, "range(stop), range(start, stop) or range(start, stop, step)")
        numbers = [self.constant_integer(argument) for argument in place.args]
        if len(numbers) == 3 and numbers[2] == 0:
            self.fail(place, "a range cannot go by steps of 0")
        return range(*numbers)

    def _call_len(self, place: ast.Call) -> int:
        value = self.value(place.args[0]) if len(place.args) == 1 else None
        try:
            return len(value)  # type: ignore[arg-type]
        except TypeError:
            return self.fail(place, "len(sequence) is meant")

    def _call_pow(self, place: ast.Call) -> Any:
        base, exponent = self.arguments(place, 2, "pow(a, b)")
        if not isinstance(base, Node) and not isinstance(exponent, Node):
            return self.folded(place, pow, base, exponent)
        return self.power(place, base, exponent)

    def power(self, place: ast.AST, base: Any, exponent: Any) -> Any:
        """By products for small whole exponents, as x * x; NumPy does so for 2 only."""
        if isinstance(exponent, Node) or not isinstance(base, Node):
            return self.graph.node("call", "pow", (self.as_node(place, base),
                                                   self.as_node(place, exponent)))
        if exponent == 0.5:
            return self.graph.node("call", "sqrt", (base,))
        if exponent != int(exponent) or abs(exponent) > _POWER_MAX:
            return self.graph.node("call", "pow", (base, self.as_node(place, exponent)))
        if exponent == 0:
            return 1.0
        result, square, left = None, base, abs(int(exponent))
        while left:
            if left & 1:
                result = square if result is None else self._product(result, square)
            left >>= 1
            if left:
                square = self._product(square, square)
        if exponent < 0:
            result = self.graph.node("binary", "/", (self.graph.node("number", 1.0), result))
        return result

    def _product(self, left: Node, right: Node) -> Node:
        return self.graph.node("binary", "*", (left, right))

    def _values(self, place: ast.Call) -> list[Any]:
        """Of several arguments, of a sequence, or of a generator that is written out."""
        if len(place.args) != 1:
            return [self.number(argument) for argument in place.args]
        argument = place.args[0]
        if isinstance(argument, (ast.GeneratorExp, ast.ListComp)):
            values: list[Any] = []
            self._generate(argument, 0, values)
            return values
        if self.reduction_kind(place) is not None:
            self.fail(place, "a reduction over all cells is a line of its own, as "
                             "residual = sum((new - u)**2)")
        return [self.as_number(argument, value) for value in self.elements(argument)]

    def _generate(self, place: ast.GeneratorExp | ast.ListComp, depth: int,
                  values: list[Any]) -> None:
        if depth == len(place.generators):
            values.append(self.number(place.elt))
            return
        generator = place.generators[depth]
        before = dict(self.locals)
        for value in self.elements(generator.iter):
            self.bind_loop(generator.target, value)
            tests = [self.number(test) for test in generator.ifs]
            if any(isinstance(test, Node) for test in tests):
                self.fail(generator.ifs[0], "if is for constants only; use where(condition, a, b)")
            if all(tests):
                self._generate(place, depth + 1, values)
        self.locals = before

    def _call_sum(self, place: ast.Call) -> Any:
        values = self._values(place)
        total: Any = 0
        for number, value in enumerate(values):
            total = value if number == 0 else self.binary(place, ast.Add(), total, value)
        return total

    def _extreme(self, place: ast.Call, sign: str, function: Callable[..., Any]) -> Any:
        values = self._values(place)
        if not values:
            self.fail(place, "nothing to choose from")
        result = values[0]
        for value in values[1:]:
            if not isinstance(result, Node) and not isinstance(value, Node):
                result = function(result, value)
                continue
            left, right = self.as_node(place, result), self.as_node(place, value)
            test = self.graph.node("compare", sign, (left, right))
            result = self.where(place, test, left, right)
        return result

    def _call_min(self, place: ast.Call) -> Any:
        return self._extreme(place, "<", min)

    def _call_max(self, place: ast.Call) -> Any:
        return self._extreme(place, ">", max)

    def inline(self, place: ast.Call, name: str, function: Callable[..., Any]) -> Any:
        """A function of the program's own, read with its arguments in its parameters' place."""
        from ._source import source_of_function
        inner = source_of_function(function)
        parameters = inner.parameters or []
        if len(parameters) != len(place.args):
            self.fail(place, f"{name}() takes {len(parameters)} arguments")
        if self.inlined >= _INLINED_MAX:
            self.fail(place, f"functions call functions more than {_INLINED_MAX} deep")
        values = [self.value(argument) for argument in place.args]
        if not inner.body or not isinstance(inner.body[-1], ast.Return) \
                or inner.body[-1].value is None:
            self.fail(place, f"{name}() does not end with the return of a value")
        kept = self.source, self.locals, self.first_places, self.used
        inner.parameters = []
        self.source, self.locals = inner, dict(zip(parameters, values))
        self.first_places, self.used = {}, set()
        self.inlined += 1
        try:
            self.statements(inner.body[:-1])
            return self.value(inner.body[-1].value)
        finally:
            self.inlined -= 1
            self.source, self.locals, self.first_places, self.used = kept
