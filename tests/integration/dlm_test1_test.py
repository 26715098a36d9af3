# SPDX-License-Identifier: Apache-2.0
"""`hanare bench dlm-test1` as a user runs it: the counts of the paper's scheme, records, refusals.

Tiny sizes; nothing is timed.
"""

import json
import os
import subprocess
import tempfile
import unittest

import support

HANARE = os.environ["HANARE_BINARY"]
FIELDS = {"bench", "case", "system", "metric", "unit", "median", "min", "max", "runs", "params"}
PASSES = ["first write", "one int per page", "write again"]
SIZE = 8 << 20
PAPER = ["--replacement", "round_robin", "--prefetch", "off"]
SMALL = ["--size", "8M", "--rounds", "1"]


class DlmTest1(support.InOwnPlace):
    def run_bench(self, *arguments):
        return subprocess.run([HANARE, "bench", "dlm-test1", *arguments], timeout=250, check=False,
                              env=self.environment, capture_output=True, text=True)

    def run_with_records(self, *arguments):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "results.json")
            result = self.run_bench(*SMALL, "--json", path, *arguments)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            with open(path, encoding="utf-8") as file:
                return result.stdout, json.load(file)

    def check_counts(self, records, block, percent):
        blocks = SIZE // block
        local = round(blocks * percent / 100)
        found = {(r["case"], r["metric"]): r["median"] for r in records
                 if r["system"] == "hanare" and r["params"]["block_bytes"] == block
                 and r["params"]["local_ratio"] == percent / 100}
        fits = local == blocks
        expected = [0, 0, 0] if fits else [blocks - local, blocks, blocks]
        accesses = [SIZE // 4, SIZE // 4096, SIZE // 4]
        for name, swaps, count in zip(PASSES, expected, accesses):
            self.assertEqual(found[(name, "swaps")], swaps, (name, block, percent))
            self.assertEqual(found[(name, "swaps_expected")], swaps)
            self.assertEqual(found[(name, "swaps_difference")], 0)
            if swaps > 0:
                self.assertEqual(found[(name, "accesses_per_swap")], count / swaps)
            self.assertGreater(found[(name, "relative_speed")], 0)

    def test_counts_are_those_of_the_paper(self):
        percents = [100, 95, 50, 33]
        for engine in ("auto", "sigbus-copy", "segv-remap"):
            out, records = self.run_with_records(
                *PAPER, "--blocks", "8K,32K,128K", "--local-percent", "100,95,50,33",
                "--engine", engine)
            for record in records:
                self.assertEqual(set(record), FIELDS)
                self.assertEqual(record["bench"], "dlm-test1")
            for block in (8 << 10, 32 << 10, 128 << 10):
                for percent in percents:
                    self.check_counts(records, block, percent)
            self.assertIn("results verified", out)
            self.assertIn("Fig. 9", out)
            # As in the paper: 8 writes of one int per page for each swap of 32 KiB.
            per_swap = [r["median"] for r in records if r["metric"] == "accesses_per_swap"
                        and r["case"] == PASSES[1] and r["params"]["block_bytes"] == 32 << 10]
            self.assertEqual(set(per_swap), {8})

    def test_other_policies_run_and_are_verified(self):
        out, records = self.run_with_records("--blocks", "64K", "--local-percent", "50")
        self.assertIn("results verified", out)
        self.assertIn("--replacement round_robin --prefetch off", out)
        swaps = [r["median"] for r in records if r["metric"] == "swaps"]
        self.assertEqual(len(swaps), 3)
        self.assertGreater(min(swaps), 0)

    def test_bad_values(self):
        for arguments, *words in (
                (["--replacement", "lru"], "replacement (flag --replacement)", "second_chance or"),
                (["--prefetch", "maybe"], "prefetch (flag --prefetch)", "'maybe'", "off"),
                (["--blocks", "12K"], "--blocks", "'12K'", "power of two"),
                (["--blocks", ""], "--blocks", "''"),
                (["--local-percent", "0"], "--local-percent", "'0'", "up to 100"),
                (["--local-percent", "101"], "--local-percent", "'101'"),
                (["--local-percent", "nan"], "--local-percent", "'nan'"),
                (["--local-percent", "50,"], "--local-percent", "''"),
                (["--size", "8M", "--blocks", "1M"], "--local-percent", "at least 16"),
                (["--size", "1000T"], "--size", "room"),
                (["--rounds", "0"], "--rounds", "'0'", "1 to 99"),
                (["--read-ahead", "4"], "'--read-ahead'")):
            result = self.run_bench(*arguments)
            self.assertEqual(result.returncode, 2, (arguments, result.stderr))
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
            self.assertEqual(result.stdout, "")
            for word in words:
                self.assertIn(word, result.stderr)


if __name__ == "__main__":
    unittest.main()
