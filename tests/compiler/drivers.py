# SPDX-License-Identifier: Apache-2.0
"""What the tests of the compiler drivers share."""

import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import textwrap
import unittest

DRIVERS = pathlib.Path(os.environ["HANARE_TEST_DRIVERS"])
FILE_BYTES_MAX = 2 << 30
SMALL_BYTES_MAX = 64 << 10
TIMEOUT_S = 120
GIB = 1 << 30

# (compiler of C, of C++, how an executable is made): each is its own subtest.
COMPILERS = [("gcc", "g++"), ("clang-19", "clang++-19")]
KINDS = [("-fPIE", "-pie"), ("-fno-pie", "-no-pie")]


def needs(program):
    return unittest.skipIf(shutil.which(program) is None, f"needs {program}")


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, FILE_BYTES_MAX))


class InOwnFolder(unittest.TestCase):
    """A folder with a blank in its name, in which everything runs; no variables of Hanare's."""

    drivers = DRIVERS

    def setUp(self):
        # Not in memory: stores are here, too.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"hanare cc-{os.getpid()}-",
                                                    dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("HANARE_") and name != "LD_PRELOAD"}
        self.environment.update({"LC_ALL": "C", "TMPDIR": str(self.folder)})

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return name

    def run_any(self, *command, environment=None, **more):
        limits = {} if "preexec_fn" in more else {"preexec_fn": limit_files}
        return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              timeout=TIMEOUT_S, cwd=self.folder,
                              env={**self.environment, **(environment or {})}, **limits, **more)

    def drive(self, driver, *arguments, cc=None, **more):
        """`cc`: the compiler behind it."""
        if cc is not None:
            more["environment"] = {**more.get("environment", {}), "HANARE_CC": cc,
                                   "HANARE_CXX": cc}
        return self.run_any(self.drivers / driver, *arguments, **more)

    def build(self, driver, *arguments, **more):
        """Must succeed, and say nothing."""
        done = self.drive(driver, *arguments, **more)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""),
                         f"{driver} {arguments} {more}")

    def assert_small(self, *names):
        for name in names:
            self.assertLess((self.folder / name).stat().st_size, SMALL_BYTES_MAX, name)

    def assert_runs(self, program, output, local="64M", **more):
        settings = {"HANARE_LOCAL": local, "HANARE_STORE": f"file:{self.folder}"}
        done = self.run_any(self.folder / program, environment=settings, preexec_fn=None, **more)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, output, ""), program)

    def sections(self, program):
        """Those that take memory when the program runs: {name: bytes}."""
        text = self.run_any("readelf", "-SW", program).stdout
        rows = [line.split("]", 1)[1].split() for line in text.splitlines() if "] ." in line]
        return {row[0]: int(row[4], 16) for row in rows}

    def for_compilers(self, driver):
        """(compiler, options) of all that there are; what is missing is skipped and said."""
        found = []
        for pair in COMPILERS:
            compiler = pair[1 if driver == "hanare-c++" else 0]
            if shutil.which(compiler) is None:
                with self.subTest(compiler=compiler):
                    self.skipTest(f"needs {compiler}")
                continue
            found += [(compiler, options) for options in KINDS]
        return found
