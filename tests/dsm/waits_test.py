# SPDX-License-Identifier: Apache-2.0
"""Condition variables, semaphores, barriers of some tasks, masks of TreadMarks' old interface, C++.

As dsm_test.py, whose environment this has."""

import os
import sys
import time
import unittest

from dsm_test import LOSS_SECONDS, MODES, PROGRAMS, launch


class Waits(unittest.TestCase):
    def check(self, case, tasks=(1, 2, 3, 5)):
        for mode in MODES:
            for count in tasks:
                with self.subTest(mode=mode, tasks=count):
                    run = launch(count, PROGRAMS / "waits", case, mode=mode)
                    self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
                    self.assertEqual(run.stdout, "right\n" * count)

    def test_a_buffer_of_all_tasks(self):
        self.check("buffer")

    def test_all_are_woken_and_see_what_was_written_before(self):
        self.check("broadcast")

    def test_conditions_need_their_lock(self):
        self.check("wrong_conditions")

    def test_semaphores_bring_what_was_written(self):
        self.check("ring")

    def test_semaphores_bring_what_others_have_brought(self):
        self.check("chain", tasks=(2, 3, 5))

    def test_semaphores_count(self):
        self.check("counting")

    def test_semaphores_that_are_not_there(self):
        self.check("wrong_semaphores")

    def test_barriers_of_some(self):
        self.check("groups")

    def test_groups_are_the_same_in_all_and_right(self):
        self.check("wrong_groups")

    def test_what_is_started_is_found(self):
        self.check("running", tasks=(1, 2))


class Cpp(unittest.TestCase):
    """hanare/dsm.hpp."""

    def test_every_class(self):
        for mode in MODES:
            for count in (2, 3):
                with self.subTest(mode=mode, tasks=count):
                    run = launch(count, PROGRAMS / "cpp_program", mode=mode)
                    self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
                    self.assertEqual(run.stdout, "right\n" * count)

    def test_example(self):
        for mode in MODES:
            run = launch(3, os.environ["DSM_EXAMPLE"], 40, mode=mode)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            self.assertRegex(run.stdout, "^3 tasks, [0-9]+ steps, [.0-9]+ in the middle: right\n$")


class LostTasks(unittest.TestCase):
    def test_while_others_wait(self):
        for case in ("lost_condition", "lost_semaphore", "lost_group"):
            for mode in MODES:
                with self.subTest(case=case, mode=mode):
                    started = time.monotonic()
                    command = f"{PROGRAMS / 'waits'} {case}; echo status $?"
                    run = launch(3, "sh", "-c", command, mode=mode)
                    self.assertLess(time.monotonic() - started, LOSS_SECONDS, run.stderr)
                    self.assertEqual(run.stdout.count("status 0\n"), 2, run.stdout + run.stderr)
                    self.assertEqual(run.stderr.count("task 2 is no more"), 2, run.stderr)


class Masks(unittest.TestCase):
    def test_barriers_of_a_mask(self):
        for mode in MODES:
            for count in (1, 2, 5):
                with self.subTest(mode=mode, tasks=count):
                    run = launch(count, PROGRAMS / "tmk_mask", mode=mode)
                    self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
                    self.assertEqual(run.stdout, "right\n")

    def test_a_mask_without_the_process(self):
        for mask in ("wrong", "beyond"):
            run = launch(2, PROGRAMS / "tmk_mask", mask)
            self.assertEqual(run.returncode, 70, run.stderr)
            self.assertIn("Tmk_barrier: mask 0x", run.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
