# SPDX-License-Identifier: Apache-2.0
#
# `hanare demo sort` as root and as an ordinary user run it: results, refusals, and that nothing is
# left on the machine however it ends.  A small text; nothing is timed.
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import sys
import tempfile
import unittest

import support

HANARE = os.environ["HANARE_BINARY"]
LIBRARY = os.environ["HANARE_RUN_LIBRARY"]
IS_ROOT = os.geteuid() == 0
MIB = 1 << 20
SMALL = ["demo", "sort", "--size", "256M", "--patience", "60"]


@unittest.skipIf(support.SANITIZER, "sort is not made for what a sanitizer's build preloads")
class SortTest(support.InOwnPlace):
    def tearDown(self):
        self.assertNotIn(self.directory, pathlib.Path("/proc/swaps").read_text("ascii"))
        names = {f"hanare-demo-{pid}" for pid in self.pids}
        self.assertEqual([base for base, folders, _ in os.walk("/sys/fs/cgroup")
                          if names.intersection(folders)], [])
        super().tearDown()

    def run_hanare(self, *arguments, **options):
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=400)
        return process.returncode, out, err

    def descendants(self, pid):
        found = []
        for child, _ in support.children_of(pid):
            found += [child, *self.descendants(child)]
        return found

    def check_rows(self, out, results):
        for system, result in results.items():
            self.assertRegex(out, rf"(?m)^{system} .* {result}$")

    def test_all_systems(self):
        path = os.path.join(self.directory, "results.json")
        # The program and its library where an ordinary user can run them.
        with support.reachable_copy(HANARE) as (program, library):
            shutil.copy(LIBRARY, library)
            status, out, err = self.run_hanare(*SMALL, "--json", path, program=program,
                                               more_environment={"LD_LIBRARY_PATH": library})
        self.assertEqual(status, 0, out + err)
        records = json.loads(pathlib.Path(path).read_text("utf-8"))
        os.unlink(path)
        self.check_rows(out, {"plain": "verified", "hanare": "identical"})
        if "need a memory cgroup" not in out:
            self.check_rows(out, {"limited": "killed: out of memory"})
            if "without swap" not in out:
                self.assertRegex(out, r"(?m)^swap .*(identical|killed: out of memory|stopped .*)$")
        if IS_ROOT:
            self.assertRegex(out, r"(?m)^sort ran as user [1-9]\d*, who has no rights")
        self.assertRegex(out, r"\nUnder hanare run, sort finished 256(\.0)? MiB in ")
        self.assertIn("hanare: reading\n", err)
        peaks = {r["system"]: r["median"] for r in records if r["metric"] == "peak_resident"}
        limit = records[0]["params"]["limit_bytes"]
        self.assertGreater(peaks["plain"], 500 * MIB)
        self.assertAlmostEqual(limit / peaks["plain"], 0.25, 3)
        self.assertLessEqual(peaks["hanare"], limit)

    @unittest.skipUnless(IS_ROOT, "needs root to become somebody else")
    def test_ordinary_user(self):
        with support.reachable_copy(HANARE) as (program, library):
            shutil.copy(LIBRARY, library)
            status, out, err = self.run_hanare(
                *SMALL, program=program, **support.AS_NOBODY,
                more_environment={"LD_LIBRARY_PATH": library, "HOME": "/nonexistent"})
        self.assertEqual(status, 0, out + err)
        self.check_rows(out, {"plain": "verified", "hanare": "identical"})
        self.assertEqual(len(re.findall("(?m)^.*cgroup.*$", out)), 1, out)
        self.assertNotIn("sort ran as", out)

    def interrupt(self, number, phase):
        process = self.start(*SMALL, start_new_session=True)
        if not any(phase in line for line in process.stderr):
            process.communicate()
            self.skipTest(f"there is no {phase} here")
        children = self.descendants(process.pid)
        process.send_signal(number)
        _, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, -number)
        if number != signal.SIGKILL:
            self.assertIn("interrupted; nothing was left behind", err)
        for child in children:
            self.assertTrue(support.eventually(lambda: not support.is_running(child)))

    def test_interrupt_undoes_everything(self):
        for number, phase in ((signal.SIGINT, "collecting"), (signal.SIGTERM, "plain: reading"),
                              (signal.SIGHUP, "hanare: sorting")):
            with self.subTest(signal=number.name, phase=phase):
                self.interrupt(number, phase)

    @unittest.skipUnless(IS_ROOT, "swap needs root")
    def test_interrupt_turns_swap_off(self):
        self.interrupt(signal.SIGINT, "swap: sorting")

    @unittest.skipUnless(IS_ROOT, "swap needs root")
    def test_what_a_killed_demo_left_is_undone_at_once(self):
        self.interrupt(signal.SIGKILL, "swap: sorting")
        self.assertTrue(support.eventually(lambda: not os.listdir(self.directory)))

    def test_bad_values_are_named(self):
        for arguments, named in (
                (["--size", "1M"], "--size: '1M' is too small; allowed is 256M or more"),
                (["--size", "1000T"], "free, sorting 1000 TiB takes "),
                (["--order", "sorted"], "--order: 'sorted' is unknown; allowed is runs or random"),
                (["--patience", "0"], "--patience"),
                (["--store", "file:/nonexistent"], "/nonexistent: No such file or directory"),
                (["--store", "file:/dev/shm"], "/dev/shm is in memory")):
            with self.subTest(arguments=arguments):
                status, out, err = self.run_hanare("demo", "sort", *arguments)
                self.assertEqual((status, out), (2, ""), err)
                self.assertIn(named, err)
                self.assertEqual(err.count("\n"), 1, err)
        status, out, err = self.run_hanare("demo", "--size", "3G", "sort")
        self.assertEqual((status, out), (2, ""), err)
        self.assertIn("--size must come after hanare demo sort", err)

    def test_no_usable_sort(self):
        status, out, err = self.run_hanare("demo", "sort", more_environment={"PATH": "/nonexistent"})
        self.assertEqual((status, out), (2, ""), err)
        self.assertIn("there is no sort in PATH", err)
        with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
            os.chmod(place, 0o755)
            script = pathlib.Path(place, "sort")
            script.write_text("#!/bin/sh\necho BusyBox sort\n", "ascii")
            script.chmod(0o755)
            status, out, err = self.run_hanare("demo", "sort",
                                               more_environment={"PATH": f"{place}:/usr/bin:/bin"})
        self.assertEqual((status, out), (2, ""), err)
        self.assertRegex(err, r"^hanare: error: \S+/sort is not GNU sort[^\n]*\n$")

    @support.needs_limit_of_files
    def test_limit_of_files_is_named(self):
        status, out, err = self.run_hanare(*SMALL, preexec_fn=support.limit_files(100 * MIB))
        self.assertEqual((status, out), (2, ""), err)
        self.assertRegex(err, r"^hanare: error: files may have 100 MiB, .*\(ulimit -f[^\n]*\n$")

    def test_limit_of_memory_is_a_line(self):
        limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (700 * MIB,) * 2)}
        status, _, err = self.run_hanare(*SMALL, **limit)
        self.assertEqual(status, 70, err)
        self.assertRegex(err, r"(?m)^hanare: error: sort did not finish plainly: [^\n]+$")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
