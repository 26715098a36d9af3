# SPDX-License-Identifier: Apache-2.0
"""The programs of bench/dlm: built plainly, built by hanare-cc with local memory far below their
arrays, and the plain ones under `hanare run`, on a file and on a memory server.  They verify their
results themselves, and all have to come to the same bits.

DLM_PROGRAMS has the folders `plain` and `dlm`, DAMAGED_PROGRAMS plain ones of which a byte of an
array changes while they run.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

HANARE = os.environ["HANARE_BINARY"]
PROGRAMS = pathlib.Path(os.environ["DLM_PROGRAMS"])
DAMAGED = pathlib.Path(os.environ["DAMAGED_PROGRAMS"])
SECONDS = 120
MIB = 1 << 20
LOCAL_MIB = 2
BLOCK_KIB = 16

# Arguments of programs that take any.
ARGUMENTS = {
    "stream": ["--repeat", "3"],
    "stream2": ["--repeat", "3", "--halvings", "1"],
    "himeno": ["--iterations", "3"],
}
NAMES = ["matv", "test0", "test1", "swap_write", "stream", "stream2", "himeno"]
# Of a program with code and libraries only; also what the kernel counts of this one before exec.
OWN_MIB = 30


def environment(**settings):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("HANARE_") and name != "LD_PRELOAD"}
    return {**kept, **settings}


def settings(store):
    return {"local": f"{LOCAL_MIB}M", "block": f"{BLOCK_KIB}K", "store": store}


def as_variables(store):
    return {f"HANARE_{name.upper()}": value for name, value in settings(store).items()}


def as_flags(store):
    return [text for name, value in settings(store).items()
            for text in ("--" + name.replace("_", "-"), value)]


class Run:
    """A program that has ended; one that does not is killed."""

    def __init__(self, command, **variables):
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            with subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                  stdout=output, stderr=errors, start_new_session=True,
                                  env=environment(**variables)) as process:
                watch = threading.Timer(SECONDS, os.killpg, (process.pid, signal.SIGKILL))
                watch.start()
                try:
                    _, status, usage = os.wait4(process.pid, 0)
                finally:
                    watch.cancel()
                process.returncode = self.status = os.waitstatus_to_exitcode(status)
                # Its own: not of children.
                self.peak_mib = usage.ru_maxrss / 1024
            self.output = self.text_of(output)
            self.errors = self.text_of(errors)
        last = self.output.splitlines()[-1:] or [""]
        self.result = dict(re.findall(r"(\w+)=(\S+)", last[0])) \
            if last[0].startswith("result: ") else {}

    @staticmethod
    def text_of(file):
        file.seek(0)
        return file.read()


class Base(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.mkdtemp(prefix="hanare-dlm-programs-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.place)

    def assert_verified(self, run):
        self.assertEqual(run.status, 0, run.errors)
        self.assertEqual(run.result.get("verified"), "yes", run.output)

    def assert_same(self, run, plain):
        """With all that is not a time."""
        self.assert_verified(run)
        for word in ("program", "class", "bytes", "digest", "unit"):
            self.assertEqual(run.result[word], plain.result[word])

    @contextlib.contextmanager
    def serving(self):
        command = [HANARE, "server", "--memory", "64M", "--listen", "127.0.0.1:0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                              env=environment()) as process:
            try:
                found = re.match(r"hanare server: (tcp://\S+) offers", process.stdout.readline())
                self.assertTrue(found)
                yield found[1]
            finally:
                process.kill()

    def leases(self, server):
        result = subprocess.run([HANARE, "status", "--json", server], capture_output=True,
                                check=True, env=environment(), timeout=SECONDS)
        return json.loads(result.stdout)["leases"]


class Programs(Base):
    def compare(self, name):
        arguments = ARGUMENTS.get(name, [])
        plain = Run([PROGRAMS / "plain" / name, *arguments])
        self.assert_verified(plain)
        # So that what is moved is more than what could stay.
        self.assertGreater(int(plain.result["bytes"]), 12 * LOCAL_MIB * MIB)
        with self.serving() as server:
            for store in (f"file:{self.place}", server):
                with self.subTest(store=store, built="plain"):
                    self.run_unmodified(name, arguments, store, plain)
                with self.subTest(store=store, built="dlm"):
                    self.run_as_dlm_program(name, arguments, store, plain)
            while self.leases(server):
                pass

    def run_unmodified(self, name, arguments, store, plain):
        stats = pathlib.Path(self.place, "stats.json")
        run = Run([HANARE, "run", "--stats", stats, *as_flags(store), "--",
                   PROGRAMS / "plain" / name, *arguments])
        self.assert_same(run, plain)
        self.assert_moved(json.loads(stats.read_text("utf-8"))["totals"], plain)

    def assert_moved(self, totals, plain):
        self.assertGreaterEqual(totals["far_bytes_peak"], int(plain.result["bytes"]))
        self.assertGreater(totals["written_bytes"], int(plain.result["bytes"]) // 2)
        self.assertGreater(totals["read_bytes"], int(plain.result["bytes"]) // 2)

    def run_as_dlm_program(self, name, arguments, store, plain):
        program = PROGRAMS / "dlm" / name
        # No array is in the file.
        self.assertLess(program.stat().st_size, MIB)
        run = Run([program, *arguments], **as_variables(store))
        self.assert_same(run, plain)
        self.assertEqual(run.errors, "")
        self.assertLess(run.peak_mib, LOCAL_MIB + OWN_MIB)
        self.assertLess(LOCAL_MIB + OWN_MIB, plain.peak_mib)


def add_comparison(name):
    setattr(Programs, f"test_{name}", lambda self: self.compare(name))


for each in NAMES:
    add_comparison(each)


class Verification(Base):
    def test_a_changed_byte_is_found(self):
        damaged = sorted(DAMAGED.iterdir())
        self.assertEqual({path.name.split(".")[0] for path in damaged}, set(NAMES))
        for path in damaged:
            with self.subTest(program=path.name):
                name = path.name.split(".")[0]
                run = Run([path, *ARGUMENTS.get(name, [])])
                self.assertEqual((run.status, run.result.get("verified")), (1, "no"), run.errors)
                self.assertRegex(run.errors, rf"\A{name}: wrong result: [^\n]+\n\Z")

    def test_bad_arguments(self):
        for name in NAMES:
            for bad in (["--unheard-of", "1"], ["word"]):
                with self.subTest(program=name, arguments=bad):
                    self.assert_refused([PROGRAMS / "plain" / name, *bad])
        for value in ([], ["1"], ["3x"], ["201"], [""]):
            with self.subTest(repeat=value):
                self.assert_refused([PROGRAMS / "plain" / "stream", "--repeat", *value])

    def assert_refused(self, command):
        run = Run(command)
        self.assertEqual((run.status, run.output), (2, ""))
        self.assertRegex(run.errors, r"\A[^\n]+\n\Z")


if __name__ == "__main__":
    unittest.main()
