# SPDX-License-Identifier: Apache-2.0
"""Stencils: what a program writes, and what runs take."""
from __future__ import annotations

import ctypes
import dataclasses
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from .._errors import bad_argument
from ._compiler import library_of, processor_flags, vector_bytes
from ._nodes import RADIUS_MAX, Stage
from ._reader import FieldName, Reader
from ._source import Source, StencilError, source_of_function, source_of_text
from ._writer import PRELUDE, Target, Writer, program, reads_of

REDUCTIONS = {"sum": 0, "max": 1, "min": 2}
_STAGES_MAX = 16
_REDUCTIONS_MAX = 8


@dataclasses.dataclass(frozen=True)
class FieldSet:
    """The fields of a grid, as stencils see them.  kinds: "state", "two_levels", "constant"."""

    kinds: tuple[tuple[str, str], ...]
    dimensions: int
    single: bool

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.kinds]

    def kind(self, name: str) -> str | None:
        return dict(self.kinds).get(name)

    def number(self, name: str) -> int:
        return self.names.index(name)


@dataclasses.dataclass(frozen=True)
class BoundStage:
    """A stage for the fields of a grid: a compiled kernel."""

    kernel: int
    user: int
    reads: tuple[tuple[str, int], ...]
    writes: tuple[str, ...]
    reductions: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Bound:
    stages: tuple[BoundStage, ...]
    source: str | None  # C; None where there are only kernels that came compiled
    keeps: object  # what must live as long as the kernels

    @property
    def radius(self) -> int:
        return max((radius for stage in self.stages for _, radius in stage.reads), default=0)


class Stencil:
    """What a step computes: one or more stages.  Made by `hanare.stencil` and `hanare.kernel`.

    radius
        The largest offset that is read, in cells.
    fields
        Names that are read or written, as far as they are known without a grid.
    """

    def __init__(self, parts: Sequence[_Part]) -> None:
        self._parts = tuple(parts)
        self._bound: dict[FieldSet, Bound] = {}
        if len(self._parts) > _STAGES_MAX:
            raise StencilError(f"{len(self._parts)} stages; at most {_STAGES_MAX} are possible")

    @property
    def radius(self) -> int:
        return max((part.radius for part in self._parts), default=0)

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self._parts for name in part.fields))

    def bind(self, fields: FieldSet) -> Bound:
        """Reads the stages again, with the fields of a grid, and compiles them."""
        if fields in self._bound:
            return self._bound[fields]
        read = [part.stage(fields) for part in self._parts if isinstance(part, _WrittenPart)]
        self._check_names(read)
        target_of = {id(part): part for part in self._parts if isinstance(part, _WrittenPart)}
        writers = []
        for number, (part, stage) in enumerate(zip(target_of.values(), read)):
            target = Target(fields.single, vector_bytes(),
                            part.fast_math and "fma" in processor_flags())
            reads = reads_of(stage, {})
            writers.append(Writer(stage, f"hanare_stage_{number}", fields.dimensions, reads,
                                  target))
        source = program(writers, Target(fields.single)) if writers else None
        library = library_of(source) if source is not None else None
        stages, keeps, at = [], [library], 0
        for part in self._parts:
            if isinstance(part, _KernelPart):
                stages.append(part.stage(fields))
                keeps.append(part.keeps)
                continue
            writer = writers[at]
            at += 1
            address = ctypes.cast(getattr(library, writer.function), ctypes.c_void_p).value or 0
            stages.append(BoundStage(
                address, 0, tuple(writer.reads.items()), tuple(writer.stage.writes),
                tuple((each.name, each.kind) for each in writer.stage.reductions)))
        names = [name for stage in stages for name, _ in stage.reductions]
        if len(set(names)) != len(names):
            raise StencilError("two reductions have one name: " + ", ".join(names))
        bound = Bound(tuple(stages), source, keeps)
        self._bound[fields] = bound
        return bound

    @staticmethod
    def _check_names(stages: Sequence[Stage]) -> None:
        for stage in stages:
            if len(stage.reductions) > _REDUCTIONS_MAX:
                raise StencilError(f"{stage.name}: {len(stage.reductions)} reductions; at most "
                                   f"{_REDUCTIONS_MAX} in a stage are possible")

    def c_source(self, fields: Mapping[str, str] | Sequence[str] | str = "u",
                 dimensions: int = 3, dtype: Any = "float64") -> str | None:
        """The C text that is compiled for such a grid, to look at."""
        return self.bind(FieldSet(field_kinds(fields), dimensions, is_single(dtype))).source

    def __repr__(self) -> str:
        return (f"<hanare.Stencil: {len(self._parts)} stage(s), radius {self.radius}, fields "
                f"{', '.join(self.fields)}>")


class _Part(Protocol):
    radius: int
    fields: tuple[str, ...]


class _WrittenPart:
    """A stage that is written in Python or as a text."""

    def __init__(self, source: Source, constants: Mapping[str, Any], fast_math: bool) -> None:
        self.source = source
        self.constants = dict(constants)
        self.fast_math = fast_math
        reader = Reader(source, self.constants, None, None)
        stage = reader.read(source.name)
        self.radius = max(stage.reads.values(), default=0)
        self.fields = tuple(dict.fromkeys([*stage.reads, *stage.writes]))

    def stage(self, fields: FieldSet) -> Stage:
        known = {name: kind == "constant" for name, kind in fields.kinds}
        for name in self.constants:
            if name in known and self.source.parameters is None:
                raise StencilError(f"{self.source.name}: {name!r} is a field of the grid and a "
                                   "constant, too")
        for name in self.source.parameters or []:
            if name not in known:
                raise StencilError(f"{self.source.name}: the parameter {name!r} is no field of the "
                                   f"grid ({', '.join(known)})")
        stage = Reader(self.source, self.constants, known, fields.dimensions).read(
            self.source.name)
        for name in stage.before:
            if fields.kind(name) != "two_levels":
                raise StencilError(f"{self.source.name}: old({name}), but {name!r} is of kind "
                                   f"{fields.kind(name)!r}; it has to be 'two_levels'")
            if name not in stage.writes:
                raise StencilError(f"{self.source.name}: old({name}) is there for stages that "
                                   f"write {name!r} only")
        return stage


class _KernelPart:
    """A stage that is a kernel of the program's own."""

    def __init__(self, address: int | None, text: str | None, function: str,
                 reads: Mapping[str, int], writes: Sequence[str],
                 reductions: Mapping[str, str], user: int, keeps: object,
                 single: bool | None = None) -> None:
        self.address = address
        self.text = text
        self.function = function
        self.reads = dict(reads)
        self.writes = tuple(writes)
        self.reductions = dict(reductions)
        self.user = user
        self.keeps = keeps
        self.single = single  # float32 or float64, where that is known
        self.radius = max(self.reads.values(), default=0)
        self.fields = tuple(dict.fromkeys([*self.reads, *self.writes]))

    def stage(self, fields: FieldSet) -> BoundStage:
        for name in self.fields:
            if fields.kind(name) is None:
                raise StencilError(f"the kernel's {name!r} is no field of the grid "
                                   f"({', '.join(fields.names)})")
        for name in self.writes:
            if fields.kind(name) == "constant":
                raise StencilError(f"the kernel writes {name!r}, which is a constant field")
        if self.single is not None and self.single != fields.single:
            names = ("float64", "float32")
            raise StencilError(f"the kernel is for {names[self.single]}, the grid is of "
                               f"{names[fields.single]}")
        address = self.address
        if address is None:
            kind = "float" if fields.single else "double"
            library = library_of(f"{PRELUDE}typedef {kind} T;\n#line 1 \"kernel\"\n{self.text}")
            try:
                found = getattr(library, self.function)
            except AttributeError:
                raise StencilError(f"the kernel's text has no function {self.function!r} (that is "
                                   "not static)") from None
            address = ctypes.cast(found, ctypes.c_void_p).value or 0
            self.keeps = (self.keeps, library)
        return BoundStage(address, self.user, tuple(self.reads.items()), self.writes,
                          tuple(self.reductions.items()))


def stencil(*stages: str | Callable[..., Any] | Stencil, fast_math: bool = False,
            **constants: Any) -> Any:
    """A stencil: what a step computes for each cell of the fields of a `Grid`.

    >>> heat = hanare.stencil(
    ...     "u = u[0,0,0] + k * (u[-1,0,0] + u[1,0,0] + u[0,-1,0] + u[0,1,0]"
    ...     "                    + u[0,0,-1] + u[0,0,1] - 6 * u[0,0,0])", k=0.1)

    >>> @hanare.stencil
    ... def heat(u):
    ...     u = u[0, 0, 0] + 0.1 * laplacian(u)

    Parameters
    ----------
    stages
        Each a text of assignments, a function (then, alone, this is a decorator), a kernel
        (`hanare.kernel`) or another stencil.  A step does them one after the other, each for all
        cells; each sees what those before have written.
    fast_math
        Products and sums may be fused (one rounding), and what is divided by a constant multiplied
        by its reciprocal.  Results still do not depend on threads, tiles or files.  Without, they
        are those of NumPy for the same expression, to the last bit (functions such as ``exp``: of
        libm).
    constants
        Numbers, sequences of numbers, or functions, by the names that stages know them by.  They
        become part of what is compiled.

    In a stage

    - ``u[dz, dy, dx]`` (``u[dy, dx]`` in two dimensions) is a cell of field ``u``, at offsets of -4
      to 4 that are constant; ``u`` alone is the cell itself.  It is what it was before the stage.
    - ``u = ...`` is what the cell becomes; other names are of the stage's own.
    - ``old(u)`` is the cell before the last write, of fields of kind ``"two_levels"``.
    - ``name = sum(expression)``, with ``max`` or ``min``, is a reduction over all cells; its
    values,
      one for each step, are in `GridRun.reductions`.
    - ``step``, ``z``, ``y``, ``x``: number of the step, from 0, and place of the cell.
    - Arithmetic, comparisons, ``and or not``, ``a if c else b``, ``where(c, a, b)``, ``min``,
      ``max``, ``abs``, ``sqrt`` and other functions of math; ``sum(w[d] * (u[0,0,d] + u[0,0,-d])
      for d in range(1, 5))``, loops over constants, calls of plain functions that return a value.
    - Powers with whole exponents up to 16 are products.
    - In a function, parameters are the fields; other names have the values that they have where the
      stencil is made.  ``return`` gives the new values of the first parameters.

    Raises StencilError, with line and place, for what cannot be understood; what depends on a
    grid's fields when the stencil meets one, before anything is computed.
    """
    if not stages:
        return lambda function: stencil(function, fast_math=fast_math, **constants)
    for name, value in constants.items():
        _check_constant(name, value)
    parts: list[_Part] = []
    for number, stage in enumerate(stages):
        if isinstance(stage, Stencil):
            parts += stage._parts
        elif isinstance(stage, str):
            parts.append(_WrittenPart(source_of_text(stage, number), constants, fast_math))
        elif inspect.isfunction(stage):
            parts.append(_WrittenPart(source_of_function(stage), constants, fast_math))
        else:
            raise bad_argument("stages", stage, "is no stage",
                               "a text, a function, a kernel or a stencil")
    return Stencil(parts)


def _check_constant(name: str, value: Any) -> None:
    numbers = (bool, int, float, np.integer, np.floating, np.bool_)
    if isinstance(value, numbers) or inspect.isfunction(value):
        return
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" or array.size > 4096:
        raise bad_argument(name, value, "is no constant of a stencil",
                           "numbers, sequences of at most 4096 of them, or functions")


def kernel(code: str | int | Any, *, reads: Mapping[str, int], writes: Sequence[str] | str,
           reductions: Mapping[str, str] | None = None, function: str = "kernel",
           user: int = 0) -> Stencil:
    """A stage that is a kernel of C (``hanare_stencil_kernel`` in ``hanare/stencil.h``).

    Parameters
    ----------
    code
        A text in C that defines ``void kernel(const hanare_stencil_box *box)``; the struct is
        declared before it, and ``T``, which is the grid's type.  Or the address of such a function:
        an int, a function of ctypes, or a ``numba.cfunc`` of `hanare.kernel_signature`.
    reads
        Fields and the radius at which each is read, in the order of ``box->in``; 0: the cell alone.
    writes
        Names of the fields that it writes, in the order of ``box->out``.
    reductions
        Names and kinds ("sum", "max", "min") of the values in ``box->reduction``.
    function
        The name of the function in the text.
    user
        An address that ``box->user`` has; what it points to must live as long as runs.

    The kernel is called by several threads at once; it must not call Python.
    """
    if isinstance(writes, str):
        writes = (writes,)
    if not isinstance(reads, Mapping):
        raise bad_argument("reads", reads, "is no mapping", "fields and radii, as {'u': 1}")
    for name, radius in reads.items():
        if isinstance(radius, bool) or not hasattr(radius, "__index__") or not \
                0 <= operator.index(radius) <= RADIUS_MAX:
            raise bad_argument(f"reads[{name!r}]", radius, "is no radius",
                               f"a whole number from 0 to {RADIUS_MAX}")
    if len(writes) == 0:
        raise bad_argument("writes", writes, "is empty", "names of fields")
    for name, kind in (reductions or {}).items():
        if kind not in REDUCTIONS:
            raise bad_argument(f"reductions[{name!r}]", kind, "is unknown", "'sum', 'max', 'min'")
    address: int | None = None
    text: str | None = None
    keeps: object = code
    single: bool | None = None
    if isinstance(code, str):
        text = code
    elif isinstance(getattr(code, "address", None), int):
        address, text, user, keeps, single = _numba_part(code, user)
    elif isinstance(code, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        address = ctypes.cast(code, ctypes.c_void_p).value
    elif isinstance(code, int) and not isinstance(code, bool):
        address = code
    else:
        raise bad_argument("code", code, "is no kernel", "a text in C, an address, a function of "
                           "ctypes, or a numba.cfunc")
    if text is None and not address:
        raise bad_argument("code", code, "is no address", "one of a function")
    return Stencil([_KernelPart(address, text, function, reads, writes, reductions or {}, user,
                                keeps, single)])


def kernel_signature(dtype: Any = "float64") -> Any:
    """The signature of kernels for ``numba.cfunc``.

    >>> @numba.cfunc(hanare.kernel_signature("float64"))
    ... def kernel(inputs, outputs, row_stride, rows, columns, step, z, y, x, reduction, user):
    ...     for i in range(rows):
    ...         for j in range(numba.uint64(i * row_stride), numba.uint64(i * row_stride +
    columns)): ...             outputs[0][j] = 0.5 * (inputs[0][j] + inputs[2][j])

    The arguments are the members of ``hanare_stencil_box`` (``hanare/stencil.h``); ``inputs[k]``
    and ``outputs[k]`` point to cells.  Indices without sign make loops that vectorise.
    """
    from numba import types

    element = types.float32 if is_single(dtype) else types.float64
    cells = types.CPointer(types.CPointer(element))
    return types.void(cells, cells, *[types.int64] * 7, types.CPointer(types.float64),
                      types.voidptr)


# Calls a function that takes the members of a box.
_SPREAD = """
struct spread { void (*function)(const void *const *, void *const *, int64_t, int64_t, int64_t,
                                 int64_t, int64_t, int64_t, int64_t, double *, void *);
                void *user; };
void kernel(const hanare_stencil_box *b)
{
    const struct spread *to = (const struct spread *)b->user;
    to->function(b->in, b->out, b->row_stride, b->rows, b->columns, b->step, b->z, b->y, b->x,
                 b->reduction, to->user);
}
"""
_SPREAD_ARGUMENTS = 11


def _numba_part(code: Any, user: int) -> tuple[int | None, str | None, int, object, bool | None]:
    """Address, or text, of the kernel that calls a cfunc, what its user is, what keeps that, and
    whether it is for float32."""
    arguments = getattr(getattr(code, "_sig", None), "args", ())
    if len(arguments) == 1:  # the box itself
        return code.address, None, user, code, None
    if len(arguments) != _SPREAD_ARGUMENTS:
        raise bad_argument("code", code, f"takes {len(arguments)} arguments",
                           "a numba.cfunc of hanare.kernel_signature()")
    pair = (ctypes.c_void_p * 2)(code.address, user)
    element = str(getattr(getattr(arguments[0], "dtype", None), "dtype", ""))
    return (None, _SPREAD, ctypes.addressof(pair), (code, pair),
            {"float32": True, "float64": False}.get(element))


def is_single(dtype: Any) -> bool:
    """Whether a type is float32; ArgumentError if it is none of the two."""
    allowed = "'float64' or 'float32'"
    try:
        kind = np.dtype(dtype)
    except (TypeError, ValueError):
        raise bad_argument("dtype", dtype, "is no type of NumPy's", allowed) from None
    if kind not in (np.dtype("float64"), np.dtype("float32")):
        raise bad_argument("dtype", str(kind), "is not for grids", allowed)
    return kind.itemsize == 4


KINDS = ("state", "two_levels", "constant")


def field_kinds(fields: Mapping[str, str] | Sequence[str] | str) -> tuple[tuple[str, str], ...]:
    """Names and kinds, checked."""
    if isinstance(fields, str):
        fields = [fields]
    if isinstance(fields, Mapping):
        pairs = list(fields.items())
    else:
        try:
            pairs = [(name, "state") for name in fields]
        except TypeError:
            raise bad_argument("fields", fields, "are no fields",
                               "names, or names and kinds as {'u': 'state'}") from None
    if not 1 <= len(pairs) <= 64:
        raise bad_argument("fields", fields, f"are {len(pairs)}", "1 to 64")
    for name, kind in pairs:
        if not isinstance(name, str) or not name.isidentifier() or len(name.encode()) > 31:
            raise bad_argument("fields", name, "is no name of a field",
                               "a name as Python has them, of at most 31 bytes")
        if kind not in KINDS:
            raise bad_argument(f"fields[{name!r}]", kind, "is unknown",
                               ", ".join(map(repr, KINDS)))
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise bad_argument("fields", names, "has a name twice", "different names")
    return tuple(pairs)


__all__ = ["Bound", "FieldName", "FieldSet", "Stencil", "field_kinds", "is_single", "kernel",
           "kernel_signature", "stencil"]
