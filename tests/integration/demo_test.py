# SPDX-License-Identifier: Apache-2.0
#
# `hanare demo` and `hanare bench resident` as a user runs them: results, refusals, and that nothing
# is left on the machine however the demo ends.  Small sizes; nothing is timed.
import json
import os
import pathlib
import re
import resource
import signal
import sys
import tempfile
import unittest

import support

HANARE = os.environ["HANARE_BINARY"]
SMALL = ["demo", "--size", "96M", "--local", "40M"]


def cgroups_of(pids):
    """The cgroups that demos with these process ids have made; others may run one as well."""
    wanted = {f"hanare-demo-{pid}" for pid in pids}
    return [os.path.join(base, name) for base, names, _ in os.walk("/sys/fs/cgroup")
            for name in wanted.intersection(names)]


def swap_files(directory):
    with open("/proc/swaps", encoding="ascii", errors="replace") as swaps:
        return [line for line in swaps if directory in line]


def worker_and_guardian(pid):
    """The children of a demo at work."""
    children = support.children_of(pid)
    (worker,) = [child for child, line in children if "--worker" in line]
    (guardian,) = [child for child, line in children if "--worker" not in line]
    return worker, guardian


def wait_for_work(process):
    """Until a worker is at work; False when none ever is."""
    return any("write a" in line for line in process.stderr)


class DemoTest(support.InOwnPlace):
    def tearDown(self):
        self.assertEqual(swap_files(self.directory), [])
        self.assertEqual(cgroups_of(self.pids), [])
        super().tearDown()

    def results_path(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        return os.path.join(directory.name, "results.json")

    def run_as_nobody(self, *arguments, **options):
        with support.reachable_copy(HANARE) as (program, library):
            environment = {"LD_LIBRARY_PATH": library, "HOME": "/nonexistent"}
            return self.run_hanare(*arguments, program=program, more_environment=environment,
                                   **support.AS_NOBODY, **options)

    def users(self):
        """Runners as this user, and as an ordinary one."""
        return [self.run_hanare] + ([self.run_as_nobody] if os.geteuid() == 0 else [])

    def run_hanare(self, *arguments, **options):
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=240)
        return process.returncode, out, err

    def check_table(self, out, systems):
        for system in systems:
            row = re.search(rf"^{system} .*\byes$", out, re.M)
            reason = re.search(rf"^{system}: (left out|did not finish): .+", out, re.M)
            self.assertTrue(row or reason, f"neither row nor reason for {system} in\n{out}")
        self.assertRegex(out, r"(?m)^hanare .*\byes$")
        self.assertRegex(out, r"\nHanare finished a matrix of [0-9.]+ times its memory in ")

    @support.needs_small_processes
    def test_every_system_is_checked_or_explained(self):
        path = self.results_path()
        status, out, err = self.run_hanare(*SMALL, "--systems", "plain,mmap,mmap-seq,swap,hanare",
                                           "--rounds", "2", "--json", path)
        self.assertEqual(status, 0, out + err)
        self.check_table(out, ["plain", "mmap", "mmap-seq", "swap"])
        with open(path, encoding="utf-8") as file:
            records = json.load(file)
        totals = [r for r in records if r["case"] == "total" and r["metric"] == "time"]
        self.assertIn("hanare", [r["system"] for r in totals])
        for record in totals:
            self.assertEqual(record["runs"], 2)
            self.assertGreater(record["median"], 0)
        if not support.SANITIZER:  # its shadow and its quarantine are resident as well
            peaks = {r["system"]: r["max"] for r in records if r["metric"] == "peak_resident"}
            limit = totals[0]["params"]["limit_bytes"]
            self.assertLessEqual(peaks["hanare"], limit)
        moved = {r["system"]: r["median"] for r in records if r["metric"] == "written"}
        self.assertGreater(moved["hanare"], 40 << 20)

    @support.needs_small_processes
    def test_progress_goes_to_standard_error(self):
        status, out, err = self.run_hanare(*SMALL, "--systems", "hanare")
        self.assertEqual(status, 0, err)
        for phase in ("write a", "write x", "mul a*x"):
            self.assertIn(f"[1/1] hanare: {phase}\n", err)
        self.assertNotIn("[1/1]", out)

    def interrupt(self, number, system, *arguments):
        process = self.start(*SMALL, "--rounds", "99", "--systems", system, *arguments,
                             start_new_session=True)
        if not wait_for_work(process):
            process.communicate()
            self.skipTest(f"{system} does not run here")
        children = worker_and_guardian(process.pid)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, -number)
        self.assertIn("interrupted", err)
        for child in children:
            self.assertFalse(support.is_running(child))

    def test_interrupt_undoes_everything(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number.name):
                self.interrupt(number, "hanare")

    @unittest.skipUnless(os.geteuid() == 0, "swap needs root")
    def test_interrupt_turns_swap_off(self):
        self.interrupt(signal.SIGINT, "swap")

    def swapping_demo(self):
        """A demo whose swap file is in use, its worker and its guardian."""
        process = self.start(*SMALL, "--rounds", "99", "--systems", "swap")
        if not wait_for_work(process):
            process.communicate()
            self.skipTest("swap does not run here")
        self.assertNotEqual(swap_files(self.directory), [])
        return process, *worker_and_guardian(process.pid)

    def is_clean(self):
        return not (swap_files(self.directory) or os.listdir(self.directory) or
                    cgroups_of(self.pids))

    @support.needs_small_processes
    @unittest.skipUnless(os.geteuid() == 0, "swap needs root")
    def test_what_a_killed_demo_left_is_undone_at_once(self):
        process, worker, guardian = self.swapping_demo()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(guardian, number)
        self.assertNotEqual(cgroups_of(self.pids), [])
        process.kill()
        process.communicate()
        for child in (worker, guardian):
            self.assertTrue(support.eventually(lambda: not support.is_running(child)),
                            f"{child} outlives its parent")
        self.assertTrue(self.is_clean())

    @support.needs_small_processes
    @unittest.skipUnless(os.geteuid() == 0, "swap needs root")
    def test_what_a_killed_guardian_left_is_undone_by_the_next_demo(self):
        process, worker, guardian = self.swapping_demo()
        os.kill(guardian, signal.SIGKILL)
        process.kill()
        process.communicate()
        self.assertTrue(support.eventually(lambda: not support.is_running(worker)))
        status, _, err = self.run_hanare(*SMALL, "--systems", "hanare")
        self.assertEqual(status, 0, err)
        self.assertIn("removed 1 swap file(s) that a killed run had left", err)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become somebody else")
    def test_ordinary_user(self):
        status, out, err = self.run_as_nobody(*SMALL, "--systems", "mmap,swap,hanare")
        self.assertEqual(status, 0, err)
        self.check_table(out, ["mmap", "swap"])

    @support.needs_small_processes
    def test_closed_standard_streams(self):
        for run in self.users():
            for arguments in ([*SMALL, "--systems", "hanare"], ["bench", "resident", "--quick"]):
                path = os.path.join(self.directory, "results.json")
                with self.subTest(run=run.__name__, arguments=arguments):
                    status, _, _ = run(*arguments, "--json", path,
                                       preexec_fn=support.close_standard_streams)
                    self.assertEqual(status, 0)
                    self.assertTrue(json.loads(pathlib.Path(path).read_text("utf-8")))
                os.unlink(path)

    @support.needs_limit_of_files
    def test_limit_of_files_makes_the_matrix_smaller(self):
        limit = 120 << 20
        for run in self.users():
            with self.subTest(run=run.__name__):
                status, out, err = run(*SMALL, "--systems", "mmap,swap,hanare",
                                       preexec_fn=support.limit_files(limit))
                self.assertEqual(status, 0, out + err)
                self.assertIn("note: the matrix is smaller than the asked 96 MiB: files may have "
                              "120 MiB (ulimit -f)", out)
                self.check_table(out, ["mmap", "swap"])

    @support.needs_limit_of_files
    def test_limit_of_files_that_leaves_nothing_is_named(self):
        for run in self.users():
            for limit in (0, 1000, 1 << 20):
                with self.subTest(run=run.__name__, limit=limit):
                    status, out, err = run(*SMALL, preexec_fn=support.limit_files(limit))
                    self.assertEqual((status, out), (2, ""), err)
                    self.assertRegex(err, r"^hanare: error: files may have .* raise the limit "
                                          r"\(ulimit -f unlimited\)\n$")
                    for name in ("resident", "fault"):
                        status, out, err = run("bench", name, "--quick",
                                               preexec_fn=support.limit_files(limit))
                        self.assertEqual(status, 70, err)
                        self.assertEqual(err.count("\n"), 1, err)
                        self.assertIn("ulimit -f", err)

    def test_results_that_cannot_be_written_are_refused_before_the_work(self):
        missing = os.path.join(self.directory, "missing", "x.json")
        for run in self.users():
            for command in (SMALL, ["bench", "resident"], ["bench", "fault"]):
                for path in ("", missing, self.directory):
                    with self.subTest(run=run.__name__, command=command, path=path):
                        status, out, err = run(*command, "--json", path)
                        self.assertEqual((status, out), (2, ""), err)
                        self.assertRegex(err, r"^hanare: error: --json: [^\n]+\n$")
                        self.assertIn(path, err)

    def test_a_run_that_fails_leaves_earlier_results(self):
        path = os.path.join(self.directory, "results.json")
        pathlib.Path(path).write_text("earlier", "ascii")
        self.interrupt(signal.SIGINT, "hanare", "--json", path)
        self.assertEqual(pathlib.Path(path).read_text("ascii"), "earlier")
        os.unlink(path)
        self.interrupt(signal.SIGTERM, "hanare", "--json", path)
        self.assertFalse(os.path.exists(path))

    def test_an_interrupted_bench_leaves_no_empty_results(self):
        path = os.path.join(self.directory, "results.json")
        for name in ("resident", "fault"):
            with self.subTest(name=name):
                process = self.start("bench", name, "--json", path)
                self.assertTrue(support.eventually(lambda: os.path.exists(path)))
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, -signal.SIGINT, err)
                self.assertFalse(os.path.exists(path))

    def test_bad_values_are_named(self):
        for arguments, named in (
                (["--size", "0"], "--size"), (["--size", "-1G"], "--size"),
                (["--size", "lots"], "--size"),
                (["--size", "1M"], "--size: '1M' is too small; allowed is 8M or more"),
                (["--local", "1M"], "local (flag --local): '1M' is too small for blocks of 64K; "
                                    "allowed is "),
                (["--local", "1000T"], "local (flag --local): '1000T' is more than is available; "
                                       "allowed is "),
                (["--local", "64M", "--block", "4M"], "too small for blocks of 4M; allowed is "),
                (["--local", "x"], "--local"), (["--systems", "mmap,zram"], "zram"),
                (["--systems", ""], "--systems"), (["--rounds", "0"], "--rounds"),
                (["--store", "file:/nonexistent-directory"], "/nonexistent-directory"),
                (["--systems", "plain,"], "'plain,' lacks a name; allowed is "),
                (["--store", "file:/nonexistent"], "store (flag --store): cannot create a file in "
                                                   "/nonexistent: No such file or directory; name "
                                                   "another directory"),
                (["--store", "file:/var/tmp?size=10M"], "is too small for a matrix of 2 GiB; "
                                                        "allowed is a size of 2056M or more"),
                (["--store", "file:/var/tmp?size=4096T"], "that are free there"),
                (["--store", "file:/dev/shm"], "store (flag --store): /dev/shm is in memory")):
            with self.subTest(arguments=arguments):
                status, out, err = self.run_hanare("demo", *arguments)
                self.assertEqual(status, 2, out + err)
                self.assertIn(named, err)
                self.assertEqual(out, "")

    @support.needs_small_processes
    def test_a_store_of_just_the_needed_size(self):
        status, out, err = self.run_hanare(*SMALL, "--systems", "hanare", "--store",
                                           f"file:{self.directory}?size=1M")
        self.assertEqual((status, out), (2, ""), err)
        needed = re.search(r"allowed is a size of (\w+) or more", err)[1]
        status, out, err = self.run_hanare(*SMALL, "--systems", "hanare", "--store",
                                           f"file:{self.directory}?size={needed}")
        self.assertEqual(status, 0, err)

    def test_unknown_variables_are_told_once(self):
        for arguments in ([*SMALL, "--systems", "hanare"], ["bench", "resident", "--quick"],
                          ["doctor"]):
            process = self.start(*arguments, more_environment={"HANARE_FOO": "1"})
            _, err = process.communicate(timeout=240)
            self.assertEqual(err.count("HANARE_FOO"), 1, err)

    def test_no_more_threads(self):
        """What cannot be measured is left out; the keeper that Hanare needs is named."""
        if support.SANITIZER:
            self.skipTest("the sanitizer starts threads of its own")
        if os.geteuid() != 0:
            self.skipTest("processes of this user that run already count")
        limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))}
        status, _, err = self.run_as_nobody(*SMALL, "--systems", "plain", **limit)
        self.assertEqual(status, 0, err)
        status, _, err = self.run_as_nobody("bench", "resident", "--quick", **limit)
        self.assertEqual(status, 70)
        self.assertRegex(err, r"^hanare: error: [^\n]*keeper thread: Resource temporarily unavail"
                              r"[^\n]*\n$")

    def test_resident_verifies_and_records(self):
        path = self.results_path()
        status, out, err = self.run_hanare("bench", "resident", "--quick", "--json", path)
        self.assertEqual(status, 0, out + err)
        self.assertIn("results verified", out)
        judged = re.search(r"(?m)^rate of hanare / plain: ([0-9.]+) \(floor 0\.98, goal 0\.99: "
                           r"(met|floor|missed)\)$", out)
        self.assertTrue(judged, out)
        ratio = float(judged[1])
        if abs(ratio - 0.98) > 0.001 and abs(ratio - 0.99) > 0.001:  # as printed, it is rounded
            self.assertEqual(judged[2],
                             "met" if ratio > 0.99 else "floor" if ratio > 0.98 else "missed")
        with open(path, encoding="utf-8") as file:
            records = json.load(file)
        kernels = {(r["system"], r["case"]) for r in records if r["metric"] == "rate"}
        for kernel in ("copy", "scale", "add", "triad"):
            self.assertIn(("hanare", kernel), kernels)
            self.assertIn(("plain", kernel), kernels)
        for record in records:
            self.assertEqual(set(record), {"bench", "case", "system", "metric", "unit", "median",
                                           "min", "max", "runs", "params"})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
