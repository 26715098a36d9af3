# SPDX-License-Identifier: Apache-2.0
"""Texts and functions that stencils are read from, and errors that point into them."""
from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from .._errors import ArgumentError


class StencilError(ArgumentError):
    """A stencil is wrong: the text has the line, and a caret below the place.

    ``line`` and ``column`` count from 1, in the text, or in the file that the function is in; 0
    where there is no place.
    """

    def __init__(self, text: str, line: int = 0, column: int = 0) -> None:
        super().__init__(text, "INVALID_ARGUMENT")
        self.line = line
        self.column = column


class Source:
    """A syntax tree, and where it is from.

    parameters: names of fields of a function, None for a text.  captured: what names of the
    function that are not its own stand for.
    """

    def __init__(self, name: str, text: str, first_line: int = 1, indent: int = 0) -> None:
        self.name = name
        self.lines = text.splitlines()
        self.first_line = first_line
        self.indent = indent
        self.parameters: list[str] | None = None
        self.captured: Mapping[str, Any] = {}
        try:
            self.body: list[ast.stmt] = ast.parse(text).body
        except SyntaxError as error:
            self._fail(f"syntax: {error.msg}", error.lineno or 1, error.offset or 1,
                       error.end_lineno or 0, error.end_offset or 0)
        except (ValueError, RecursionError, MemoryError) as error:
            raise StencilError(f"{name}: cannot be read: {error}") from None

    def fail(self, place: ast.AST, text: str) -> NoReturn:
        """Raises what is wrong at a place."""
        self._fail(text, getattr(place, "lineno", 1), getattr(place, "col_offset", 0) + 1,
                   getattr(place, "end_lineno", 0) or 0, (getattr(place, "end_col_offset", 0)
                                                          or 0) + 1)

    def _fail(self, text: str, line: int, column: int, end_line: int, end_column: int) -> NoReturn:
        shown = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        # Columns of syntax trees count bytes.
        before = shown.encode()[:column - 1].decode(errors="replace")
        width = 1
        if end_line == line and end_column > column:
            width = max(1, len(shown.encode()[column - 1:end_column - 1].decode(errors="replace")))
        message = (f"{self.name}, line {line + self.first_line - 1}: {text}\n"
                   f"    {shown}\n    {' ' * len(before)}{'^' * width}")
        raise StencilError(message, line + self.first_line - 1,
                           len(before) + 1 + self.indent) from None


def source_of_text(text: str, number: int) -> Source:
    if not text.strip():
        raise StencilError("the stencil is empty; it should be like 'u = u[0, 0, 0] + ...'")
    return Source("stencil" if number == 0 else f"stage {number + 1}",
                  textwrap.dedent(text).strip("\n").rstrip())


def source_of_function(function: Callable[..., Any]) -> Source:
    name = function.__name__
    try:
        lines, first_line = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise StencilError(f"{name}: the source of the function cannot be read (was it defined "
                           "interactively?); give the stencil as a text") from None
    text = "".join(lines)
    dedented = textwrap.dedent(text)
    indent = len(lines[0]) - len(dedented.splitlines(keepends=True)[0])
    file = inspect.getsourcefile(function) or "?"
    source = Source(f"{name} ({file})", dedented, first_line, indent)
    definition = source.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise StencilError(f"{name}: is no function made by 'def'; a stencil is such a function, "
                           "or a text")
    arguments = definition.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
        source.fail(definition, "parameters are the names of fields, without defaults and stars")
    source.parameters = [argument.arg for argument in
                         arguments.posonlyargs + arguments.args]
    source.body = definition.body
    closure = inspect.getclosurevars(function)
    names = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
    around = {**function.__globals__, **closure.nonlocals}
    source.captured = {each: around[each] for each in names if each in around}
    return source
