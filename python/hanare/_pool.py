# SPDX-License-Identifier: Apache-2.0
"""Pools: NumPy arrays whose memory is far.

The arrays are ordinary ones.  Their memory is a region of a pool, and parts of it are in local
memory while they are used; the rest is in the pool's store.
"""
from __future__ import annotations

import contextlib
import html
import io
import logging
import math
import operator
import os
import secrets
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

try:
    from numpy.lib._format_impl import _read_array_header
except ImportError:  # before NumPy 2.3
    from numpy.lib.format import _read_array_header

from . import _native
from ._errors import ArgumentError, Error, bad_argument
from ._progress import shown
from ._recording import Recording, write
from ._sizes import format_size, parse_size
from ._system_calls import system_calls_are_caught

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

Advice = Literal["normal", "sequential", "random", "willneed", "dontneed", "discard"]
Shape = int | tuple[int, ...]

_PIECE_BYTES = 4 << 20  # what is between a file and far memory
_log = logging.getLogger("hanare")


def _checked_shape(shape: Shape) -> tuple[int, ...]:
    allowed = "a whole number of elements, or a tuple of them, none below 0"
    try:
        parts = (operator.index(shape),)  # type: ignore[arg-type]
    except TypeError:
        try:
            parts = tuple(operator.index(part) for part in shape)  # type: ignore[union-attr]
        except TypeError:
            raise bad_argument("shape", shape, "is no shape", allowed) from None
    if any(part < 0 for part in parts):
        raise bad_argument("shape", shape, "is negative", allowed)
    return parts


def _checked_dtype(dtype: DTypeLike) -> np.dtype:
    try:
        checked = np.dtype(dtype)
    except (TypeError, ValueError):
        raise bad_argument("dtype", dtype, "is no type of NumPy's",
                           "what numpy.dtype() takes") from None
    if checked.hasobject:
        raise bad_argument("dtype", dtype, "holds Python objects, which cannot be far",
                           "a type of numbers, characters or records of them")
    return checked


def _checked_number(name: str, value: Any, most: int, allowed: str) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise bad_argument(name, value, "is no whole number", allowed) from None
    if not 0 <= number <= most:
        raise bad_argument(name, value, "is out of range", allowed)
    return number


def _checked_order(order: str) -> str:
    if order not in ("C", "F"):
        raise bad_argument("order", order, "is unknown", "'C' or 'F'")
    return order


def _optional_word(name: str, value: str | None) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise bad_argument(name, value, "is no text", "a text, or None for the default")
    return value


def _span(array: np.ndarray) -> tuple[int, int]:
    """Address and bytes of what the array spans."""
    if not isinstance(array, np.ndarray):
        raise bad_argument("array", array, "is no NumPy array", "an array of this pool")
    low, high = np.lib.array_utils.byte_bounds(array) if hasattr(
        np.lib, "array_utils") else np.byte_bounds(array)  # type: ignore[attr-defined]
    return low, high - low


class _Bytes(io.RawIOBase):
    """A file that NumPy writes to piece by piece, from memory of its own."""

    def __init__(self, file: io.BufferedIOBase) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._file.write(data)


class Pool:
    """Local memory of a fixed size, and a store for what does not fit in.

    Parameters
    ----------
    local
        How much memory the arrays may occupy: bytes, or a text such as ``"2GiB"``.  Default: 80 %
        of the limit (control group, Slurm) or of what is available, whichever is less.
    store
        Where the rest is kept: ``"file:DIR"``, ``"tcp://HOST:PORT"`` (a memory server), or
        several: ``"tier(A,B)"``, ``"mirror(A,B)"``, ``"parity(4+1;A,B,C,D,E)"``.  Default: a file
        in ``$TMPDIR``, else in ``/var/tmp``, that nobody else sees and that ends with the process.
    block
        Unit of residency and transfer, a power of two from 4 KiB to 4 MiB.  Default: 256 KiB,
        less in small pools.  Small ones (16 KiB) suit random access.
    engine, replacement, background
        As the options of these names (``hanare info``).
    read_ahead
        Blocks that are fetched ahead of a stream at most, 0 for none.
    allow_tmpfs
        Accept a store on tmpfs, whose blocks occupy memory after all.

    Every option can also be given by ``HANARE_*`` variables and the configuration file, but for
    ``syscalls``: see `hanare.system_calls_are_caught`.

    A pool is used by any number of threads.  ``with`` closes it: no more arrays can be made then.
    Those that there are stay valid; the pool's memory, and its store, are given back with the last
    of them.

    Children made by ``fork`` have no far memory: an array of the parent that one touches ends it,
    with a line that says why, and pools cannot be opened there.  Those made by ``spawn`` are
    processes like any other.  Pickling an array copies its values; whoever unpickles it, as the
    children of multiprocessing do with what they are given, gets an ordinary one.

    Raises
    ------
    ArgumentError (a ValueError)
        An argument is not allowed; the text names it and what is.
    NoRoomError (a MemoryError)
        The machine or a limit does not allow that much.
    StoreError (an OSError)
        The store cannot be used.

    Examples
    --------
    >>> pool = hanare.Pool(local="2GiB", store="file:/scratch")
    >>> a = pool.zeros((100_000, 100_000), dtype="float32")     # 37 GiB
    """

    def __init__(self, local: int | str | None = None, store: str | os.PathLike[str] | None = None,
                 *, block: int | str | None = None, engine: str | None = None,
                 read_ahead: int | None = None, replacement: str | None = None,
                 background: str | None = None, allow_tmpfs: bool = False) -> None:
        if isinstance(store, os.PathLike):
            store = "file:" + os.fspath(store)
        if read_ahead is None:
            blocks_ahead = 0
        else:
            blocks_ahead = _checked_number("read_ahead", read_ahead, 1024, "a number from 0 to 1024"
                                           ) or _native.READ_AHEAD_OFF
        self._native: _native.Pool | None = _native.Pool(
            local_bytes=parse_size("local", local), store=_optional_word("store", store),
            block_bytes=parse_size("block", block), engine=_optional_word("engine", engine),
            read_ahead_blocks=blocks_ahead, replacement=_optional_word("replacement", replacement),
            background=_optional_word("background", background), allow_tmpfs=bool(allow_tmpfs),
            syscalls=system_calls_are_caught())
        self.local_bytes: int = self.stats()["budget_bytes"]

    # Making arrays.

    def empty(self, shape: Shape, dtype: DTypeLike = float, order: str = "C", *,
              block: int | str | None = None) -> np.ndarray:
        """A new array, all zeros: far memory begins so.

        ``block`` is the block size of this array, if it is to be another than the pool's.
        """
        native = self._open()
        parts = _checked_shape(shape)
        kind = _checked_dtype(dtype)
        order = _checked_order(order)
        size = math.prod(parts) * kind.itemsize
        if kind.itemsize == 0 and kind.kind in "SU":
            raise bad_argument("dtype", dtype, "has no size of its own", "such as 'S8' or 'U8'")
        if size == 0:
            return np.zeros(parts, kind, order)
        if size > np.iinfo(np.intp).max:
            raise bad_argument("shape", shape, "has more bytes than an address has bits",
                               "up to 2**63 - 1 bytes")
        try:
            memory = native.allocate(size, parse_size("block", block))
        except ArgumentError as failure:
            if not str(failure).startswith("size:"):
                raise
            raise ArgumentError(f"shape: {parts} of {kind}: {failure}", failure.status) from None
        return np.ndarray(parts, kind, buffer=memory, order=order)

    zeros = empty

    def ones(self, shape: Shape, dtype: DTypeLike = float, order: str = "C", *,
             block: int | str | None = None) -> np.ndarray:
        """A new array of ones."""
        return self.full(shape, 1, dtype, order, block=block)

    def full(self, shape: Shape, fill_value: Any, dtype: DTypeLike = None, order: str = "C", *,
             block: int | str | None = None) -> np.ndarray:
        """A new array of ``fill_value``, of its type if none is named."""
        array = self.empty(shape, np.asarray(fill_value).dtype if dtype is None else dtype, order,
                           block=block)
        np.copyto(array, fill_value, casting="unsafe")
        return array

    def asarray(self, source: ArrayLike, dtype: DTypeLike = None, *,
                block: int | str | None = None) -> np.ndarray:
        """The values of ``source`` in far memory; itself if it is an array of this pool already.

        Keeps the order in memory (C or Fortran).
        """
        self._open()
        values = np.asarray(source)
        kind = values.dtype if dtype is None else _checked_dtype(dtype)
        if kind.kind in "SUMm" and kind != values.dtype:
            values = values.astype(kind)  # finds the length, or the unit
            kind = values.dtype
        if isinstance(source, np.ndarray) and values.dtype == kind and source in self:
            return source
        order = "F" if values.flags.f_contiguous and not values.flags.c_contiguous else "C"
        array = self.empty(values.shape, kind, order, block=block)
        np.copyto(array, values, casting="unsafe")
        return array

    def from_file(self, path: str | os.PathLike[str], dtype: DTypeLike = float, *,
                  shape: Shape | None = None, offset: int = 0, order: str = "C",
                  block: int | str | None = None, progress: bool = False) -> np.ndarray:
        """An array of what a file of bare values holds from ``offset`` (in bytes) on.

        ``shape``: default one dimension, as long as the file; what lies behind is not read.
        ``progress`` shows a bar (needs the package rich).
        """
        kind = _checked_dtype(dtype)
        offset = _checked_number("offset", offset, 1 << 62, "bytes, 0 or more")
        with open(path, "rb", buffering=0) as file:
            present = max(os.fstat(file.fileno()).st_size - offset, 0)
            if shape is None:
                if kind.itemsize == 0 or present % kind.itemsize != 0:
                    raise ArgumentError(
                        f"{os.fspath(path)!s}: {present} bytes are not a whole number of values of "
                        f"{kind} ({kind.itemsize} bytes each); give shape or offset",
                        "INVALID_ARGUMENT")
                shape = present // kind.itemsize
            array = self.empty(shape, kind, order, block=block)
            file.seek(offset)
            _read_into(file, array, os.fspath(path), progress)
        return array

    def load(self, path: str | os.PathLike[str], *, block: int | str | None = None,
             progress: bool = False) -> np.ndarray:
        """The array of a ``.npy`` file, read into far memory."""
        with open(path, "rb", buffering=0) as file:
            version = np.lib.format.read_magic(file)
            if version == (1, 0):
                header = np.lib.format.read_array_header_1_0(file)
            elif version == (2, 0):
                header = np.lib.format.read_array_header_2_0(file)
            elif version == (3, 0):  # names of fields in any script
                header = _read_array_header(file, version)
            else:
                raise ArgumentError(f"{os.fspath(path)!s}: .npy version {version} is not known; "
                                    "allowed are (1, 0) to (3, 0)", "INVALID_ARGUMENT")
            shape, is_fortran, kind = header
            array = self.empty(shape, kind, "F" if is_fortran else "C", block=block)
            _read_into(file, array, os.fspath(path), progress)
        return array

    def save(self, path: str | os.PathLike[str], array: np.ndarray) -> None:
        """Writes any array, also a far one, as a ``.npy`` file.

        ``path`` is taken as it is, and replaced when all is written.
        """
        self._open()
        if not isinstance(array, np.ndarray):
            raise bad_argument("array", array, "is no NumPy array", "an array")
        name = os.fsdecode(path)
        partial = f"{name}.{secrets.token_hex(8)}.partial"
        file = open(partial, "xb")
        try:
            with file:
                np.lib.format.write_array(_Bytes(file), array, allow_pickle=False)
            os.replace(partial, name)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(partial)
            raise

    # What is known of arrays, and told.

    def __contains__(self, array: object) -> bool:
        """Whether an array's memory is in this pool."""
        if not isinstance(array, np.ndarray) or array.size == 0 or self._native is None:
            return False
        try:
            self._native.stats(_span(array)[0])
        except Error:  # NOT_FOUND
            return False
        return True

    def advise(self, array: np.ndarray, advice: Advice) -> None:
        """Tells how an array, or a part of it, will be used.

        ``"sequential"``, ``"random"`` and ``"normal"`` hold for the whole array that it is of.
        ``"willneed"`` starts fetching what it spans; ``"dontneed"`` writes that out and frees its
        local memory, the values stay; ``"discard"`` forgets the values: zeros from now on.
        """
        address, size = _span(array)
        number = _native.ADVICES.get(advice) if isinstance(advice, str) else None
        if number is None:
            raise bad_argument("advice", advice, "is unknown",
                               ", ".join(repr(name) for name in _native.ADVICES))
        if advice == "discard" and not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise bad_argument("array", "(strided)", "has gaps, whose values would be lost",
                               "a contiguous array for 'discard'")
        if size != 0:
            self._open().advise(address, size, number)

    def flush(self, array: np.ndarray | None = None) -> None:
        """Writes what has changed, of an array or of all, to the store, and returns then."""
        native = self._open()
        address, size = (0, 0) if array is None else _span(array)
        if array is None or size != 0:
            native.flush(address, size)

    @contextlib.contextmanager
    def pinned(self, array: np.ndarray, *, writes: bool = True) -> Iterator[np.ndarray]:
        """Keeps what an array spans in local memory, for devices and other libraries.

        ``writes``: whether it is going to be changed.  Raises NoRoomError where less than 16 blocks
        would be left for everything else.
        """
        native = self._open()
        address, size = _span(array)
        if size == 0:
            yield array
            return
        native.pin(address, size, bool(writes))
        try:
            yield array
        finally:
            native.unpin(address, size)

    def stats(self, array: np.ndarray | None = None) -> dict[str, int]:
        """Counters (since the beginning) and sizes (now), of an array or of all of the pool.

        The names are those of ``hanare/stats.h``: bytes where they end so, else numbers.
        """
        native = self._open()
        if isinstance(array, np.ndarray) and array.size == 0:
            raise bad_argument("array", array, "is empty and has no memory",
                               "an array of this pool")
        return native.stats(0 if array is None else _span(array)[0])

    @contextlib.contextmanager
    def recording(self, file: str | os.PathLike[str]) -> Iterator[None]:
        """Writes what the pool does meanwhile to a file, of which ``hanare report`` makes a page.

        A thread looks at the statistics ten times a second, less often after some minutes.  The
        file is written at the end, whatever happens; of where memory was it says nothing.  Raises OSError at once where it cannot be.

        >>> with pool.recording("run.json"):
        ...     a.sort()
        """
        native = self._open()
        try:
            file = os.fspath(file)
        except TypeError:
            raise bad_argument("file", file, "is no path", "the name of a file") from None
        with open(file, "a", encoding="utf-8"):
            pass
        recorded = Recording(lambda: native.stats(0))
        failed = True
        try:
            yield
            failed = False
        finally:
            write(file, recorded.end(failed, {"local": format_size(self.local_bytes)}))

    # The end.

    def close(self) -> None:
        """No more arrays.  What the pool has is given back with the last of those there are."""
        self._native = None

    @property
    def closed(self) -> bool:
        return self._native is None

    def __enter__(self) -> Pool:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a pool cannot be pickled; open one in each process")

    def __repr__(self) -> str:
        if self._native is None:
            return "<hanare.Pool, closed>"
        sizes = self.stats()
        return (f"<hanare.Pool: {format_size(sizes['virtual_bytes'])} of arrays, "
                f"{format_size(sizes['resident_bytes'])} of them in "
                f"{format_size(sizes['budget_bytes'])} of local memory>")

    def _repr_html_(self) -> str:
        if self._native is None:
            return html.escape(repr(self))
        sizes = self.stats()
        budget = max(sizes["budget_bytes"], 1)
        part = min(100.0, 100 * sizes["resident_bytes"] / budget)
        rows = [("arrays", format_size(sizes["virtual_bytes"])),
                ("in local memory", f"{format_size(sizes['resident_bytes'])} of "
                                    f"{format_size(budget)}"),
                ("not written yet", format_size(sizes["dirty_bytes"])),
                ("faults", f"{sizes['read_faults'] + sizes['write_faults']:,}"),
                ("read, written", f"{format_size(sizes['read_bytes'])}, "
                                  f"{format_size(sizes['written_bytes'])}")]
        cells = "".join(f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
                        f"<td style='text-align:right'>{html.escape(value)}</td></tr>"
                        for name, value in rows)
        return (f"<div><b>hanare.Pool</b><div title='{part:.0f} % of local memory is used' "
                "style='width:20em;height:.6em;border:1px solid currentColor'>"
                f"<div style='width:{part:.1f}%;height:100%;background:currentColor;opacity:.5'>"
                f"</div></div><table>{cells}</table></div>")

    def _open(self) -> _native.Pool:
        if self._native is None:
            raise ArgumentError("the pool is closed", "INVALID_ARGUMENT")
        return self._native


def _read_into(file: io.RawIOBase, array: np.ndarray, name: str, progress: bool) -> None:
    """Fills an array, in the order in which it lies in memory."""
    flat = array.reshape(-1, order="A").view(np.uint8) if array.size != 0 else array.reshape(0)
    piece = np.empty(min(_PIECE_BYTES, max(flat.size, 1)), np.uint8)
    with shown(f"reading {os.path.basename(name)}", flat.size, progress) as advance:
        at = 0
        while at < flat.size:
            wanted = min(piece.size, flat.size - at)
            got = file.readinto(memoryview(piece)[:wanted])
            if not got:
                raise ArgumentError(f"{name}: {flat.size - at} of {flat.size} bytes are missing at "
                                    "the end", "INVALID_ARGUMENT")
            flat[at:at + got] = piece[:got]
            at += got
            advance(got)


_default: Pool | None = None
_default_lock = threading.Lock()


def default_pool() -> Pool:
    """The pool that the functions of the package use; made at the first call, with all defaults."""
    global _default
    with _default_lock:
        if _default is None or _default.closed:
            _default = Pool()
            _log.info("default pool: %s of local memory, blocks in %s",
                      format_size(_default.local_bytes), os.environ.get("TMPDIR") or "/var/tmp")
        return _default
