# SPDX-License-Identifier: Apache-2.0
"""Compiles kernels with the system's C compiler, once: what is made is kept in a folder of the
user's, under a hash of source, compiler, flags and processor."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import logging
import os
import shlex
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from .._errors import Error
from ._source import StencilError

_log = logging.getLogger("hanare")
_FORMAT = "1"  # of what is kept
_FILES_MAX = 400
_PARTIAL_AGE_S = 3600
_TIMEOUT_S = 120

# Nothing that changes a value: no contraction, which would depend on how a loop was taken apart.
# Exceptions and errno are not looked at, so that choices and roots are done by vectors.
FLAGS = ["-std=gnu11", "-O3", "-fPIC", "-shared", "-ffp-contract=off", "-fno-math-errno",
         "-fno-trapping-math", "-fopenmp-simd", "-w"]


@functools.cache
def processor_flags() -> frozenset[str]:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8",
                                            errors="replace") as file:
        for line in file:
            if line.startswith("flags"):
                return frozenset(line.split(":", 1)[1].split())
    return frozenset()


def vector_bytes() -> int:
    flags = processor_flags()
    return 64 if "avx512f" in flags else 32 if "avx" in flags else 16


def compiler() -> list[str]:
    """$CC, or cc, gcc, clang: the first that is there."""
    given = os.environ.get("CC", "")
    words = shlex.split(given)
    if words:
        if shutil.which(words[0]) is None:
            raise Error(f"CC: the compiler {given!r} is not there; stencils are compiled by $CC, "
                        "cc, gcc or clang", "NOT_SUPPORTED")
        return words
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name) is not None:
            return [name]
    raise Error("there is no C compiler: stencils are compiled by $CC, cc, gcc or clang; install "
                "one (Debian: apt install gcc), or give kernels that are compiled (hanare.kernel)",
                "NOT_SUPPORTED")


@functools.cache
def _version(words: tuple[str, ...], path: str, modified: float) -> str:
    try:
        ended = subprocess.run([*words, "--version"], capture_output=True, text=True, timeout=30,
                               stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError) as error:
        raise Error(f"the compiler {shlex.join(words)!r} does not start: {error}",
                    "NOT_SUPPORTED") from None
    return ended.stdout


def _command() -> tuple[list[str], str]:
    """Words in front of the files, and what they depend on."""
    words = compiler()
    path = shutil.which(words[0]) or words[0]
    version = _version(tuple(words), path, os.stat(path).st_mtime)
    flags = [*FLAGS, "-march=native"]
    if vector_bytes() == 64:
        flags.append("-mprefer-vector-width=512")
    return [*words, *flags], version


class _Folder:
    """Where libraries are kept: a folder that nobody else may write to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._private: tempfile.TemporaryDirectory[str] | None = None

    def path(self) -> Path:
        base = os.environ.get("XDG_CACHE_HOME", "")
        root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            root = root.resolve()
            for folder in (root, *root.parents):
                self._check_parent(folder)
            for folder in (root / "hanare", root / "hanare" / "stencils"):
                folder.mkdir(mode=0o700, exist_ok=True)
                self._check(folder)
            if os.access(folder, os.W_OK | os.X_OK):
                return folder
            reason = f"{folder} cannot be written"
        except (OSError, RuntimeError, PermissionError) as error:
            reason = str(error)
        with self._lock:
            if self._private is None:
                _log.warning("compiled stencils are not kept: %s", reason)
                self._private = tempfile.TemporaryDirectory(prefix="hanare-stencils-")
            return Path(self._private.name)

    @staticmethod
    def _check_parent(folder: Path) -> None:
        """Who may rename what is in it could put another folder in the place of ours."""
        found = os.stat(folder)
        if found.st_uid not in (0, os.geteuid()):
            raise PermissionError(f"{folder} belongs to another user")
        if found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
            raise PermissionError(f"{folder} can be written by others (mode "
                                  f"{stat.S_IMODE(found.st_mode):o})")

    @staticmethod
    def _check(folder: Path) -> None:
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode):
            raise PermissionError(f"{folder} is no folder")
        if found.st_uid != os.geteuid():
            raise PermissionError(f"{folder} belongs to another user")
        if found.st_mode & 0o022:
            raise PermissionError(f"{folder} can be written by others (mode "
                                  f"{stat.S_IMODE(found.st_mode):o})")


_folder = _Folder()
_loaded: dict[str, ctypes.CDLL] = {}
_loading = threading.Lock()


def library_of(source: str) -> ctypes.CDLL:
    """The library of a source text; compiled unless it has been before."""
    command, version = _command()
    said = "\0".join([_FORMAT, source, *command, version, *sorted(processor_flags())])
    key = hashlib.sha256(said.encode()).hexdigest()
    with _loading:
        if key not in _loaded:
            _loaded[key] = _load(key, command, source)
        return _loaded[key]


def _load(key: str, command: list[str], source: str) -> ctypes.CDLL:
    folder = _folder.path()
    made = folder / f"{key}.so"
    if _is_ours(made):
        try:
            with contextlib.suppress(OSError):
                os.utime(made)  # for _tidy
            return ctypes.CDLL(str(made))
        except OSError as error:  # cut off, say
            _log.info("%s is made again: %s", made, error)
    _tidy(folder)
    _compile(command, source, made)
    return ctypes.CDLL(str(made))


def _is_ours(path: Path) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return (stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
            and not found.st_mode & 0o022 and found.st_size > 0)


def _compile(command: list[str], source: str, made: Path) -> None:
    """Under a name of its own first: others see all of it or nothing."""
    with tempfile.TemporaryDirectory(prefix="partial-", dir=made.parent) as work:
        text = Path(work) / "stencil.c"
        text.write_text(source, encoding="utf-8")
        library = Path(work) / "stencil.so"
        words = [*command, "-o", str(library), str(text), "-lm"]
        try:
            ended = subprocess.run(words, capture_output=True, text=True, errors="replace",
                                   timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL, cwd=work)
        except subprocess.TimeoutExpired:
            raise StencilError(f"the compiler took more than {_TIMEOUT_S} s: "
                               f"{shlex.join(command)}") from None
        except OSError as error:
            raise Error(f"the compiler {command[0]!r} does not start: {error}",
                        "NOT_SUPPORTED") from None
        if ended.returncode != 0:
            said = "\n".join(line for line in ended.stderr.splitlines()
                             if "error" in line or "fatal" in line) or ended.stderr.strip()
            raise StencilError(f"the C compiler ({command[0]}) refuses the kernel:\n"
                               f"{said[:2000].replace(str(text), 'kernel')}")
        os.chmod(library, 0o500)
        os.replace(library, made)


def _tidy(folder: Path) -> None:
    """Forgets the libraries that have not been used for longest, and what compilers that were
    killed have left."""
    with contextlib.suppress(OSError):
        entries = list(os.scandir(folder))
        now = time.time()
        for entry in entries:
            if entry.name.startswith("partial-") and now - entry.stat().st_mtime > _PARTIAL_AGE_S:
                shutil.rmtree(entry.path, ignore_errors=True)
        libraries = sorted((entry for entry in entries if entry.name.endswith(".so")),
                           key=lambda entry: entry.stat().st_mtime)
        for entry in libraries[:max(0, len(libraries) - _FILES_MAX + 1)]:
            os.unlink(entry.path)
