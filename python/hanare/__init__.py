# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays larger than memory.

>>> import hanare
>>> a = hanare.zeros((200_000, 100_000), dtype="float32")       # 75 GiB

Arrays are ordinary NumPy arrays, whose memory is far: what is used is in local memory, the rest in
a store, which is a file, or memory servers.  `hanare.Pool` says how much and where; the functions
here use a pool with all defaults, `default_pool()`.

`hanare.Grid` and `hanare.stencil` are for stencil computations on grids larger than memory, which
are read and written once for many time steps.

System calls may be given far arrays, too, so that ``a.tofile(file)`` and sockets work, unless
`system_calls_are_caught()` says otherwise.
"""
from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from ._system_calls import catch_system_calls, system_calls_are_caught

catch_system_calls()  # before NumPy makes threads

from ._errors import ArgumentError, Error, NoRoomError, StoreError  # noqa: E402
from ._native import version as _version  # noqa: E402
from ._pool import Pool, default_pool  # noqa: E402
from ._run import RunResult, run  # noqa: E402

if TYPE_CHECKING:
    from ._stencil._field import Field
    from ._stencil._grid import Grid
    from ._stencil._results import GridRun, Progress, RunStatistics, Snapshots, Source
    from ._stencil._source import StencilError
    from ._stencil._stencil import Stencil, kernel, kernel_signature, stencil

__version__ = _version()
__all__ = [
    "ArgumentError", "Error", "Field", "Grid", "GridRun", "NoRoomError", "Pool", "Progress",
    "RunResult", "RunStatistics", "Snapshots", "Source", "Stencil", "StencilError", "StoreError",
    "asarray", "default_pool", "empty", "from_file", "full", "kernel", "kernel_signature", "load",
    "ones", "run", "save", "stencil", "system_calls_are_caught", "zeros",
]

# What is needed by those only who compute stencils.
_WHERE = {
    "Field": "_field", "Grid": "_grid", "GridRun": "_results", "Progress": "_results",
    "RunStatistics": "_results", "Snapshots": "_results", "Source": "_results",
    "StencilError": "_source", "Stencil": "_stencil", "kernel": "_stencil",
    "kernel_signature": "_stencil", "stencil": "_stencil",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'hanare' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"._stencil.{_WHERE[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})


_P = ParamSpec("_P")
_R = TypeVar("_R")


def _of_default_pool(method: Callable[Concatenate[Pool, _P], _R]) -> Callable[_P, _R]:
    @functools.wraps(method)
    def function(*arguments: _P.args, **options: _P.kwargs) -> _R:
        return method(default_pool(), *arguments, **options)

    function.__qualname__ = method.__name__
    function.__doc__ = f"`Pool.{method.__name__}` of the default pool.\n\n{method.__doc__}"
    return function


empty = _of_default_pool(Pool.empty)
zeros = _of_default_pool(Pool.zeros)
ones = _of_default_pool(Pool.ones)
full = _of_default_pool(Pool.full)
asarray = _of_default_pool(Pool.asarray)
from_file = _of_default_pool(Pool.from_file)
load = _of_default_pool(Pool.load)
save = _of_default_pool(Pool.save)
