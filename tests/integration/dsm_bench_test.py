# SPDX-License-Identifier: Apache-2.0
"""`hanare bench dsm` as a user runs it: records, counts that must be so, refusals.  Nothing is timed."""

import json
import os
import subprocess
import tempfile
import unittest

import support

HANARE = os.environ["HANARE_BINARY"]
FIELDS = {"bench", "case", "system", "metric", "unit", "median", "min", "max", "runs", "params"}


class DsmBench(support.InOwnPlace):
    def run_bench(self, *arguments):
        return subprocess.run([HANARE, "bench", "dsm", *arguments], timeout=120, check=False,
                              env=self.environment, capture_output=True, text=True)

    def test_records_and_counts(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "results.json")
            result = self.run_bench("--quick", "--json", path)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            with open(path, encoding="utf-8") as file:
                records = json.load(file)
        self.assertIn("results verified", result.stdout)
        found = {}
        for record in records:
            self.assertEqual(set(record), FIELDS)
            found[record["case"], record["system"], record["metric"]] = record["median"]
        for program in ("ep", "is-medium", "water-288", "sor-nz", "jacobi"):
            for system in ("seq", "hanare", "hanare_tcp"):
                self.assertGreater(found[program, system, "time"], 0)
            # Common memory needs neither; of several machines somebody has asked somebody.
            for metric in ("messages", "faults", "diffs", "twins", "fetched_blocks"):
                self.assertEqual(found[program, "hanare", metric], 0)
            self.assertGreater(found[program, "hanare_tcp", "messages"], 0)
        # 20 iterations, a barrier in each, in each direction.
        self.assertEqual(found["jacobi", "hanare_tcp", "barrier_messages"], 40)
        # A row in each direction, of 203 numbers.
        if ("jacobi", "mpi", "time") in found:
            for system in ("mpi", "mpi_tcp"):
                self.assertEqual(found["jacobi", system, "messages"], 40)
                self.assertEqual(found["jacobi", system, "bytes"], 40 * 203 * 8)

    def test_over_a_pair_of_networks(self):
        result = self.run_bench("--quick", "--programs", "jacobi", "--network", "veth")
        if "no link of two networks here" in result.stderr or "namespace" in result.stderr:
            self.skipTest(result.stderr.strip())
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("over veth", result.stdout)
        self.assertIn("results verified", result.stdout)
        self.assertRegex(result.stdout, r"(?m)^hanare_tcp +[0-9]")

    def test_refusals(self):
        for arguments, text in ((["--programs", "pears"], '"pears" is unknown or named twice'),
                                (["--compare", "mpi,mpi"], "'mpi' is unknown or named twice"),
                                (["--processes", "0"], "--processes"),
                                (["--network", "string"], "'string' is unknown"),
                                (["--folder", "/nowhere"], "no programs in /nowhere")):
            result = self.run_bench(*arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
            self.assertIn(text, result.stderr)


if __name__ == "__main__":
    unittest.main()
