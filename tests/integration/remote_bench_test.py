# SPDX-License-Identifier: Apache-2.0
"""`hanare bench remote` and `hanare bench dlm-pagesize` as a user runs them: tables, records,
refusals, no process left behind.

Little data; nothing is timed.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

import support

HANARE = os.environ["HANARE_BINARY"]
FIELDS = {"bench", "case", "system", "metric", "unit", "median", "min", "max", "runs", "params"}
RATES = {"seq_write", "seq_read", "strided"}
LATENCIES = {"random_fault", "random_clean"}
SYSTEMS = {"raw_tcp", "server", "server_sealed"}
DATA = 32 << 20
# Fig. 13 (a) of the paper: 4 KiB and 1 MiB, over 1 and 10 Gbit Ethernet.
PAPER = {4096: (311, 103), 1 << 20: (16495, 3106)}


class Bench(support.InOwnPlace):
    def run_bench(self, *arguments, program=HANARE, **options):
        return subprocess.run([program, "bench", *arguments], timeout=150, check=False,
                              env=self.environment, capture_output=True, text=True, **options)

    def records_of(self, *arguments, **options):
        """Output and records of a run that succeeds."""
        with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
            os.chmod(directory, 0o777)
            path = os.path.join(directory, "results.json")
            result = self.run_bench(*arguments, "--json", path, **options)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            with open(path, encoding="utf-8") as file:
                records = json.load(file)
        for record in records:
            self.assertEqual(set(record), FIELDS)
        return result, records

    def programs_of_this_place(self):
        """Those whose temporary directory is this test's."""
        mark = f"TMPDIR={self.directory}".encode()
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append((process / "cmdline").read_bytes().split(b"\0"))
        return found

    def has_server(self):
        return any(b"server" in line for line in self.programs_of_this_place())


class Remote(Bench):
    def check_rates(self, records):
        for name in RATES:
            of_case = [r for r in records if r["case"] == name]
            self.assertEqual({r["system"] for r in of_case}, SYSTEMS | {"mirror", "parity_4_1"})
            for record in of_case:
                if record["metric"] in ("rate", "ratio", "client_processor", "server_processor"):
                    self.assertGreater(record["min"], 0, record)
            self.assertGreaterEqual({r["system"] for r in of_case if r["metric"] == "ratio"},
                                    SYSTEMS - {"raw_tcp"})
            self.assertEqual({r["system"] for r in of_case if r["metric"] == "extra_processor"},
                             {"server_sealed"})

    def check_moved(self, records):
        """All of the data went to the servers, and came back."""
        moved = {(r["case"], r["system"], r["metric"]): r["median"] for r in records}
        for system in ("server", "server_sealed"):
            self.assertGreaterEqual(moved["seq_write", system, "written"], DATA)
            self.assertGreaterEqual(moved["seq_read", system, "read"], DATA)
            # Single faults bring parts of blocks.
            self.assertLess(moved["random_fault", system, "read"], DATA)

    def check_latencies(self, records):
        for name in LATENCIES:
            found = {(r["system"], r["metric"]) for r in records if r["case"] == name}
            self.assertGreaterEqual(found, {("raw_tcp", "round_trip"), ("raw_tcp", "get_page"),
                                            ("server", "p50"), ("server", "beyond_raw"),
                                            ("server_sealed", "beyond_raw")})

    def test_loopback(self):
        result, records = self.records_of("remote", "--quick", "--networks", "loopback")
        self.assertEqual({r["params"]["network"] for r in records}, {"loopback"})
        self.assertEqual({r["params"]["data_bytes"] for r in records}, {DATA})
        self.assertEqual({r["case"] for r in records}, RATES | LATENCIES)
        self.check_rates(records)
        self.check_moved(records)
        self.check_latencies(records)
        self.assertIn("floor: of raw >= 0.80", result.stdout)
        self.assertFalse(self.programs_of_this_place())

    def check_veth(self, *arguments, **options):
        before = os.listdir("/sys/class/net")
        result, records = self.records_of(
            "remote", "--quick", "--cases", "seq_read,random_fault", *arguments, **options)
        self.assertEqual(os.listdir("/sys/class/net"), before)
        if "left out:" in result.stdout:
            self.assertEqual(records, [])
            self.skipTest(result.stdout.strip())
        self.assertEqual({r["system"] for r in records}, SYSTEMS)
        return records

    def test_veth(self):
        records = self.check_veth("--networks", "veth")
        self.assertEqual({r["params"]["network"] for r in records}, {"veth"})

    def test_a_link_of_one_gigabit(self):
        records = self.check_veth("--networks", "veth_1g")
        self.assertEqual({r["params"]["rate_mbit"] for r in records}, {1000})
        # No faster than the link, but for what is in its buffers.
        raw = [r["median"] for r in records if r["system"] == "raw_tcp" and r["metric"] == "rate"]
        self.assertEqual(len(raw), 1)
        self.assertLess(raw[0], 200e6)

    @unittest.skipIf(os.geteuid() != 0, "this is an ordinary user already")
    def test_veth_as_an_ordinary_user(self):
        with support.reachable_copy(HANARE) as (program, _):
            self.check_veth("--networks", "veth", program=program, **support.AS_NOBODY)

    def test_the_environment_does_not_matter(self):
        self.environment["HANARE_SECRET_FILE"] = "/nonexistent"
        self.environment["HANARE_STORE"] = "tcp://192.0.2.77"
        _, records = self.records_of("remote", "--quick", "--networks", "loopback", "--cases",
                                     "seq_write")
        self.assertEqual({r["case"] for r in records}, {"seq_write"})

    def test_killed_or_interrupted(self):
        for number in (signal.SIGKILL, signal.SIGINT):
            process = self.start("bench", "remote", "--networks", "loopback")
            for end in (process.kill, process.stdout.close, process.stderr.close):
                self.addCleanup(end)
            self.assertTrue(support.eventually(self.has_server))
            process.send_signal(number)
            self.assertEqual(process.wait(60), -number)
            self.assertTrue(support.eventually(lambda: not self.programs_of_this_place()))

    def test_bad_values(self):
        for arguments, *words in (
                (["--networks", "vet"], "--networks", '"vet"', "veth_1g"),
                (["--cases", "seq"], "--cases", '"seq"', "random_fault"),
                (["--size", "1M"], "--size", "too small", "32M"),
                (["--size", "900T"], "--size", "too large"),
                (["--rounds", "0"], "--rounds", "'0'", "1 to 99")):
            result = self.run_bench("remote", *arguments)
            self.assertEqual(result.returncode, 2, (arguments, result.stderr))
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
            for word in words:
                self.assertIn(word, result.stderr)


class DlmPagesize(Bench):
    def test_table_and_records(self):
        result, records = self.records_of("dlm-pagesize", "--quick")
        self.assertEqual({r["bench"] for r in records}, {"dlm-pagesize"})
        sizes = {4096 << i for i in range(9)}
        for system in ("paper_1gbe", "paper_10gbe", "raw_tcp", "hanare", "hanare_sealed"):
            found = {r["params"]["block_bytes"]: r["median"] for r in records
                     if r["system"] == system}
            self.assertEqual(set(found), sizes, system)
            self.assertGreater(min(found.values()), 0)
        for size, (one, ten) in PAPER.items():
            values = {r["system"]: r["median"] for r in records
                      if r["params"]["block_bytes"] == size}
            self.assertEqual((values["paper_1gbe"], values["paper_10gbe"]), (one, ten))
        self.assertIn("Fig. 13", result.stdout)
        self.assertIn("results verified", result.stdout)
        self.assertFalse(self.programs_of_this_place())


if __name__ == "__main__":
    unittest.main()
