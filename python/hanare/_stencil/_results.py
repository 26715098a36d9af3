# SPDX-License-Identifier: Apache-2.0
"""What runs are told besides the stencil, and what they tell."""
from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .._sizes import format_size


@dataclasses.dataclass(frozen=True)
class RunStatistics:
    """What a run would be (`Grid.plan`), or was: sizes in bytes and planes, times in seconds.

    steps, passes, steps_per_pass
        The fields are read and written once in a pass, which computes several steps.
    window_planes, tile_height, threads, window_bytes
        Planes by which the window in memory advances, cells of half a tile, threads, memory.
    read_bytes, written_bytes, minimal_bytes, snapshot_bytes
        What the file cost, without snapshots; what it costs at least with so many passes.
    cell_updates, redundant_updates
        Cells times stages; how many of them were computed again.
    elapsed_s, io_wait_s, steps_per_s
        ``io_wait_s``: nobody computed because of the file.
    read_bytes_per_s, write_bytes_per_s, cell_updates_per_s
        What was measured to choose the sizes, 0 where nothing was.
    """

    steps: int
    passes: int
    steps_per_pass: int
    window_planes: int
    tile_height: int
    threads: int
    window_bytes: int
    read_bytes: int
    written_bytes: int
    minimal_bytes: int
    snapshot_bytes: int
    cell_updates: int
    redundant_updates: int
    elapsed_s: float
    io_wait_s: float
    steps_per_s: float
    read_bytes_per_s: float
    write_bytes_per_s: float
    cell_updates_per_s: float

    def __str__(self) -> str:
        rate = self.cell_updates / self.elapsed_s / 1e6 if self.elapsed_s > 0 else 0
        return (f"{self.steps} steps in {self.passes} pass(es), {self.elapsed_s:.2f} s, "
                f"{rate:.0f} million cell updates/s; {format_size(self.read_bytes)} read, "
                f"{format_size(self.written_bytes)} written, {self.io_wait_s:.2f} s waited for "
                "the file")


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a run is.  ``steps_done``: finished for all cells, those of whole passes;
    ``fraction``: of all work, 0 to 1; times in seconds, ``remaining_s`` is an estimate."""

    steps: int
    steps_done: int
    fraction: float
    elapsed_s: float
    remaining_s: float
    steps_per_s: float
    io_wait_s: float


@dataclasses.dataclass(frozen=True)
class Source:
    """``series[i]`` is added to a cell after step ``first_step + i``'s stage.

    position
        Of the cell, (z, y, x) or (y, x); not in the frame of fixed cells.
    series
        float64 values, one for each step.
    field
        Which the stage writes; None: the only one it writes.
    first_step
        Number of a step of the grid; None: where the grid is when the run begins.
    stage
        Number of the stage; None: the first that writes the field.
    """

    position: tuple[int, ...]
    series: Any
    field: str | None = None
    first_step: int | None = None
    stage: int | None = None


@dataclasses.dataclass(frozen=True)
class Snapshots:
    """A field while a run goes on, after each step whose number is a multiple of ``every``.

    field
        None: the first one.
    path
        A new file, ``.npy`` (an array: snapshot, z, y, x) or ``.h5`` (the same as dataset
        "snapshots").  It is written while the run goes on; nothing is kept in memory.
    function
        Called as ``function(step, plane, cells)`` with an array of the plane's cells; the planes of
        a step come in order, those of several steps mix.
    planes
        Which are wanted: the number of one, or a slice; None: all.  Not for files.

    Without path and function they are kept in memory: `GridRun.snapshots`.
    """

    every: int
    field: str | None = None
    path: str | os.PathLike[str] | None = None
    function: Callable[[int, int, np.ndarray], Any] | None = None
    planes: int | slice | None = None


@dataclasses.dataclass(frozen=True)
class GridRun:
    """What a run gave.

    steps
        That were computed: fewer than wanted where the progress function has ended it.
    step
        The grid's, after it.
    reductions
        By name, arrays of ``steps`` values.
    snapshots, snapshot_steps
        What was kept in memory: an array (snapshot, z, y, x), without the axis z where ``planes``
        is a number, and the number of each one's step; None where nothing was.
    statistics
        What it cost.
    """

    steps: int
    step: int
    reductions: dict[str, np.ndarray]
    snapshots: np.ndarray | None
    snapshot_steps: list[int] | None
    statistics: RunStatistics


class Kept:
    """Takes planes as they come, and makes an array of those of finished steps."""

    def __init__(self, first: int, count: int, plane_shape: Sequence[int], dtype: np.dtype) -> None:
        self._first = first
        self._count = count
        self._shape = tuple(plane_shape)
        self._dtype = dtype
        self._steps: dict[int, tuple[np.ndarray, int]] = {}

    def __call__(self, step: int, plane: int, cells: np.ndarray) -> None:
        array, seen = self._steps.get(step, (None, 0))
        if array is None:
            array = np.empty((self._count, *self._shape), self._dtype)
        array[plane - self._first] = cells
        self._steps[step] = array, seen + 1

    def array(self, last_step: int, squeezed: bool) -> tuple[np.ndarray, list[int]]:
        steps = sorted(step for step, (_, seen) in self._steps.items()
                       if seen == self._count and step <= last_step)
        whole = np.empty((len(steps), self._count, *self._shape), self._dtype)
        for number, step in enumerate(steps):
            whole[number] = self._steps[step][0]
        return (whole[:, 0] if squeezed else whole), steps


@contextlib.contextmanager
def shown_progress(steps: int, wanted: bool | Callable[[Progress], Any]) -> Iterator[
        Callable[..., Any] | None]:
    """The function for the native module: nothing, the program's own, or one that draws a bar."""
    if wanted is False or wanted is None:
        yield None
        return
    if callable(wanted):
        yield lambda *values: wanted(Progress(*values))
        return
    try:
        from rich.progress import BarColumn, Progress as Bars, TextColumn, TimeRemainingColumn
    except ImportError:
        def line(*values: Any) -> None:
            now = Progress(*values)
            print(f"\r{now.steps_done} of {now.steps} steps, {100 * now.fraction:.0f} %, "
                  f"{now.remaining_s:.0f} s left ", end="", file=sys.stderr, flush=True)
        try:
            yield line
        finally:
            print(file=sys.stderr)
        return
    with Bars(TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f} %"),
              TimeRemainingColumn(), TextColumn("{task.fields[speed]}")) as bars:
        task = bars.add_task(f"{steps} steps", total=1.0, speed="")

        def drawn(*values: Any) -> None:
            now = Progress(*values)
            bars.update(task, completed=now.fraction, speed=f"{now.steps_per_s:.1f} steps/s")
        yield drawn
        bars.update(task, completed=1.0)
