# SPDX-License-Identifier: Apache-2.0
"""`hanare bench intercept` as a user runs it: table, records, refusals, nothing left behind.

Few rounds; nothing is timed.
"""

import json
import os
import subprocess
import tempfile
import unittest

import support

HANARE = os.environ["HANARE_BINARY"]
FIELDS = {"bench", "case", "system", "metric", "unit", "median", "min", "max", "runs", "params"}
CASES = {"getppid": "ns", "read": "ns", "access": "ns", "poll": "ns", "clock": "ns",
         "far_read": "ns", "far_read_4k": "ns", "far_struct": "ns", "compute": "%", "copy": "%",
         "start": "us", "start_spread": "us"}


class InterceptBench(support.InOwnPlace):
    def run_bench(self, *arguments):
        return subprocess.run([HANARE, "bench", "intercept", "--quick", *arguments], timeout=250,
                              check=False, env=self.environment, capture_output=True, text=True)

    def test_records(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "results.json")
            result = self.run_bench("--json", path)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            with open(path, encoding="utf-8") as file:
                records = json.load(file)
        for record in records:
            self.assertEqual(set(record), FIELDS)
            self.assertEqual(record["bench"], "intercept")
            self.assertIn(record["params"]["verdict"], ("met", "floor", "missed"))
            self.assertLess(record["params"]["goal"], record["params"]["floor"])
        for name, unit in CASES.items():
            own = {(r["system"], r["metric"]): r for r in records if r["case"] == name}
            self.assertEqual(set(own), {("plain", "time"), ("hanare", "time"),
                                        ("hanare", "difference")})
            self.assertGreater(own[("plain", "time")]["min"], 0)
            self.assertEqual(own[("hanare", "difference")]["unit"], unit)
            self.assertIn(f"\n{name} ", result.stdout)
            median = own[("hanare", "difference")]["median"]
            params = own[("hanare", "difference")]["params"]
            expected = ("met" if median <= params["goal"] else
                        "floor" if median <= params["floor"] else "missed")
            self.assertEqual(params["verdict"], expected)

    def test_a_directory_that_does_not_exist(self):
        result = self.run_bench("--store", "file:/nonexistent")
        self.assertEqual(result.returncode, 2)
        self.assertIn("/nonexistent", result.stderr)


if __name__ == "__main__":
    unittest.main()
