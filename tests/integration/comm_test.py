# SPDX-License-Identifier: Apache-2.0
"""The examples of communication as jobs of several tasks, below `hanare launch`."""

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
        """With UCX's shared memory."""
        self.skip_without_ucx()
        for tasks in (1, 2, 4):
            for name in NAMES:
                with self.subTest(name, tasks=tasks):
                    self.run_job(name, tasks, HANARE_COMM_UCX="1")

    def test_one_task_does_not_want_ucx(self):
        """Then it is not used with it, and all goes as without."""
        self.skip_without_ucx()
        program = os.path.join(EXAMPLES, "example_comm_put_get")
        process = self.start("launch", "-n", "3", "sh", "-c",
                             f"HANARE_COMM_UCX=$((HANARE_RANK % 2)) exec {program}")
        self.addCleanup(self.end, process)
        output, errors = process.communicate(timeout=120)
        self.assertEqual((process.returncode, errors), (0, ""))
        self.assertEqual(output, "put and get: as expected, 3 tasks\n")

    def errors_of_transports(self, transports):
        program = os.path.join(EXAMPLES, "example_comm_counter")
        self.environment.update(HANARE_COMM_UCX="1", UCX_TLS=transports)
        process = self.start("launch", "-n", "1", program)
        self.addCleanup(self.end, process)
        output, errors = process.communicate(timeout=120)
        if process.returncode == 0:
            return ""
        self.assertEqual(output, "")
        return errors

    def skip_without_ucx(self):
        errors = self.errors_of_transports("posix")
        for name in ("UCX_TLS", "HANARE_COMM_UCX"):
            del self.environment[name]
        for reason in ("built without UCX", "libucp.so.0"):
            if reason in errors:
                self.skipTest(errors)
        self.assertEqual(errors, "")

    def test_transports_of_ucx_that_are_not_there(self):
        self.skip_without_ucx()
        self.assertIn("nonsense", self.errors_of_transports("nonsense"))
        # Puts by it are the target's work: there is no memory that others reach.
        self.assertIn("'tcp'", self.errors_of_transports("tcp"))


if __name__ == "__main__":
    unittest.main()
