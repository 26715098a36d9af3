# SPDX-License-Identifier: Apache-2.0
"""`hanare bench dlm` as a user runs it: tables, records, what is remembered, what is left behind.

Little data; nothing is timed.
"""

import json
import os
import pathlib
import signal
import subprocess
import unittest

import support

HANARE = os.environ["HANARE_BINARY"]
SMALL = ("--programs", "is:W,himeno:S", "--local-percent", "80", "--blocks", "16K",
         "--stores", "file,server")


class Dlm(support.InOwnPlace):
    def run_bench(self, *arguments):
        return subprocess.run([HANARE, "bench", "dlm", *arguments], timeout=200, check=False,
                              env=self.environment, capture_output=True, text=True)

    def left_behind(self):
        return [path.name for path in pathlib.Path(self.directory).iterdir()
                if path.name.startswith("hanare-")]

    def test_all_systems(self):
        path = os.path.join(self.directory, "results.json")
        memory = os.path.join(self.directory, "memory")
        arguments = (*SMALL, "--json", path, "--resume", memory)
        result = self.run_bench(*arguments)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("[1/14] is W: plain", result.stderr)
        records = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        found = {(r["case"], r["system"], r["params"]["store"]) for r in records
                 if r["metric"] == "time_of_plain" and r["min"] > 0}
        for case in ("is_W", "himeno_S"):
            for system in ("hanare", "run"):
                for store in ("file", "server"):
                    self.assertIn((case, system, store), found)
            if not any(words.startswith(case.replace("_", " ") + ", mmap is left out: ")
                       for words in result.stdout.splitlines()):
                self.assertIn((case, "mmap", ""), found)
        flushed = {(r["case"], r["system"]): r["min"] for r in records
                   if r["metric"] == "flushed_time_of_plain"}
        for record in records:
            key = (record["case"], record["system"])
            if record["metric"] == "time_of_plain" and record["params"]["store"] == "file" \
                    and record["system"] in ("hanare", "run"):
                self.assertGreater(flushed[key], 0)
        self.assertEqual(self.left_behind(), [])
        # What is known is not run again, but for what tells how large the arrays are.
        again = self.run_bench(*arguments)
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assertNotIn("hanare, 80 % local", again.stderr)
        self.assertEqual(again.stdout, result.stdout)
        for file in (path, memory):
            os.unlink(file)

    def test_over_links(self):
        """Of two rates, in turns; the network is the bench's own, and gone with it."""
        before = os.listdir("/sys/class/net")
        path = os.path.join(self.directory, "results.json")
        result = self.run_bench("--programs", "is:W", "--local-percent", "80,40", "--blocks", "16K",
                                "--systems", "hanare,run", "--stores", "server_1g,server_10g,server",
                                "--json", path)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for reason in ("cannot make a network", "there is no ip", "there is no tc", "no link of "):
            if "is left out: " in result.stdout and reason in result.stdout:
                self.skipTest(result.stdout)
        records = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        found = {(r["system"], r["params"]["store"], r["params"]["local_ratio"]) for r in records
                 if r["metric"] == "time_of_plain"}
        self.assertEqual(found, {(system, store, part) for system in ("hanare", "run")
                                 for store in ("server_1g", "server_10g", "server")
                                 for part in (0.8, 0.4)}, result.stdout)
        self.assertEqual(os.listdir("/sys/class/net"), before)
        self.assertEqual(self.left_behind(), [])
        os.unlink(path)

    def test_too_little_memory_is_told(self):
        result = self.run_bench("--programs", "is:W", "--local-percent", "10", "--blocks", "1M",
                                "--rounds", "1", "--stores", "file", "--systems", "hanare")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("failed", result.stdout)
        self.assertIn("at least 16 are needed", result.stdout)

    def test_interrupted(self):
        with subprocess.Popen([HANARE, "bench", "dlm", *SMALL], env=self.environment, text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            process.stderr.readline()  # the first program is being compiled
            self.assertNotEqual(self.left_behind(), [])
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertEqual(self.left_behind(), [])

    def test_killed(self):
        with subprocess.Popen([HANARE, "bench", "dlm", *SMALL], env=self.environment, text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            process.stderr.readline()
            process.kill()
            process.communicate(timeout=60)  # ends with those that it has started
        self.assertTrue(support.eventually(lambda: self.left_behind() == []), self.left_behind())

    def test_bad_arguments(self):
        for arguments, words in ((("--programs", "himeno:XL"), ("himeno:XL", "himeno:L")),
                                 (("--stores", "tape"), ("tape", "file,server,server_10g")),
                                 (("--systems", "hanare,hanare"), ("named twice", "swap")),
                                 (("--local-percent", "0"), ("--local-percent", "0")),
                                 (("--blocks", "5K"), ("--blocks", "5K")),
                                 (("--rounds", "0"), ("--rounds", "0")),
                                 (("--resume", "/nonexistent/x"), ("--resume", "/nonexistent/x"))):
            result = self.run_bench(*arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            for word in words:
                self.assertIn(word, result.stderr)


if __name__ == "__main__":
    unittest.main()
