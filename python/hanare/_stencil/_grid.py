# SPDX-License-Identifier: Apache-2.0
"""Grids: fields on cells, in memory or in a file, and runs on them."""
from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from .. import _native
from .._errors import ArgumentError, bad_argument
from .._sizes import format_size, parse_size
from ._field import Field
from ._results import (Kept, Progress, GridRun, RunStatistics, Snapshots, Source,
                       shown_progress)
from ._stencil import (KINDS, REDUCTIONS, Bound, FieldSet, Stencil, StencilError, field_kinds,
                       is_single)
from ._stencil import stencil as make_stencil

Boundary = Literal["fixed", "reflect", "periodic"]

_BOUNDARIES = ("fixed", "reflect", "periodic")
_PLACES = ("auto", "memory", "file")
_DURABILITIES = ("in_place", "ping_pong")
_METHODS = ("stream", "trapezoid", "trapezoid_two_level")
_IO = ("auto", "uring", "aio", "mmap", "swap")


def _choice(name: str, value: Any, allowed: Sequence[str]) -> int:
    if not isinstance(value, str) or value not in allowed:
        raise bad_argument(name, value, "is unknown", ", ".join(map(repr, allowed)))
    return allowed.index(value)


def _count(name: str, value: Any, least: int = 0, most: int = (1 << 32) - 1) -> int:
    allowed = f"a whole number from {least}" + (f" to {most}" if most < 1 << 32 - 1 else "")
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise bad_argument(name, value, "is no whole number", allowed) from None
    if not least <= number <= most:
        raise bad_argument(name, value, "is out of range", allowed)
    return number


def _path(name: str, value: Any) -> str:
    if value is None:
        return ""
    try:
        return os.fsdecode(value)
    except TypeError:
        raise bad_argument(name, value, "is no path", "the name of a file or folder") from None


class Grid:
    """Fields on a grid of cells, at one time step; zeros when new.

    >>> with hanare.Grid((2048, 1024, 1024), memory="1GiB") as grid:       # 16 GiB
    ...     grid["u"][1024, 512, 512] = 1.0
    ...     grid.run(1000, heat, progress=True)
    ...     middle = grid["u"][1024]

    A grid lies in memory if it fits in its budget, else in a file.  A run then reads and writes the
    file once for many steps.

    Parameters
    ----------
    shape
        Cells, (z, y, x) or (y, x).  Planes along the first axis come and go one after the other:
        the longest axis should be first.
    fields
        A name, names, or names and kinds: ``"state"`` (one time level), ``"two_levels"`` (the one
        before, too, as second-order schemes need it: ``old(u)``), ``"constant"`` (coefficients,
        which stencils read only).
    dtype
        ``"float64"`` or ``"float32"``, of all fields.
    boundary
        What lies beyond the first and last cell, for all axes or each: ``"fixed"`` (the outermost
        `radius` cells are never updated), ``"reflect"`` (the mirror image, ``u[-1]`` is ``u[0]``),
        ``"periodic"``.  Periodic along the first axis takes twice the memory for each plane.
    radius
        The largest that stencils will have, 1 to 4.  A stencil is taken, too: its own.
    memory
        For everything that the grid needs: bytes, or a text such as ``"2GiB"``.  Default: 80 % of
        the limit or of what is available.
    path
        A file that does not exist yet, which stays when the grid is closed: `Grid.open`.  Default:
        a file without a name, where one is needed.
    directory
        Where that is; default: ``$TMPDIR``, else ``/var/tmp``.
    place
        ``"memory"``, ``"file"`` or ``"auto"``.
    durability
        ``"in_place"``, or ``"ping_pong"``: twice the room, and after a crash the file is at the
        last pass that was finished.
    method, io
        Other ways, for comparison: ``hanare/stencil.h``.
    allow_tmpfs
        Accept a file on tmpfs, which is in memory after all.

    Raises ArgumentError (what cannot be), NoRoomError (memory for one window, or room in the file,
    does not suffice: the text says how much is needed), StoreError (a directory that is missing or
    cannot be written, a file that exists).  A grid is used by one thread at a time.
    """

    def __init__(self, shape: Sequence[int], fields: Mapping[str, str] | Sequence[str] | str = "u",
                 *, dtype: Any = "float64", boundary: Boundary | Sequence[Boundary] = "fixed",
                 radius: int | Stencil = 1, memory: int | str | None = None,
                 path: str | os.PathLike[str] | None = None,
                 directory: str | os.PathLike[str] | None = None, place: str = "auto",
                 durability: str = "in_place", method: str = "stream", io: str = "auto",
                 allow_tmpfs: bool = False) -> None:
        cells = self._checked_shape(shape)
        kinds = field_kinds(fields)
        single = is_single(dtype)
        if isinstance(boundary, str):
            boundary = (boundary,) * len(cells)  # type: ignore[assignment]
        if not isinstance(boundary, Sequence) or len(boundary) != len(cells):
            raise bad_argument("boundary", boundary, f"is not for {len(cells)} axes",
                               "one of 'fixed', 'reflect', 'periodic', or one for each axis")
        if isinstance(radius, Stencil):
            radius = max(radius.radius, 1)
        self._native: _native.Grid | None = _native.Grid(
            cells, [(name, KINDS.index(kind)) for name, kind in kinds], int(single),
            [_choice(f"boundary[{axis}]", each, _BOUNDARIES)
             for axis, each in enumerate(boundary)],
            _count("radius", radius, 1, 4), parse_size("memory", memory),
            _choice("place", place, _PLACES), _path("path", path), _path("directory", directory),
            _choice("durability", durability, _DURABILITIES), _choice("method", method, _METHODS),
            _choice("io", io, _IO), _native.GRID_ALLOW_TMPFS if allow_tmpfs else 0)
        self._learn()

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, memory: int | str | None = None,
             read_only: bool = False, method: str = "stream", io: str = "auto") -> Grid:
        """The grid that lies in a file, where its last finished pass has left it.

        ``read_only``: nothing is changed, and others may read meanwhile; no runs, no writes.
        Raises Error (NOT_FOUND, BUSY: another process has it), StoreError (no grid, or cut off, or
        left within a run in place).
        """
        grid = cls.__new__(cls)
        grid._native = _native.Grid.open(
            _path("path", path), parse_size("memory", memory), _choice("method", method, _METHODS),
            _choice("io", io, _IO), _native.GRID_READ_ONLY if read_only else 0)
        grid._learn()
        return grid

    @staticmethod
    def _checked_shape(shape: Any) -> list[int]:
        allowed = "(z, y, x) or (y, x), each at least 1"
        if isinstance(shape, (str, bytes)) or not isinstance(shape, (Sequence, np.ndarray)) \
                or len(shape) not in (2, 3):
            raise bad_argument("shape", shape, "has not 2 or 3 axes", allowed)
        return [_count(f"shape[{axis}]", size, 1, (1 << 63) - 1)
                for axis, size in enumerate(shape)]

    def _learn(self) -> None:
        """What does not change."""
        info = self._open().describe()
        self._shape = tuple(int(size) for size in info["shape"])
        self._dtype = np.dtype("float32" if info["element"] else "float64")
        self._boundary = tuple(_BOUNDARIES[number] for number in info["boundary"])
        self._radius = int(info["radius"])
        self._fields = {name: KINDS[kind] for name, kind in info["fields"]}
        self._place = _PLACES[info["place"]]
        self._durability = _DURABILITIES[info["durability"]]
        self._sizes = {name: int(info[name])
                       for name in ("memory_bytes", "file_bytes", "domain_bytes")}

    # What it is.

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> np.dtype:
        return self._dtype

    @property
    def boundary(self) -> tuple[str, ...]:
        return self._boundary

    @property
    def radius(self) -> int:
        return self._radius

    @property
    def fields(self) -> dict[str, str]:
        """Names and kinds."""
        return dict(self._fields)

    @property
    def place(self) -> str:
        """``"memory"`` or ``"file"``."""
        return self._place

    @property
    def durability(self) -> str:
        return self._durability

    @property
    def memory_bytes(self) -> int:
        """The budget."""
        return self._sizes["memory_bytes"]

    @property
    def file_bytes(self) -> int:
        """Of the file; 0 in memory."""
        return self._sizes["file_bytes"]

    @property
    def domain_bytes(self) -> int:
        """One level of each field."""
        return self._sizes["domain_bytes"]

    @property
    def step(self) -> int:
        """Steps that were computed since the grid was made."""
        return int(self._open().describe()["step"])

    @property
    def statistics(self) -> RunStatistics:
        """Of the last run."""
        return RunStatistics(**self._open().statistics())

    def __getitem__(self, name: str) -> Field:
        if name not in self._fields:
            raise bad_argument("field", name, "is not in this grid",
                               ", ".join(map(repr, self._fields)))
        return Field(self, name)

    def __setitem__(self, name: str, values: Any) -> None:
        self[name].fill(values)

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    # Runs.

    def run(self, steps: int, stencil: Stencil | str, *, threads: int | None = None,
            progress: bool | Callable[[Progress], Any] = False,
            snapshots: Snapshots | None = None, sources: Source | Sequence[Source] = (),
            steps_per_pass: int | None = None, window_planes: int | None = None,
            tile_height: int | None = None, pin_threads: bool = False,
            measure: bool = True) -> GridRun:
        """Computes ``steps`` steps, by all processors and without the interpreter's lock.

        Parameters
        ----------
        stencil
            Of `hanare.stencil` or `hanare.kernel`; a text is made one.
        threads
            Default: the processors that the process may use.
        progress
            True: a bar.  A function is called with a `Progress` some times a second, by another
            thread; when it returns something true, the run ends with the passes that were begun.
        snapshots, sources
            See `Snapshots`, `Source`.
        steps_per_pass, window_planes, tile_height
            Chosen by a model of memory and measured speeds unless given.
        measure
            False: sizes come from the model alone.

        Ctrl-C, or what a signal handler or a function here raises, ends the run with the passes
        that were begun: the grid is good, ``grid.step`` says where it is.  Raises before any work
        StencilError, ArgumentError, NoRoomError, StoreError (snapshots); within, StoreError and
        NoRoomError when the file or the disk fails.
        """
        native, bound, prepared, sizes, series = self._prepared(
            steps, stencil, sources, threads, steps_per_pass, window_planes, tile_height,
            pin_threads, measure)
        names = [name for stage in bound.stages for name, _ in stage.reductions]
        reduced = np.zeros((steps, len(names))) if names else None
        kept, function, planes, plain = self._snapshots(snapshots)
        before = self.step
        with shown_progress(steps, progress) as shown:
            native.run(steps, prepared, series, sizes, plain, planes, function, shown,
                       reduced.ctypes.data if reduced is not None and reduced.size else 0)
        after = self.step
        done = after - before
        reductions = {name: reduced[:done, number].copy()  # type: ignore[index]
                      for number, name in enumerate(names)}
        arrays: tuple[Any, Any] = (None, None)
        if kept is not None and snapshots is not None:
            arrays = kept.array(after, isinstance(snapshots.planes, int))
        return GridRun(done, after, reductions, *arrays, self.statistics)

    def plan(self, steps: int, stencil: Stencil | str, *, threads: int | None = None,
             sources: Source | Sequence[Source] = (), steps_per_pass: int | None = None,
             window_planes: int | None = None, tile_height: int | None = None,
             pin_threads: bool = False, measure: bool = True) -> RunStatistics:
        """What such a run would be; nothing is computed.  Errors: of `run`, before any work."""
        native, _, prepared, sizes, series = self._prepared(
            steps, stencil, sources, threads, steps_per_pass, window_planes, tile_height,
            pin_threads, measure)
        return RunStatistics(**native.plan(steps, prepared, series, sizes))

    def _prepared(self, steps: Any, stencil: Any, sources: Any, threads: Any, steps_per_pass: Any,
                  window_planes: Any, tile_height: Any, pin_threads: bool, measure: bool) -> Any:
        native = self._open()
        _count("steps", steps, 0, (1 << 62))
        bound = self.bound(stencil)
        flags = (_native.RUN_PIN_THREADS if pin_threads else 0) | (
            0 if measure else _native.RUN_NO_MEASUREMENT)
        sizes = tuple(_count(name, 0 if value is None else value) for name, value in (
            ("threads", threads), ("flags", flags), ("steps_per_pass", steps_per_pass),
            ("window_planes", window_planes), ("tile_height", tile_height)))
        numbers = {name: number for number, name in enumerate(self._fields)}
        stages = [(stage.kernel, stage.user,
                   [(numbers[name], radius) for name, radius in stage.reads],
                   [numbers[name] for name in stage.writes],
                   [REDUCTIONS[kind] for _, kind in stage.reductions]) for stage in bound.stages]
        given = [sources] if isinstance(sources, Source) else list(sources)
        return native, bound, stages, sizes, _Series([self._source(each, bound)
                                                      for each in given])

    def bound(self, stencil: Stencil | str) -> Bound:
        """Reads and compiles a stencil for this grid, as `run` does first."""
        if isinstance(stencil, str):
            stencil = make_stencil(stencil)
        if not isinstance(stencil, Stencil):
            raise bad_argument("stencil", stencil, "is no stencil",
                               "what hanare.stencil() or hanare.kernel() returns, or a text")
        bound = stencil.bind(FieldSet(tuple(self._fields.items()), len(self._shape),
                                      self._dtype.itemsize == 4))
        if bound.radius > self._radius:
            raise StencilError(f"the stencil has radius {bound.radius}, the grid was made for "
                               f"{self._radius}: Grid(..., radius={bound.radius})")
        return bound

    def _source(self, source: Any, bound: Bound) -> tuple[Any, ...]:
        if not isinstance(source, Source):
            raise bad_argument("sources", source, "is no source", "hanare.Source objects")
        stage, field = source.stage, source.field
        if stage is not None:
            stage = _count("stage", stage, 0, len(bound.stages) - 1)
        writers = [number for number, each in enumerate(bound.stages)
                   if (field is None or field in each.writes) and stage in (None, number)]
        if not writers:
            raise bad_argument("sources", field, "is not written by such a stage",
                               "fields that the stencil writes")
        written = bound.stages[writers[0]].writes
        if field is None and len(written) != 1:
            raise bad_argument("sources", source, "does not say which field",
                               ", ".join(map(repr, written)))
        field = written[0] if field is None else field
        try:
            position = [_count("position", each, 0, (1 << 63) - 1) for each in source.position]
        except TypeError:
            position = []
        if len(position) != len(self._shape):
            raise bad_argument("position", source.position, "is no cell",
                               f"{len(self._shape)} whole numbers")
        try:
            series = np.ascontiguousarray(source.series, np.float64).reshape(-1)
        except (TypeError, ValueError):
            raise bad_argument("series", source.series, "are no numbers", "one for each step"
                               ) from None
        first = self.step if source.first_step is None else _count(
            "first_step", source.first_step, 0, (1 << 62))
        return writers[0], list(self._fields).index(field), position, first, series

    def _snapshots(self, wanted: Snapshots | None) -> tuple[Any, Any, Any, Any]:
        """What keeps them, the function for the native module, the planes, and the rest."""
        size = int(np.prod(self._shape[1:])) * self._dtype.itemsize
        if wanted is None:
            return None, None, None, (0, 0, "", size)
        if not isinstance(wanted, Snapshots):
            raise bad_argument("snapshots", wanted, "is none", "hanare.Snapshots(every=...)")
        every = _count("every", wanted.every, 1, (1 << 62))
        field = next(iter(self._fields)) if wanted.field is None else self[wanted.field].name
        plain = (list(self._fields).index(field), every, _path("path", wanted.path), size)
        if wanted.function is not None and not callable(wanted.function):
            raise bad_argument("function", wanted.function, "cannot be called",
                               "function(step, plane, cells)")
        first, count = self._planes(wanted.planes)
        if wanted.path is not None and wanted.function is None:
            if wanted.planes is not None:
                raise bad_argument("planes", wanted.planes, "is not for files", "None")
            return None, None, None, plain
        kept = None
        function = wanted.function
        if function is None:
            function = kept = Kept(first, count, self._shape[1:], self._dtype)

        def arrived(step: int, plane: int, cells: bytes) -> None:
            function(step, plane, np.frombuffer(cells, self._dtype).reshape(self._shape[1:]))
        return kept, arrived, (first, first + count - 1), plain

    def _planes(self, planes: Any) -> tuple[int, int]:
        if planes is None:
            planes = slice(None)
        if isinstance(planes, slice):
            begin, end, step = planes.indices(self._shape[0])
            if step != 1 or end <= begin:
                raise bad_argument("planes", planes, "has no planes, or a step",
                                   "a number or a slice")
            return begin, end - begin
        return _count("planes", planes, 0, self._shape[0] - 1), 1

    # The end.

    def close(self) -> None:
        """Ends the grid; a file with a name holds all of it then.  StoreError when it does not."""
        native, self._native = self._native, None
        if native is not None:
            try:
                native.close()
            except BaseException:
                self._native = native
                raise

    @property
    def closed(self) -> bool:
        return self._native is None

    def __enter__(self) -> Grid:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a grid cannot be pickled; give it a path, and open it there")

    def __repr__(self) -> str:
        if self._native is None:
            return "<hanare.Grid, closed>"
        fields = ", ".join(name if kind == "state" else f"{name} ({kind})"
                           for name, kind in self._fields.items())
        return (f"<hanare.Grid: {' x '.join(map(str, self._shape))} of {self._dtype}, fields "
                f"{fields}, {format_size(self.domain_bytes)} in {self._place}, step {self.step}>")

    def _open(self) -> _native.Grid:
        if self._native is None:
            raise ArgumentError("the grid is closed", "INVALID_ARGUMENT")
        return self._native


class _Series(list):  # type: ignore[type-arg]
    """Sources as the native module takes them, which keep their values alive."""

    def __init__(self, sources: list[tuple[Any, ...]]) -> None:
        super().__init__((stage, field, position, first, series.ctypes.data, series.size)
                         for stage, field, position, first, series in sources)
        self.values = [source[-1] for source in sources]
