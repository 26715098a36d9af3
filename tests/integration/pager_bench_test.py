# SPDX-License-Identifier: Apache-2.0
#
# `hanare bench pager` as a user runs it: every case on every system, what is recorded, refusals, and
# that nothing is left on the machine however it ends.  Tiny sizes; nothing is timed.
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import support

HANARE = os.environ["HANARE_BINARY"]
SMALL = ["bench", "pager", "--quick", "--size", "64M", "--local", "40M"]
CASES = ["seq_write", "seq_read_cold", "seq_read_warm", "seq_rmw", "strided", "random_clean",
         "random_dirty", "mixed", "triad"]
PEERS = ["plain", "mmap", "mmap_sequential", "mmap_random", "swap", "zram"]
FIELDS = {"bench", "case", "system", "metric", "unit", "median", "min", "max", "runs", "params"}


def cgroups_of(pids):
    """The cgroups that benches with these process ids have made; others may run one as well."""
    ends = tuple(f"-{pid}" for pid in pids)
    return [os.path.join(base, name) for base, names, _ in os.walk("/sys/fs/cgroup")
            for name in names if name.startswith("hanare-bench-") and name.endswith(ends)]


def swap_lines(part):
    with open("/proc/swaps", encoding="ascii", errors="replace") as swaps:
        return [line for line in swaps if part in line]


def zram_devices():
    return set(glob.glob("/dev/zram*"))


def workers_and_guardian(pid):
    """The children of a bench at work."""
    children = support.children_of(pid)
    (guardian,) = [child for child, line in children if "--worker" not in line]
    return [child for child, line in children if "--worker" in line], guardian


class PagerBench(support.InOwnPlace):
    def setUp(self):
        super().setUp()
        self.zrams = zram_devices()

    def tearDown(self):
        self.assertTrue(self.is_clean(), os.listdir(self.directory))
        super().tearDown()

    def is_clean(self):
        """Notes of zram devices are files in the directory."""
        return not (swap_lines(self.directory) or os.listdir(self.directory) or
                    cgroups_of(self.pids) or zram_devices() - self.zrams)

    def run_bench(self, *arguments):
        process = self.start(*SMALL, *arguments)
        out, err = process.communicate(timeout=500)
        return process.returncode, out, err

    def run_with_records(self, *arguments):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "results.json")
            status, out, err = self.run_bench("--json", path, *arguments)
            self.assertEqual(status, 0, out + err)
            with open(path, encoding="utf-8") as file:
                return out, err, json.load(file)

    def check_records(self, records, rounds):
        for record in records:
            self.assertEqual(set(record), FIELDS)
            self.assertEqual(record["bench"], "pager")
            self.assertEqual(len(record["params"]["values"]), record["runs"])
            self.assertLessEqual(record["min"], record["median"])
            self.assertLessEqual(record["median"], record["max"])
            self.assertEqual(record["runs"], rounds, record)

    @support.needs_small_processes
    def test_every_case_on_every_system(self):
        out, err, records = self.run_with_records("--rounds", "1", "--threads", "1,2",
                                                  "--compare", ",".join(PEERS))
        found = {(r["system"], r["case"], r["params"]["threads"], r["metric"]) for r in records}
        for case in CASES:
            metric = "time" if case.startswith("random") else "rate"
            for threads in (1,) if case == "mixed" else (1, 2):
                self.assertIn(("hanare", case, threads, metric), found)
                self.assertIn(f"{case}, {threads} thread", err)
        self.check_records([r for r in records if r["system"] == "hanare"], 1)
        for peer in PEERS:
            reason = re.search(rf"^{peer}: (left out|did not finish): .+", out, re.M)
            rows = {case for system, case, _, _ in found if system == peer}
            self.assertTrue(reason or rows == set(CASES), f"no row and no reason for {peer}\n{out}")
            if rows:
                self.assertIn((peer, "seq_write", 1, "hanare_rate_ratio"), found)
        for system in ("device_pool", "device_hot"):
            if "device: left out" not in out:
                self.assertIn((system, "seq_read_cold", 1, "rate"), found)
        for metric in ("stream_kept", "stream_alone", "time", "p50", "p99"):
            self.assertIn(("hanare", "mixed", 1, metric), found)
        for counter in ("read_faults", "prefetch_reads", "wait_faults", "clean_drops"):
            self.assertIn(("hanare", "seq_read_cold", 1, counter), found)
            self.assertNotIn(("mmap", "seq_read_cold", 1, counter), found)
        moved = {r["case"]: r["median"] for r in records
                 if r["system"] == "hanare" and r["metric"] == "read"}
        self.assertGreaterEqual(moved["seq_read_cold"], 64 << 20)
        goals = out[out.index("\ngoals"):]
        self.assertEqual(len(re.findall(r"(?m) (met|floor|missed|not measured)$", goals)),
                         len(goals.splitlines()) - 5, goals)

    @support.needs_small_processes
    def test_rounds_engines_and_chosen_cases(self):
        out, err, records = self.run_with_records(
            "--rounds", "2", "--cases", "triad,seq_write", "--compare",
            "mmap,hanare:sigbus-copy,hanare:sigbus-move")
        self.assertEqual({r["case"] for r in records}, {"seq_write", "triad"})
        self.check_records(records, 2)
        systems = {r["system"] for r in records}
        for engine in ("hanare:sigbus-copy", "hanare:sigbus-move"):
            self.assertTrue(engine in systems or f"{engine}: left out" in out, out)
        self.assertRegex(out, r"(?m)^seq_write +1 +hanare ")
        # Another system begins in each round.
        first = [line for line in err.splitlines() if "seq_write" in line]
        begins = {first[0].split()[-1], first[len(first) // 2].split()[-1]}
        self.assertEqual(len(begins), 2, err)

    def interrupt(self, number, system, case):
        process = self.start(*SMALL, "--rounds", "99", "--compare", system, "--cases", case,
                             start_new_session=True)
        for line in process.stderr:  # until it is at work
            if line.endswith(f": {system}\n"):
                break
        else:
            self.skipTest(f"{system} does not run here")
        workers, guardian = workers_and_guardian(process.pid)
        self.assertGreaterEqual(len(workers), 2)
        process.send_signal(number)
        _, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, -number)
        self.assertIn("interrupted", err)
        for child in (*workers, guardian):
            self.assertFalse(support.is_running(child))

    def test_interrupt_undoes_everything(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number.name):
                self.interrupt(number, "plain", "seq_write")

    @unittest.skipUnless(os.geteuid() == 0, "swap and zram need root")
    def test_interrupt_turns_swap_off(self):
        for system in ("swap", "zram"):
            with self.subTest(system=system):
                self.interrupt(signal.SIGINT, system, "random_dirty")

    @unittest.skipUnless(os.geteuid() == 0, "swap and zram need root")
    def test_what_a_killed_run_left_is_undone_at_once(self):
        for system in ("swap", "zram"):
            with self.subTest(system=system):
                process, workers, guardian = self.bench_at_work(system)
                self.assertFalse(self.is_clean())
                process.kill()
                process.communicate()
                for child in (*workers, guardian):
                    self.assertTrue(support.eventually(lambda: not support.is_running(child)))
                self.assertTrue(self.is_clean(), os.listdir(self.directory))

    @unittest.skipUnless(os.geteuid() == 0, "swap and zram need root")
    def test_the_next_run_removes_what_a_killed_guardian_left(self):
        for system in ("swap", "zram"):
            with self.subTest(system=system):
                self.kill_and_run_again(system)

    def bench_at_work(self, system):
        """A bench whose swap is in use, its workers and its guardian."""
        process = self.start(*SMALL, "--rounds", "99", "--compare", system, "--cases", "triad")
        for line in process.stderr:
            if line.endswith(f": {system}\n"):
                break
        else:
            self.skipTest(f"{system} does not run here")
        return process, *workers_and_guardian(process.pid)

    def kill_and_run_again(self, system):
        process, workers, guardian = self.bench_at_work(system)
        os.kill(guardian, signal.SIGKILL)
        process.kill()
        process.communicate()
        for worker in workers:
            self.assertTrue(support.eventually(lambda: not support.is_running(worker)),
                            "a worker outlives its parent")
        status, out, err = self.run_bench("--rounds", "1", "--compare", system, "--cases",
                                          "seq_write")
        self.assertEqual(status, 0, out + err)
        self.assertIn("removed swap that a killed run had left", err)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become somebody else")
    def test_ordinary_user(self):
        with support.reachable_copy(HANARE) as (binary, library):
            environment = dict(self.environment, LD_LIBRARY_PATH=library, HOME="/nonexistent")
            done = subprocess.run([binary, *SMALL, "--rounds", "1", "--cases",
                                   "seq_write,seq_read_cold", "--compare", "plain,mmap,swap,zram"],
                                  text=True, env=environment, capture_output=True, timeout=120,
                                  check=False, **support.AS_NOBODY)
        self.assertEqual(done.returncode, 0, done.stderr)
        for system in ("hanare", "plain"):
            self.assertRegex(done.stdout, rf"(?m)^seq_read_cold +1 +{system} +[0-9.]+ [GM]B/s")
        for system in ("mmap", "swap", "zram"):
            self.assertRegex(done.stdout, rf"(?m)^{system}: left out: .+")

    def test_bad_values_are_named(self):
        for arguments, named in (
                (["--size", "0"], "--size"), (["--size", "lots"], "--size"),
                (["--size", "1M"], "--size"), (["--local", "1M"], "--local"),
                (["--local", "x"], "--local"), (["--size", "99999999G"], "--size"),
                (["--compare", "mmap,disk"], "--compare"), (["--compare", ""], "--compare"),
                (["--compare", "mmap,mmap"], "--compare"),
                (["--compare", "hanare:fast"], "--compare"),
                (["--compare", "hanare"], "--compare"),
                (["--cases", "seq"], "--cases"), (["--cases", "triad,"], "--cases"),
                (["--threads", "0"], "--threads"), (["--threads", "1,x"], "--threads"),
                (["--threads", "65"], "--threads"), (["--threads", "2,2"], "--threads"),
                (["--rounds", "0"], "--rounds"), (["--rounds", "many"], "--rounds"),
                (["--engine", "fast"], "--engine"), (["--block", "3K"], "--block"),
                (["--store", "file:/nonexistent-directory"], "/nonexistent-directory"),
                (["--store", "file:/dev/shm"], "/dev/shm")):
            with self.subTest(arguments=arguments):
                process = self.start("bench", "pager", *arguments)
                out, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 2, out + err)
                self.assertTrue(err.startswith("hanare: error: "), err)
                self.assertEqual(err.count("\n"), 1, err)
                self.assertIn(named, err)
                self.assertEqual(out, "")

    @support.needs_limit_of_files
    def test_limit_of_files_is_named(self):
        for limit in (0, 1 << 20):
            process = self.start(*SMALL, preexec_fn=support.limit_files(limit))
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out), (2, ""), err)
            self.assertRegex(err, r"^hanare: error: files may have .* \(ulimit -f unlimited\)\n$")

    def test_results_that_cannot_be_written_are_refused_before_the_work(self):
        for path in ("", self.directory, self.directory + "/missing/x"):
            process = self.start(*SMALL, "--json", path)
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out), (2, ""), err)
            self.assertRegex(err, r"^hanare: error: --json: [^\n]+\n$")

    def test_help_names_every_case_and_system(self):
        process = self.start("bench", "pager", "--help")
        out, _ = process.communicate(timeout=60)
        for name in CASES + PEERS + ["--compare", "--json", "--size", "--local", "--cases",
                                     "--threads", "--rounds", "--store", "--quick", "--engine"]:
            self.assertIn(name, re.sub(r"\s+", "", out) if "_" in name else out)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
