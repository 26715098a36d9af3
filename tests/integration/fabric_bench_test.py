# SPDX-License-Identifier: Apache-2.0
"""`hanare bench fabric` as a user runs it: table, records, refusals, no process left behind.

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
CASES = ("get_64", "put_64", "fetch_add", "get_64k", "get_1m", "get_64k_q8")
SIGNALS = ("signal_computing", "signal_sleeping")


class FabricBench(support.InOwnPlace):
    def run_bench(self, *arguments):
        return subprocess.run([HANARE, "bench", "fabric", "--quick", *arguments], timeout=120,
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
            self.assertEqual(record["bench"], "fabric")
            self.assertGreater(record["min"], 0)
        for name in CASES:
            own = {(r["system"], r["metric"]) for r in records if r["case"] == name}
            self.assertEqual(own, {("raw_tcp", "time"), ("hanare", "time"), ("hanare", "ratio")})
            self.assertIn(f"\n{name} ", result.stdout)
            engines = {r["params"]["engine"] for r in records if r["case"] == name}
            self.assertEqual(engines, {"tcp", "secure", "ring", "shm"})
        for name in SIGNALS:
            self.assertEqual({r["system"] for r in records if r["case"] == name},
                             {"hanare", "kernel"})
        self.check_groups(records)

    def check_groups(self, records):
        self.assertEqual({r["params"]["tasks"] for r in records if r["case"] == "barrier"},
                         {4, 8, 16})
        messages = {(r["params"]["way"], r["params"]["tasks"]): r["median"] for r in records
                    if r["case"] == "multicast" and r["metric"] == "root_messages"}
        for tasks in (4, 8, 16):
            self.assertEqual(messages["flat", tasks], tasks - 1)
            self.assertLessEqual(messages["tree", tasks], 3 * 8)

    def test_chosen_cases(self):
        result = self.run_bench("--cases", "put_64", "--compare", "raw_tcp")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("\nput_64 ", result.stdout)
        self.assertNotIn("get_64", result.stdout)

    def test_names_that_do_not_exist(self):
        for flag, allowed in (("--cases", "get_64k_q8"), ("--compare", "raw_tcp")):
            result = self.run_bench(flag, "get_65")
            self.assertEqual(result.returncode, 2)
            self.assertIn(flag, result.stderr)
            self.assertIn('"get_65"', result.stderr)
            self.assertIn(allowed, result.stderr)


if __name__ == "__main__":
    unittest.main()
