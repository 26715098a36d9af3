# SPDX-License-Identifier: Apache-2.0
"""Cells of a field, in and out as NumPy arrays."""
from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import bad_argument

if TYPE_CHECKING:
    from ._grid import Grid

_PIECE_BYTES = 64 << 20  # that is copied at a time

_KEYS = "whole numbers and slices without steps, as grid['u'][10, 2:5]"


class Field:
    """A field of a `Grid`: ``grid["u"]``.

    ``field[...]`` copies cells out, ``field[...] = values`` in, by whole numbers and slices without
    steps; whole planes are the fast way.  The field itself has no memory.  ``np.asarray(field)`` is
    a copy of all of it.
    """

    def __init__(self, grid: Grid, name: str, level: int = 0) -> None:
        self._grid = grid
        self._level = level
        self.name = name

    @property
    def kind(self) -> str:
        """``"state"``, ``"two_levels"`` or ``"constant"``."""
        return self._grid.fields[self.name]

    @property
    def shape(self) -> tuple[int, ...]:
        return self._grid.shape

    @property
    def dtype(self) -> np.dtype:
        return self._grid.dtype

    @property
    def ndim(self) -> int:
        return len(self._grid.shape)

    @property
    def old(self) -> Field:
        """The level before, of a field of kind ``"two_levels"``."""
        if self.kind != "two_levels":
            raise bad_argument("field", self.name, f"is of kind {self.kind!r} and has one level",
                               "fields of kind 'two_levels'")
        return Field(self._grid, self.name, 1)

    def __len__(self) -> int:
        return self.shape[0]

    def _box(self, key: Any) -> tuple[list[int], list[int], list[bool]]:
        """Offset, extent, and which axes stay."""
        items = list(key) if isinstance(key, tuple) else [key]
        if sum(item is Ellipsis for item in items) == 1:
            at = next(number for number, item in enumerate(items) if item is Ellipsis)
            items[at:at + 1] = [slice(None)] * (self.ndim - len(items) + 1)
        items += [slice(None)] * (self.ndim - len(items))
        if len(items) != self.ndim:
            raise bad_argument("index", key, f"has {len(items)} parts for {self.ndim} axes", _KEYS)
        offset, extent, stays = [], [], []
        for axis, (item, size) in enumerate(zip(items, self.shape)):
            if isinstance(item, slice):
                begin, end, step = self._slice(key, item, size)
                if step != 1:
                    raise bad_argument("index", key, "has a step", _KEYS)
                offset.append(begin)
                extent.append(max(end - begin, 0))
                stays.append(True)
                continue
            try:
                if isinstance(item, (bool, np.bool_)):
                    raise TypeError
                at = operator.index(item)
            except TypeError:
                raise bad_argument("index", key, "is not possible", _KEYS) from None
            if not -size <= at < size:
                raise IndexError(f"{self.name}: index {at} is out of bounds for axis {axis} with "
                                 f"{size} cells")
            offset.append(at + size if at < 0 else at)
            extent.append(1)
            stays.append(False)
        return offset, extent, stays

    @staticmethod
    def _slice(key: Any, item: slice, size: int) -> tuple[int, int, int]:
        try:
            return item.indices(size)
        except (TypeError, ValueError):
            raise bad_argument("index", key, "is not possible", _KEYS) from None

    def _number(self) -> int:
        return list(self._grid.fields).index(self.name)

    def _pieces(self, offset: list[int], extent: list[int]) -> Iterator[tuple[int, int]]:
        """First plane, relative to the box, and count."""
        plane = int(np.prod(extent[1:])) * self.dtype.itemsize
        step = max(_PIECE_BYTES // max(plane, 1), 1)
        for begin in range(0, extent[0], step):
            yield begin, min(step, extent[0] - begin)

    def read(self, key: Any = ..., out: np.ndarray | None = None) -> np.ndarray:
        """Copies the cells that ``field[key]`` names, to ``out`` if that is given: any array of the
        shape, also a memmap, of the grid's type."""
        offset, extent, stays = self._box(key)
        shape = tuple(size for size, kept in zip(extent, stays) if kept)
        if out is None:
            out = np.empty(shape, self.dtype)
        elif not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != self.dtype:
            raise bad_argument("out", getattr(out, "shape", out), "does not fit",
                               f"an array of {self.dtype} and shape {shape}")
        if 0 in extent:
            return out
        native = self._grid._open()
        whole = out.reshape(extent) if out.flags.c_contiguous else None
        if whole is not None and out.flags.writeable:
            native.read(self._number(), self._level, offset, extent, whole.ctypes.data)
            return out
        view = out[tuple(slice(None) if kept else None for kept in stays)]
        for begin, count in self._pieces(offset, extent):
            piece = np.empty((count, *extent[1:]), self.dtype)
            native.read(self._number(), self._level, [offset[0] + begin, *offset[1:]],
                        [count, *extent[1:]], piece.ctypes.data)
            view[begin:begin + count] = piece
        return out

    def write(self, values: Any, key: Any = ...) -> None:
        """Sets the cells that ``field[key]`` names; ``values`` is broadcast as NumPy does."""
        offset, extent, stays = self._box(key)
        shape = tuple(size for size, kept in zip(extent, stays) if kept)
        array = np.asanyarray(values)
        if array.dtype.kind not in "biuf":
            raise bad_argument("values", array.dtype, "are no real numbers",
                               f"what becomes {self.dtype}")
        try:
            array = np.broadcast_to(array, shape)
        except ValueError:
            raise bad_argument("values", array.shape, "do not fit",
                               f"a shape that broadcasts to {shape}") from None
        if 0 in extent:
            return
        array = array[tuple(slice(None) if kept else None for kept in stays)]
        native = self._grid._open()
        for begin, count in self._pieces(offset, extent):
            piece = np.ascontiguousarray(array[begin:begin + count], self.dtype)
            native.write(self._number(), self._level, [offset[0] + begin, *offset[1:]],
                         [count, *extent[1:]], piece.ctypes.data)

    def fill(self, source: Any | Callable[[int], Any]) -> None:
        """Sets all cells: to a number, an array (or memmap) of the shape, or, plane by plane, to
        what a function returns for the plane's number: an array of its shape, or a number."""
        if not callable(source):
            self.write(source)
            return
        plane_shape = self.shape[1:]
        size = int(np.prod(plane_shape))
        element = ctypes.c_float if self.dtype.itemsize == 4 else ctypes.c_double

        def put(plane: int, address: int) -> None:
            cells = np.ctypeslib.as_array((element * size).from_address(address))
            cells.reshape(plane_shape)[...] = source(plane)
        self._grid._open().fill(self._number(), self._level, put)

    def __getitem__(self, key: Any) -> Any:
        cells = self.read(key)
        return cells if cells.ndim else cells[()]

    def __setitem__(self, key: Any, values: Any) -> None:
        self.write(values, key)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("the cells of a grid are always copied")
        return self.read().astype(dtype or self.dtype, copy=False)

    def __iter__(self) -> Iterator[np.ndarray]:
        """Plane by plane."""
        return (self[plane] for plane in range(len(self)))

    def __repr__(self) -> str:
        return (f"<hanare.Field {self.name!r}{' (level before)' if self._level else ''}: "
                f"{self.kind}, {self.shape}, {self.dtype}>")
