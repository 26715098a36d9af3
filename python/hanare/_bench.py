# SPDX-License-Identifier: Apache-2.0
"""One case of ``hanare bench numpy``, in a process of its own (cli/bench_numpy.cpp)."""
from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import hanare

_SEED = 20090601
_PIECE_BYTES = 4 << 20  # what is made, and digested, at a time
_LOOK_UPS = 1 << 17

Make = Callable[..., np.ndarray]  # (shape, dtype)
Flush = Callable[[], None]


def _pieces(array: np.ndarray) -> Iterator[np.ndarray]:
    flat = array.reshape(-1)
    step = max(_PIECE_BYTES // array.itemsize, 1)
    for begin in range(0, flat.size, step):
        yield flat[begin:begin + step]


def _fill(array: np.ndarray, seed: int = _SEED) -> np.ndarray:
    """Numbers that are equally likely from 0 to 1, of complex ones both parts."""
    random = np.random.default_rng(seed)
    for piece in _pieces(array):
        piece.view(np.float64)[:] = random.random(piece.nbytes // 8)
    return array


def _digest(array: Any) -> int:
    found = 0
    for piece in _pieces(np.asarray(array)):
        found = zlib.crc32(piece, found)
    return found


def _sum(make: Make, size: int) -> Callable[[], Any]:
    array = _fill(make(size // 8, np.float64))
    return lambda: array.sum()


def _update(make: Make, size: int) -> Callable[[], Any]:
    array = _fill(make(size // 8, np.float64))

    def run() -> np.ndarray:
        np.multiply(array, 1.5, out=array)
        np.add(array, 0.25, out=array)
        return array
    return run


def _matmul(make: Make, size: int) -> Callable[[], Any]:
    side = int((size / 8 / 3) ** 0.5)
    left = _fill(make((side, side), np.float64))
    right = _fill(make((side, side), np.float64), _SEED + 1)
    product = make((side, side), np.float64)
    return lambda: np.matmul(left, right, out=product)


def _sort(make: Make, size: int) -> Callable[[], Any]:
    array = _fill(make(size // 8, np.float64))

    def run() -> np.ndarray:
        array.sort()
        return array
    return run


def _transform(axis: int) -> Callable[[Make, int], Callable[[], Any]]:
    def prepare(make: Make, size: int) -> Callable[[], Any]:
        elements = size // 2 // 16
        rows = 1 << (elements.bit_length() - 1) // 2
        shape = (rows, elements // rows)
        array = _fill(make(shape, np.complex128))
        result = make(shape, np.complex128)
        return lambda: np.fft.fft(array, axis=axis, out=result)
    return prepare


def _gather(make: Make, size: int) -> Callable[[], Any]:
    array = _fill(make(size // 8, np.float64))
    places = np.random.default_rng(_SEED + 2).integers(0, array.size, _LOOK_UPS)
    return lambda: array[places]


def _scatter(make: Make, size: int) -> Callable[[], Any]:
    array = _fill(make(size // 8, np.float64))
    places = np.random.default_rng(_SEED + 2).integers(0, array.size, _LOOK_UPS)

    def run() -> np.ndarray:
        array[places] += 1.0
        return array
    return run


CASES: dict[str, Callable[[Make, int], Callable[[], Any]]] = {
    "sum": _sum,
    "update": _update,
    "matmul": _matmul,
    "sort": _sort,
    "fft_rows": _transform(1),
    "fft_columns": _transform(0),
    "gather": _gather,
    "scatter": _scatter,
}


@contextmanager
def _plain(local: int, folder: str) -> Iterator[tuple[Make, Flush]]:
    yield np.zeros, lambda: None


@contextmanager
def _mapped(local: int, folder: str) -> Iterator[tuple[Make, Flush]]:
    arrays: list[np.memmap] = []

    def make(shape: Any, dtype: Any) -> np.ndarray:
        arrays.append(np.memmap(f"{folder}/{len(arrays)}", dtype, "w+", shape=shape))
        return arrays[-1]

    def flush() -> None:
        for array in arrays:
            array.flush()
    yield make, flush


@contextmanager
def _far(local: int, folder: str) -> Iterator[tuple[Make, Flush]]:
    with hanare.Pool(local=local, store=f"file:{folder}") as pool:
        yield pool.zeros, pool.flush


SYSTEMS = {"plain": _plain, "memmap": _mapped, "hanare": _far, "hanare_fits": _far}


def main(import_seconds: float, case: str, system: str, size: str, local: str,
         folder: str) -> None:
    """Runs it, and prints a line of JSON: its time, what writing out adds to that, a digest.

    ``size``: bytes of all its arrays together; ``local``: of a pool; ``folder``: for files, which
    are left there.  ``import_seconds`` is passed on.
    """
    if int(np.__version__.split(".")[0]) < 2:
        raise SystemExit("hanare bench numpy needs NumPy 2 or later")
    with SYSTEMS[system](int(local), folder) as (make, flush):
        run = CASES[case](make, int(size))
        if system != "hanare_fits":  # where nothing has to be written before something is read
            flush()
        begin = time.perf_counter()
        result = run()
        seconds = time.perf_counter() - begin
        flush()
        with_flush = time.perf_counter() - begin
        print(json.dumps({"seconds": seconds, "flush_seconds": with_flush - seconds,
                          "import_seconds": import_seconds, "digest": _digest(result)}))

