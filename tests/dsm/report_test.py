# SPDX-License-Identifier: Apache-2.0
"""HANARE_DSM_REPORT: false sharing where there is some and only there, by which source lines.

As dsm_test.py, whose environment this has."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from dsm_test import HANARE, PROGRAMS, SECONDS, launch

SOURCE = pathlib.Path(__file__).with_name("sharing.c")


def line_of(mark):
    for number, text in enumerate(SOURCE.read_text(encoding="utf-8").splitlines(), 1):
        if f"/* {mark} */" in text:
            return number
    raise LookupError(mark)


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "report")

    def report(self, how, mode="off", tasks=2):
        run = launch(tasks, PROGRAMS / "sharing", how, mode=mode, HANARE_DSM_REPORT=self.path)
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "", ""))
        shown = subprocess.run([HANARE, "dsm-report", self.path], capture_output=True, text=True,
                               check=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
        return shown.stdout

    def blocks(self, text):
        """Kind and lines of each block, by its address."""
        found = {}
        for part in re.findall(r"^0x[0-9a-f]+, .*(?:\n  .*)*", text, re.MULTILINE):
            head, *lines = part.splitlines()
            found[head.split(",")[0]] = (head.rsplit(": ", 1)[1] if "FALSE" not in head
                                         else "false", lines)
        return found

    def test_words_of_their_own_in_one_block(self):
        text = self.report("false", tasks=3)
        self.assertIn("false sharing in 1\n", text.splitlines(keepends=True)[0])
        kinds = [kind for kind, _ in self.blocks(text).values()]
        self.assertEqual(kinds.count("false"), 1)
        self.assertEqual(kinds[0], "false")
        lines = "\n".join(next(iter(self.blocks(text).values()))[1])
        for task in range(3):
            # A counter up to 30 has one byte that changes.
            self.assertRegex(lines, rf"task {task}: .*\n    writes bytes {8 * task}-{8 * task}\b")
        self.assertIn(", allocation 2 + 0: FALSE", text)
        if shutil.which("addr2line"):
            self.assertEqual(lines.count(f"sharing.c:{line_of('counting')} (count)"), 3, lines)

    def test_the_same_word(self):
        text = self.report("true")
        self.assertIn("false sharing in 0", text)
        self.assertEqual(next(iter(self.blocks(text).values()))[0],
                         "the same bytes are written by several")

    def test_blocks_of_their_own(self):
        text = self.report("apart")
        self.assertIn("false sharing in 0", text)
        self.assertNotIn("several", text)

    def test_code_of_a_library_is_that_of_its_caller(self):
        text = self.report("copied")
        self.assertIn("false sharing in 1", text)
        if shutil.which("addr2line"):
            self.assertIn(f"sharing.c:{line_of('copying')} (copy) in ", text)

    def test_counters_and_allocations(self):
        text = self.report("false")
        counters = {line[:18].strip(): line[18:].split() for line in text.splitlines()}
        self.assertEqual(counters["barriers"], ["32", "32"])
        # One of the two is the home; how often the other fetches is the protocol's affair.
        self.assertGreater(sum(map(int, counters["write faults"])), 0)
        self.assertGreater(sum(map(int, counters["diffs"])), 0)
        rows = [line.split() for line in text.splitlines() if re.match(r"[12] +0x", line)]
        self.assertEqual([row[2] for row in rows], ["128", "8192"])
        self.assertEqual([row[3:] for row in rows][0], ["0"] * 6)

    def test_common_memory_says_that_nothing_is_caught(self):
        text = self.report("false", mode="on")
        self.assertIn("nothing was caught", text)

    def test_launch_shows_it(self):
        run = subprocess.run([HANARE, "launch", "-n", "2", "--dsm-report", self.path, "--",
                              PROGRAMS / "sharing", "false"], capture_output=True, text=True,
                             check=True, timeout=SECONDS, stdin=subprocess.DEVNULL,
                             env={**os.environ, "HANARE_DSM_SHARED": "off"})
        self.assertIn("false sharing in 1", run.stderr)

    def test_what_cannot_be_written_or_read(self):
        run = launch(2, PROGRAMS / "sharing", "false", HANARE_DSM_REPORT="/nowhere/report")
        self.assertEqual(run.returncode, 1)
        self.assertIn("HANARE_DSM_REPORT", run.stderr)
        for path in ("/nowhere/report", SOURCE):
            run = subprocess.run([HANARE, "dsm-report", path], capture_output=True, text=True,
                                 check=False, timeout=SECONDS)
            self.assertEqual((run.returncode, run.stdout), (2, ""))
            self.assertEqual(run.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
