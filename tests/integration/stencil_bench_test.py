# SPDX-License-Identifier: Apache-2.0
"""`hanare bench stencil` as a user runs it: table, records, series, refusals, nothing left behind.

Tiny sizes; nothing is timed.  That cells are those of the plain sweeps is the program's own check.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

import support

HANARE = os.environ["HANARE_BINARY"]
FIELDS = {"bench", "case", "system", "metric", "unit", "median", "min", "max", "runs", "params"}
GRIDS = ("hanare_4x", "hanare_8x", "hanare_8x_ping_pong", "hanare_8x_snapshots")
SERIES = {"seconds", "user_s", "system_s", "read_bytes", "written_bytes"}


class StencilBench(support.InOwnPlace):
    def run_bench(self, *arguments):
        return subprocess.run([HANARE, "bench", "stencil", *arguments], timeout=250, check=False,
                              env=self.environment, capture_output=True, text=True)

    def run_with_records(self, *arguments):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "results.json")
            result = self.run_bench("--quick", "--json", path, *arguments)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            with open(path, encoding="utf-8") as file:
                records = json.load(file)
        for record in records:
            self.assertEqual(set(record), FIELDS)
            self.assertEqual(record["bench"], "stencil")
        return result.stdout, records

    @support.needs_small_processes
    def test_records(self):
        # Of an interpreter without Devito the row says so.
        out, records = self.run_with_records("--python", sys.executable)
        found = {(r["system"], r["metric"]): r for r in records}
        for system in ("naive", "spatial", "hanare_memory", *GRIDS):
            self.assertGreater(found[system, "rate"]["min"], 0)
            self.assertEqual(found[system, "effective"]["median"],
                             8 * found[system, "rate"]["median"])
            self.assertIn(f"\n{system} ", out)
            series = found[system, "time"]["params"]["series"]
            self.assertEqual(set(series), SERIES)
            for values in series.values():
                self.assertEqual(values, sorted(values))
            self.assertGreater(series["seconds"][-1], 0)
        for system in GRIDS:
            if system != "hanare_8x_snapshots":
                moved = found[system, "read"]["median"] + found[system, "written"]["median"]
                self.assertGreater(moved, 0)
        params = found["hanare_8x", "speed_of_memory"]["params"]
        self.assertEqual((params["floor"], params["goal"]), (0.85, 0.97))
        if "mmap              " not in out or ("mmap", "rate") in found:
            self.assertIn(("hanare_8x", "speed_of_mmap"), found)
        if ("devito", "rate") not in found:
            self.assertRegex(out, r"\ndevito .*skipped: .*devito.*see --python")

    @support.needs_small_processes
    def test_sweep(self):
        out, records = self.run_with_records("--sweep", "--steps", "4")
        self.assertEqual({r["params"]["place"] for r in records}, {"memory", "file"})
        self.assertEqual({r["system"] for r in records}, {"trapezoid", "two_level"})
        for record in records:
            self.assertGreater(record["median"], 0)
            self.assertGreaterEqual(record["params"]["redundant"], 0)
        self.assertIn("file, two levels", out)

    def test_what_was_measured_before_an_interruption_is_shown(self):
        command = [HANARE, "bench", "stencil", "--quick", "--rounds", "9"]
        with subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as bench:
            # The second run begins when the first is done.
            for line in bench.stderr:
                if line.startswith("[2/"):
                    break
            bench.send_signal(signal.SIGINT)
            out, _ = bench.communicate(timeout=250)
        self.assertEqual(bench.returncode, -signal.SIGINT, out)
        self.assertIn("what was measured by then", out)
        self.assertIn("\nnaive ", out)

    def test_refusals(self):
        for arguments, text in (
                (["--compare", "naive,xyzzy"], "xyzzy"), (["--size", "1M"], "64M or more"),
                (["--size", "64M"], "too little"), (["--times", "8,4"], "have to rise"),
                (["--times", "1"], "--times"), (["--steps", "1"], "--steps"),
                (["--threads", "0"], "--threads"), (["--python", "/nonexistent"], "/nonexistent"),
                (["--size", "1000T"], "available are"), (["--store", "file:/nonexistent"],
                                                        "/nonexistent")):
            with self.subTest(arguments=arguments):
                result = self.run_bench(*arguments)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(text, result.stderr)


if __name__ == "__main__":
    unittest.main()
