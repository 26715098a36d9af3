# SPDX-License-Identifier: Apache-2.0
"""Memory cgroups (versions 1 and 2) and a swap file, both undone however their `with` ends.

Names carry the id of the process that made them and are locked (flock) by it, so that what a killed
run has left is known for what it is and removed by the next one.
"""

import contextlib
import ctypes
import dataclasses
import errno
import fcntl
import os
import pathlib
import signal
import struct
import time

from interrupts import undisturbed

PREFIX = "hanare-programs-"
PAGE_BYTES = 4096
UNLIMITED = 1 << 62
SWAP_FLAG_PREFER = 0x8000
HIGHEST_PRIORITY = 32767
END_TIMEOUT_S = 30


class Unavailable(Exception):
    """There are no cgroups, or no swap, for this user here; says why."""


def memory_place(mountinfo, own):
    """(version, directory) below which memory cgroups can be made, or None.

    From the texts of /proc/self/mountinfo and /proc/self/cgroup.
    """
    paths = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    for line in mountinfo.splitlines():
        head, _, tail = line.partition(" - ")
        root, point = head.split()[3:5]
        kind, _, options = tail.split()[:3]
        if kind == "cgroup" and "memory" in options.split(",") and "memory" in paths:
            return 1, below(point, root, paths["memory"])
        if kind == "cgroup2" and "memory" not in paths and "" in paths:
            return 2, below(point, root, paths[""])
    return None


def below(point, root, path):
    """The cgroup `path` as seen at a mount `point` that shows what is below `root`."""
    if root != "/":
        path = path.removeprefix(root)
    return os.path.join(point, path.strip("/")).rstrip("/")


def parent_directory():
    """(version, directory) for new cgroups; raises Unavailable."""
    place = memory_place(pathlib.Path("/proc/self/mountinfo").read_text(),
                         pathlib.Path("/proc/self/cgroup").read_text())
    if place is None:
        raise Unavailable("there is no memory cgroup hierarchy")
    version, directory = place
    if version == 1:
        return place
    # A cgroup of version 2 that has processes cannot have limited children; one above may.
    mount = pathlib.Path(directory)
    for folder in (mount, *mount.parents):
        with contextlib.suppress(OSError):
            if "memory" in (folder / "cgroup.subtree_control").read_text().split():
                return version, str(folder)
    raise Unavailable("no cgroup above gives its children the memory controller")


def lock(path):
    """A locked descriptor of a file or directory, or None when somebody holds it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


@dataclasses.dataclass(frozen=True)
class Use:
    """What the processes of a cgroup occupy, in bytes, and how many of them the kernel has killed.

    `anonymous_bytes` is what only swap, or Hanare, could take away: anonymous and shared memory, of
    all processes, with what forked processes share counted once; the page cache is not in it.
    """

    anonymous_bytes: int
    oom_kills: int


class MemoryCgroup:
    """A context manager: a cgroup that ends its processes, and itself, at the end."""

    _count = 0

    def __init__(self, parent=None):
        self.version, self.parent = parent or parent_directory()
        MemoryCgroup._count += 1
        self.path = pathlib.Path(self.parent, f"{PREFIX}{os.getpid()}-{MemoryCgroup._count}")
        self._lock = None

    def __enter__(self):
        try:
            with undisturbed():
                self.path.mkdir()
                self._lock = lock(self.path)
        except OSError as error:
            self.__exit__()
            raise Unavailable(f"creating {self.path}: {error.strerror}") from error
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        with undisturbed():
            self.kill_all()
            self.remove()

    def write(self, name, value):
        (self.path / name).write_text(f"{value}\n")

    def limit(self, limit_bytes, swap):
        """Sets the limit, and lets what exceeds it be swapped or not."""
        if self.version == 1:
            self.write("memory.limit_in_bytes", limit_bytes)
            if not swap:
                self.write("memory.swappiness", 0)
                with contextlib.suppress(FileNotFoundError):  # the kernel may not account for swap
                    self.write("memory.memsw.limit_in_bytes", limit_bytes)
            return
        self.write("memory.max", limit_bytes)
        with contextlib.suppress(FileNotFoundError):
            self.write("memory.swap.max", "max" if swap else 0)

    def enter(self):
        """Moves the calling process into it; for a child that is about to become a program."""
        self.write("cgroup.procs", 0)

    def processes(self):
        return [int(pid) for pid in (self.path / "cgroup.procs").read_text().split()]

    def use(self):
        names = ("total_rss", "total_shmem") if self.version == 1 else ("anon", "shmem")
        stat = self._numbers("memory.stat")
        kills = self._numbers("memory.oom_control" if self.version == 1 else "memory.events")
        return Use(sum(stat.get(name, 0) for name in names), kills.get("oom_kill", 0))

    def _numbers(self, name):
        lines = (self.path / name).read_text().splitlines()
        return {key: int(value) for key, value in (line.split() for line in lines)}

    def kill_all(self):
        """Kills, one by one, what runs in it, until nothing does."""
        deadline = time.monotonic() + END_TIMEOUT_S
        with contextlib.suppress(FileNotFoundError):
            while pids := self.processes():
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                if time.monotonic() > deadline:
                    return
                time.sleep(0.01)

    def remove(self):
        """Removes the cgroup.  A process that has ended may be in it for a moment yet."""
        deadline = time.monotonic() + END_TIMEOUT_S
        while True:
            try:
                self.path.rmdir()
            except FileNotFoundError:
                break
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
                continue
            break
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_stale_cgroups(parent):
    """Removes the cgroups whose makers are gone, with the processes in them; returns how many."""
    version, directory = parent
    removed = 0
    for path in pathlib.Path(directory).glob(f"{PREFIX}*"):
        descriptor = lock(path)
        if descriptor is None:
            continue
        group = MemoryCgroup((version, directory))
        group.path, group._lock = path, descriptor
        group.kill_all()
        group.remove()
        removed += 1
    return removed


def swap_header(file_bytes):
    """The first page of a swap space of this size: version 1, no label, no bad pages."""
    words = struct.pack("<III", 1, file_bytes // PAGE_BYTES - 1, 0)
    magic = b"SWAPSPACE2"
    page = bytes(1024) + words
    return page + bytes(PAGE_BYTES - len(page) - len(magic)) + magic


LIBC = ctypes.CDLL(None, use_errno=True)


def check_call(result, what):
    if result != 0:
        raise Unavailable(f"{what}: {os.strerror(ctypes.get_errno())}")


class SwapFile:
    """A context manager: a file in `directory` to which the whole machine may swap meanwhile."""

    def __init__(self, directory, file_bytes):
        self.path = pathlib.Path(directory, f"{PREFIX}{os.getpid()}.swap")
        self.file_bytes = -(-file_bytes // PAGE_BYTES) * PAGE_BYTES
        self._lock = None

    def __enter__(self):
        try:
            with undisturbed():
                self._turn_on()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        with undisturbed():
            self.remove()

    def _turn_on(self):
        # The permissions of a file that will hold what others have in memory.
        self._lock = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.posix_fallocate(self._lock, 0, self.file_bytes)
        os.pwrite(self._lock, swap_header(self.file_bytes), 0)
        os.fsync(self._lock)
        check_call(LIBC.swapon(os.fsencode(self.path), SWAP_FLAG_PREFER | HIGHEST_PRIORITY),
                   f"turning on the swap file {self.path}")

    def remove(self):
        """Turns it off, which reads back what is still in it, and deletes it."""
        turn_off(self.path)
        self.path.unlink(missing_ok=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def turn_off(path):
    if LIBC.swapoff(os.fsencode(path)) != 0:
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOENT, errno.EPERM):  # it was not on
            raise OSError(number, f"turning off the swap file {path}: {os.strerror(number)}")


def remove_stale_swap_files(directory):
    """Turns off and deletes the swap files whose makers are gone; returns how many."""
    removed = 0
    for path in pathlib.Path(directory).glob(f"{PREFIX}*.swap"):
        descriptor = lock(path)
        if descriptor is None:
            continue
        turn_off(path)
        path.unlink()
        os.close(descriptor)
        removed += 1
    return removed
