# SPDX-License-Identifier: Apache-2.0
"""What the tests of the programs share: ordinary users, limits, waiting for what nobody announces."""

import contextlib
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import time
import unittest

NOBODY = 65534
AS_NOBODY = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}


def eventually(condition, seconds=60):
    """Whether the condition comes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@contextlib.contextmanager
def reachable_copy(binary):
    """The programs and their library where every user can reach them; gives program and its place.

    The build directory may be closed to others.
    """
    with tempfile.TemporaryDirectory(prefix=f"hanare-copy-{os.getpid()}-", dir="/var/tmp") as place:
        os.chmod(place, 0o755)
        program = shutil.copy(binary, place)
        tools = shutil.copy(os.path.join(os.path.dirname(binary), "hanare-tools"), place)
        library = subprocess.run(["ldd", tools], capture_output=True, text=True, check=True)
        for path in re.findall(r"libhanare\S* => (\S+)", library.stdout):
            shutil.copy(path, place)
        yield program, place


class InOwnPlace(unittest.TestCase):
    """A directory that every user can write to, the only place for temporary files, and in the end
    empty; an environment without Hanare's variables."""

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix=f"hanare-place-{os.getpid()}-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.directory)
        os.chmod(self.directory, 0o777)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("HANARE_")}
        self.environment["TMPDIR"] = self.directory
        self.pids = []

    def tearDown(self):
        self.assertEqual(os.listdir(self.directory), [])

    def start(self, *arguments, program=None, more_environment=None, **options):
        process = subprocess.Popen([program or os.environ["HANARE_BINARY"], *arguments], text=True,
                                   env={**self.environment, **(more_environment or {})},
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self.pids.append(process.pid)
        return process


# "address", "thread", or nothing: what the program was built with.
SANITIZER = os.environ.get("HANARE_TEST_SANITIZER", "")

# The shadow of ThreadSanitizer counts against a limit of memory, many times over.
needs_small_processes = unittest.skipIf(SANITIZER == "thread",
                                        "ThreadSanitizer's own memory exceeds the limit")
needs_limit_of_files = unittest.skipIf(SANITIZER == "thread",
                                       "ThreadSanitizer writes files of its own and is killed")


def limit_files(file_bytes):
    """For preexec_fn: no file may become longer."""
    def set_limit():
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, hard))
    return set_limit


def close_standard_streams():
    """For preexec_fn."""
    for number in range(3):
        with contextlib.suppress(OSError):
            os.close(number)


def children_of(pid):
    """(pid, command line) of every child."""
    found = []
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split():
        with contextlib.suppress(OSError):
            line = pathlib.Path(f"/proc/{child}/cmdline").read_bytes()
            found.append((int(child), line.decode(errors="replace").split("\0")))
    return found


def is_running(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace")
    except FileNotFoundError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"
