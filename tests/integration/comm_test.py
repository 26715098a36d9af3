# SPDX-License-Identifier: Apache-2.0
"""The examples of communication as jobs of several tasks, below `hanare launch`."""

import ctypes
import os
import unittest

import support

EXAMPLES = os.environ["HANARE_EXAMPLES"]
NAMES = {"put_get": "put and get", "counter": "tickets", "queue": "queue",
         "notify": "put and notify", "broadcast": "broadcast", "multicast": "multicast",
         "signal": "signals"}


class Comm(support.InOwnPlace):
    @staticmethod
    def end(process):
        """Its tasks end with it."""
        if process.poll() is None:
            process.kill()
            process.communicate()

    def run_job(self, name, tasks, **variables):
        self.environment.update(variables)
        program = os.path.join(EXAMPLES, f"example_comm_{name}")
        process = self.start("launch", "-n", str(tasks), program)
        self.addCleanup(self.end, process)
        output, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, f"{name}, {tasks} tasks: {errors}")
        self.assertEqual(errors, "")
        self.assertEqual(output, f"{NAMES[name]}: as expected, {tasks} tasks\n")

    def test_four_tasks(self):
        for name in NAMES:
            with self.subTest(name):
                self.run_job(name, 4)

    def test_other_numbers_of_tasks(self):
        for tasks in (1, 2, 7):
            for name in NAMES:
                with self.subTest(name, tasks=tasks):
                    self.run_job(name, tasks)

    def test_by_ucx(self):
        """With UCX's shared memory; where UCX is not, in one line that says so."""
        try:
            ctypes.CDLL("libucp.so.0")
        except OSError:
            self.skipTest("there is no libucp.so.0 (libucx0)")
        for tasks in (1, 2, 4):
            for name in NAMES:
                with self.subTest(name, tasks=tasks):
                    self.run_job(name, tasks, HANARE_COMM_UCX="1")

    def test_transports_of_ucx_that_are_not_there(self):
        program = os.path.join(EXAMPLES, "example_comm_counter")
        self.environment.update(HANARE_COMM_UCX="1", UCX_TLS="nonsense")
        process = self.start("launch", "-n", "1", program)
        self.addCleanup(self.end, process)
        output, errors = process.communicate(timeout=120)
        self.assertNotEqual(process.returncode, 0)
        self.assertEqual(output, "")
        self.assertIn("open: HANARE_STATUS_NOT_SUPPORTED", errors)
        self.assertIn("UCX", errors)


if __name__ == "__main__":
    unittest.main()
